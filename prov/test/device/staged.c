/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The interfaces of ROCr and Level Zero, over stand-ins for their libraries.
 * Each test runs for both: if _i is even, for ROCr, otherwise for Level Zero.
 */

#include <rdma/fi_errno.h>

#include "device/rocr_driver.h"
#include "device/stream.h"
#include "device/ze_driver.h"
#include "near_fixture.h"
#include "staged.h"

#define HOST 64			/* bytes of host memory */

struct standin standin;
static const struct duo_device_iface *iface;
static char host[HOST];
/* for Level Zero: device 1 of driver 1 */
static struct fi_mr_attr attr = { .device.ze = 1 << 16 | 1 };

bool standin_fails(void)
{
	return ++standin.calls == standin.fail_at;
}

struct standin_copy *standin_open(void)
{
	struct standin_copy *copy = calloc(1, sizeof(*copy));

	ck_assert_ptr_nonnull(copy);
	standin.live++;
	return copy;
}

void standin_close(struct standin_copy *copy)
{
	ck_assert_int_ne(copy->state, STANDIN_MOVES);
	standin.live--;
	free(copy);
}

void standin_begin(struct standin_copy *copy, void *to, const void *from,
		   size_t len)
{
	ck_assert_int_eq(copy->state, STANDIN_IDLE);
	*copy = (struct standin_copy) {
		.state = STANDIN_MOVES, .to = to, .from = from, .len = len,
		.polls = 2,
	};
	standin.moving++;
}

enum standin_state standin_poll(struct standin_copy *copy, bool at_once)
{
	ck_assert_int_ne(copy->state, STANDIN_IDLE);
	if (copy->state != STANDIN_MOVES || (copy->polls-- && !at_once))
		return copy->state;
	standin.moving--;
	copy->state = standin.lost ? STANDIN_LOST : STANDIN_ENDED;
	if (!standin.lost)
		memcpy(copy->to, copy->from, copy->len);
	return copy->state;
}

int standin_device(const void *addr)
{
	size_t at = (uintptr_t) addr - (uintptr_t) standin.memory;

	return standin.unknown || at >= sizeof(standin.memory) ? -1 :
	       (int) (at / STANDIN_HALF);
}

static void choose(int i)
{
	iface = i % 2 ? &duo_ze_iface : &duo_rocr_iface;
}

UNIT_SETUP(setup, duo_rocr_library.name = duo_ze_library.name = NULL);

static void teardown(void)
{
	ck_assert_int_eq(standin.live, 0);
	ck_assert_int_eq(standin.moving, 0);
	ck_assert_int_eq(standin.pins, 0);
}

UNIT_CASE("staged", setup, teardown);

static struct duo_stream *open_region(const void *addr)
{
	struct duo_stream *state = NULL;

	ck_assert_int_eq(iface->open(&attr, addr, &state), 0);
	ck_assert_ptr_nonnull(state);
	return state;
}

static int until_done(void *copy)
{
	int ret, polls = 0;

	while ((ret = duo_stream_done(copy)) == -FI_EAGAIN)
		polls++;
	ck_assert_int_le(polls, 2);
	return ret;
}

/* Pins `host` if the library can pin. */
static struct duo_device_handle *pin_host(struct duo_stream *state)
{
	return iface->pin ? iface->pin(state, host, HOST) : NULL;
}

static void unpin(struct duo_device_handle *pin)
{
	if (pin)
		duo_device_release(pin);
}

/*
 * The start of a copy moves no bytes. Copies may end in any order. Later copies
 * must reuse the objects of ended ones.
 */
UNIT_LOOP(copies_are_asynchronous, 0, 2)
{
	struct duo_device_handle *pin;
	void *copy, *second;
	struct duo_stream *state;
	int live;

	choose(_i);
	state = open_region(standin.memory);
	pin = pin_host(state);
	strcpy(host, "to device");
	ck_assert_int_eq(duo_stream_start(state, standin.memory, host, 10,
					  &copy), 0);
	strcpy(standin.memory + 32, "to host");
	ck_assert_int_eq(duo_stream_start(state, host + 32,
					  standin.memory + 32, 8, &second), 0);
	ck_assert_int_eq(standin.moving, 2);
	ck_assert_int_eq(until_done(second), 0);
	ck_assert_str_eq(host + 32, "to host");
	ck_assert_str_eq(standin.memory, "");
	ck_assert_int_eq(until_done(copy), 0);
	ck_assert_str_eq(standin.memory, "to device");
	live = standin.live;
	ck_assert_int_eq(duo_stream_start(state, host, standin.memory + 32, 8,
					  &copy), 0);
	ck_assert_int_eq(standin.live, live);
	ck_assert_int_eq(until_done(copy), 0);
	ck_assert_str_eq(host, "to host");
	ck_assert_int_eq(standin.waits, 0);
	duo_stream_close(state);
	unpin(pin);
}

/*
 * Host memory that is not pinned is copied to device memory or (_i > 1) from
 * device memory.
 */
UNIT_LOOP(unpinned_memory_is_copied, 0, 4)
{
	void *copy;
	struct duo_stream *state;
	bool out = _i / 2;

	choose(_i);
	state = open_region(standin.memory);
	strcpy(out ? standin.memory : host, "unpinned");
	ck_assert_int_eq(out ? duo_stream_start(state, host, standin.memory, 9,
						&copy) :
			       duo_stream_start(state, standin.memory, host, 9,
						&copy), 0);
	ck_assert_int_eq(until_done(copy), 0);
	ck_assert_str_eq(out ? host : standin.memory, "unpinned");
	ck_assert_int_eq(standin.pins, 0);
	duo_stream_close(state);
}

/* A copy fails after its start and returns -FI_EIO. The next copy works. */
UNIT_LOOP(failed_copy_returns_error, 0, 2)
{
	void *copy;
	struct duo_stream *state;

	choose(_i);
	state = open_region(standin.memory);
	standin.lost = true;
	ck_assert_int_eq(duo_stream_start(state, host, standin.memory, 5,
					  &copy), 0);
	ck_assert_int_eq(until_done(copy), -FI_EIO);
	standin.lost = false;
	strcpy(standin.memory, "next");
	ck_assert_int_eq(duo_stream_start(state, host, standin.memory, 5,
					  &copy), 0);
	ck_assert_int_eq(until_done(copy), 0);
	ck_assert_str_eq(host, "next");
	duo_stream_close(state);
}

/*
 * The close of a region waits for the region's copy. The copy's handle can
 * still be polled afterwards.
 */
UNIT_LOOP(region_closed_during_copy_is_released, 0, 2)
{
	void *copy;
	struct duo_stream *state;

	choose(_i);
	state = open_region(standin.memory);
	strcpy(host, "copied");
	ck_assert_int_eq(duo_stream_start(state, standin.memory, host, 7,
					  &copy), 0);
	duo_stream_close(state);
	ck_assert_int_eq(standin.waits, 1);
	ck_assert_int_eq(standin.moving, 0);
	ck_assert_str_eq(standin.memory, "copied");
	ck_assert_int_gt(standin.live, 0);
	ck_assert_int_eq(duo_stream_done(copy), 0);
}

UNIT_LOOP(regions_of_device_share_stream, 0, 2)
{
	struct duo_stream *first, *again, *other;

	choose(_i);
	first = open_region(standin.memory);
	again = open_region(standin.memory + STANDIN_HALF - 1);
	other = open_region(standin.memory + STANDIN_HALF);
	ck_assert_ptr_eq(first, again);
	ck_assert_ptr_ne(first, other);
	duo_stream_close(first);
	duo_stream_close(other);
	duo_stream_close(again);
}

/*
 * The library does not recognize the memory. For ROCr, the open of a region
 * then fails. For Level Zero, the open uses the device in the attributes, and
 * fails only if this device is invalid.
 */
UNIT_LOOP(unknown_memory_is_rejected, 0, 2)
{
	static const int none[] = { -1, 2 << 16, 1 << 16 | 2 };
	struct fi_mr_attr wrong = attr;
	struct duo_stream *state = NULL;
	size_t i;

	choose(_i);
	standin.unknown = true;
	if (_i % 2)
		duo_stream_close(open_region(standin.memory));
	for (i = 0; i < sizeof(none) / sizeof(*none); i++) {
		wrong.device.ze = none[i];
		ck_assert_int_eq(iface->open(&wrong, standin.memory, &state),
				 -FI_EINVAL);
	}
	ck_assert_ptr_null(state);
}

/* Copies 8 bytes; returns 0 or the error. */
static int copy_one(struct duo_stream *state, void *to, const void *from)
{
	void *copy = NULL;
	int ret = duo_stream_start(state, to, from, 8, &copy);

	if (ret) {
		ck_assert_ptr_null(copy);
		return ret;
	}
	return until_done(copy);
}

/*
 * The call number _i / 4 + 1 of the library fails. If _i & 2 is set, the host
 * memory is pinned. If the failing call belongs to the open of a region or to a
 * copy, then this open or copy returns an error, or succeeds by means of other
 * calls. In no case may an object of the library stay open.
 */
UNIT_LOOP(each_failure_leaves_nothing, 0, 4 * 24)
{
	struct duo_device_handle *pin = NULL;
	struct duo_stream *state = NULL;
	int ret;

	choose(_i);
	standin.fail_at = _i / 4 + 1;
	ret = iface->open(&attr, standin.memory, &state);
	if (ret) {
		ck_assert_ptr_null(state);
		return;
	}
	if (_i & 2)
		pin = pin_host(state);
	memcpy(host, "inbound", 8);
	ret = copy_one(state, standin.memory, host);
	ck_assert(ret ? ret == -FI_EIO : !memcmp(standin.memory, host, 8));
	memcpy(standin.memory + 8, "outward", 8);
	ret = copy_one(state, host + 8, standin.memory + 8);
	ck_assert(ret ? ret == -FI_EIO : !memcmp(host + 8, "outward", 8));
	duo_stream_close(state);
	unpin(pin);
}

/*
 * The open of a region fails if the library finds no device (_i < 2), or if
 * there is no library.
 */
UNIT_LOOP(missing_library_fails_open, 0, 4)
{
	struct duo_stream *state;

	choose(_i);
	if (_i / 2)
		duo_rocr_library.name = duo_ze_library.name =
			"libduo-no-such.so";
	else
		standin.no_device = true;
	ck_assert_int_eq(iface->open(&attr, standin.memory, &state),
			 -FI_ENOSYS);
}

/*
 * near does not support device memory in a process that has loaded the library
 * of an interface without functions, such as Neuron.
 */
UNIT_TEST(libraries_are_supported)
{
	const struct duo_device_iface *const *saved = duo_device_ifaces;
	struct duo_device_iface other = { .name = "Neuron" };
	const struct duo_device_iface *const rows[] = {
		&duo_cuda_iface, &duo_rocr_iface, &duo_ze_iface, &other, NULL,
	};

	ck_assert_ptr_null(duo_device_unsupported());
	duo_device_ifaces = rows;
	ck_assert_ptr_null(duo_device_unsupported());
	other.library = "libc.so.6";
	ck_assert_str_eq(duo_device_unsupported(), "Neuron");
	duo_device_ifaces = saved;
}

static struct fid_mr *mr;

/* Opens an endpoint over near, with the real table of device interfaces. */
static void near_setup_staged(void)
{
	const struct duo_device_iface *const *table = duo_device_ifaces;

	setup();
	near_setup_device();
	duo_device_ifaces = table;
}

static void near_teardown_staged(void)
{
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	near_teardown();
	fake_device_close();
	teardown();
}

UNIT_CASE("messages", near_setup_staged, near_teardown_staged);

/*
 * Calls for messages take the slow path (attention is not 0) only while the
 * domain has a region of device memory.
 */
UNIT_LOOP(messages_are_copied, 0, 2)
{
	const struct iovec iov = { standin.memory, STANDIN_HALF };
	int context;

	choose(_i);
	attr.mr_iov = &iov;
	attr.iov_count = 1;
	attr.access = FI_SEND | FI_RECV;
	attr.iface = iface->id;
	ck_assert_uint_eq(duo_ep_of(fx.ep)->attention, 0);
	ck_assert_int_eq(fi_mr_regattr(fx.domain, &attr, FI_HMEM_DEVICE_ONLY,
				       &mr), 0);
	ck_assert_uint_ne(duo_ep_of(fx.ep)->attention, 0);
	strcpy(standin.memory, "device");
	ck_assert_int_eq(fi_tsend(fx.ep, standin.memory, 7, fi_mr_desc(mr),
				  peer, TAG, &context), 0);
	both_entry(&context);
	near_poll(rig.port, &rig_sink);
	ck_assert_str_eq(rig.payload, "device");
	ck_assert_int_eq(fi_trecv(fx.ep, standin.memory, 16, fi_mr_desc(mr),
				  peer, TAG, 0, &context), 0);
	rig_send("host");
	both_entry(&context);
	ck_assert_mem_eq(standin.memory, "hostce", 6);
}
