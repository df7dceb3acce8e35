/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A stand-in for ROCr's library. Pinned host memory has another address for
 * GPUs than for the CPU. Every copy must use the GPUs' address.
 */

#include <rdma/fi_errno.h>

#include "device/rocr_driver.h"
#include "device/stream.h"
#include "staged.h"

/* address of pinned memory for GPUs, minus its address for the CPU */
#define AWAY ((uintptr_t) 1 << 40)
#define PINS 4
#define FAILS 0x1000		/* HSA_STATUS_ERROR */

enum agent { NO_AGENT, CPU, OTHER_CPU, GPU };	/* GPU + 1: the second GPU */

static struct {
	char *memory;
	size_t len;
} pinned[PINS];
static char allocated[64];	/* host memory allocated with ROCr */

int64_t hsa_signal_load_scacquire(struct duo_rocr_signal signal);
void hsa_signal_store_screlease(struct duo_rocr_signal signal, int64_t value);
int64_t hsa_signal_wait_scacquire(struct duo_rocr_signal signal, int condition,
				  int64_t value, uint64_t timeout, int state);

/* Counts a call of the library; returns 0 or FAILS. */
static int result(void)
{
	return standin_fails() ? FAILS : 0;
}

CALL(hsa_init, void)
{
	return result();
}

CALL(hsa_iterate_agents, int (*callback)(struct duo_rocr_agent, void *),
     void *data)
{
	static const struct duo_rocr_agent agents[] = { { GPU }, { CPU } };
	int i, ret = result();

	for (i = 0; !ret && !standin.no_device && i < 2; i++)
		ret = callback(agents[i], data);
	return ret;
}

CALL(hsa_agent_get_info, struct duo_rocr_agent agent, int attribute,
     void *value)
{
	ck_assert_int_eq(attribute, 17);	/* type of the device */
	if (standin_fails())
		return FAILS;
	*(uint32_t *) value = agent.handle >= GPU;
	return 0;
}

/* Returns the index of the pinned block with this address; -1: none. */
static int pin_of(const void *addr)
{
	int i;

	for (i = 0; i < PINS; i++)
		if ((uintptr_t) addr - (uintptr_t) pinned[i].memory <
		    pinned[i].len)
			return i;
	return -1;
}

CALL(hsa_amd_pointer_info, const void *addr, struct duo_rocr_info *info,
     void *(*alloc)(size_t), uint32_t *count,
     struct duo_rocr_agent **accessible)
{
	int pin = pin_of(addr), device = standin_device(addr);
	const char *base = allocated;

	ck_assert_uint_eq(info->size, sizeof(*info));
	if (standin_fails())
		return FAILS;
	info->type = 1;			/* allocated with HSA */
	if (device >= 0) {
		info->owner.handle = GPU + (unsigned int) device;
	} else if (pin >= 0) {
		info->type = 2;		/* locked */
		info->host_base = pinned[pin].memory;
		info->agent_base = (void *) ((uintptr_t) info->host_base +
					     AWAY);
		info->len = pinned[pin].len;
	} else if (addr == base) {
		info->owner.handle = OTHER_CPU;
	} else {
		info->type = 0;
	}
	return 0;
}

static struct standin_copy *copy_of(struct duo_rocr_signal signal)
{
	return (struct standin_copy *) (uintptr_t) signal.handle;
}

CALL(hsa_signal_create, int64_t value, uint32_t count,
     const struct duo_rocr_agent *consumers, struct duo_rocr_signal *signal)
{
	ck_assert_uint_eq(count, 0);
	if (standin_fails())
		return FAILS;
	signal->handle = (uintptr_t) standin_open();
	return 0;
}

CALL(hsa_signal_destroy, struct duo_rocr_signal signal)
{
	standin_close(copy_of(signal));
	return 0;
}

int64_t hsa_signal_load_scacquire(struct duo_rocr_signal signal)
{
	switch (standin_poll(copy_of(signal), false)) {
	case STANDIN_MOVES:
		return 1;
	case STANDIN_LOST:
		return -1;
	default:
		return 0;
	}
}

/*
 * ofi_duo stores 1 in the signal before it starts a copy that a device
 * executes. If the CPU executes a copy instead, ofi_duo stores 0 after this
 * copy.
 */
void hsa_signal_store_screlease(struct duo_rocr_signal signal, int64_t value)
{
	ck_assert_int_ne(copy_of(signal)->state, STANDIN_MOVES);
	copy_of(signal)->state = value ? STANDIN_IDLE : STANDIN_ENDED;
}

/*
 * To wait for a copy, ofi_duo must call this function twice. The first call
 * returns before the condition is true, as ROCr permits. The second call ends
 * the copy.
 */
int64_t hsa_signal_wait_scacquire(struct duo_rocr_signal signal, int condition,
				  int64_t value, uint64_t timeout, int state)
{
	static bool early = true;

	ck_assert_int_eq(condition, 2);		/* less than */
	ck_assert_int_eq(value, 1);
	early = !early;
	if (!early)
		return 1;
	standin.waits++;
	return standin_poll(copy_of(signal), true) == STANDIN_LOST ? -1 : 0;
}

/* Returns the CPU's address of a copy's source or destination. */
static void *reach(const void *addr, struct duo_rocr_agent agent, size_t len)
{
	char *at = (char *) ((uintptr_t) addr - AWAY);
	int pin = pin_of(at);

	if (agent.handle != CPU) {
		ck_assert_int_eq(agent.handle, GPU + standin_device(addr));
		return (void *) addr;
	}
	ck_assert_int_ge(pin, 0);
	ck_assert_uint_ge(pinned[pin].len,
			  (size_t) (at - pinned[pin].memory) + len);
	return at;
}

CALL(hsa_amd_memory_async_copy, void *to, struct duo_rocr_agent to_agent,
     const void *from, struct duo_rocr_agent from_agent, size_t len,
     uint32_t count, const struct duo_rocr_signal *before,
     struct duo_rocr_signal signal)
{
	ck_assert_uint_eq(count, 0);
	if (standin_fails())
		return FAILS;
	standin_begin(copy_of(signal), reach(to, to_agent, len),
		      reach(from, from_agent, len), len);
	return 0;
}

CALL(hsa_amd_memory_lock, void *memory, size_t len,
     struct duo_rocr_agent *agents, int count, void **agent_addr)
{
	int i;

	ck_assert_ptr_null(agents);	/* all GPUs */
	if (standin_fails() || standin_device(memory) >= 0)
		return FAILS;
	for (i = 0; pinned[i].memory; i++)
		ck_assert_int_lt(i, PINS - 1);
	pinned[i].memory = memory;
	pinned[i].len = len;
	standin.pins++;
	*agent_addr = (void *) ((uintptr_t) memory + AWAY);
	return 0;
}

CALL(hsa_amd_memory_unlock, void *memory)
{
	int pin = 0;

	while (pinned[pin].memory != memory)
		ck_assert_int_lt(++pin, PINS);
	pinned[pin].memory = NULL;
	pinned[pin].len = 0;
	standin.pins--;
	return 0;
}

UNIT_SETUP(setup, duo_rocr_library.name = NULL);

static void teardown(void)
{
	ck_assert_int_eq(standin.live, 0);
	ck_assert_int_eq(standin.pins, 0);
}

UNIT_CASE("rocr", setup, teardown);

/*
 * The CPU copies from and to host memory that is registered as a region of
 * ROCr: memory that ROCr allocated (_i is 0) or pinned.
 */
UNIT_LOOP(host_region_is_copied_by_cpu, 0, 2)
{
	const struct fi_mr_attr attr = { .iface = FI_HMEM_ROCR };
	const struct duo_device_iface *iface = &duo_rocr_iface;
	struct duo_device_handle *pin = NULL;
	void *copy;
	char own[8] = "", *region = _i ? own : allocated, to[8];
	struct duo_stream *state;

	/* the first region loads the library */
	ck_assert_int_eq(iface->open(&attr, allocated, &state), 0);
	duo_stream_close(state);
	if (_i)
		pin = iface->pin(NULL, own, sizeof(own));
	ck_assert_int_eq(iface->open(&attr, region, &state), 0);
	ck_assert_int_eq(duo_stream_start(state, region, "by CPU", 7, &copy),
			 0);
	ck_assert_int_eq(duo_stream_done(copy), 0);
	ck_assert_int_eq(duo_stream_start(state, to, region, 7, &copy), 0);
	ck_assert_int_eq(duo_stream_done(copy), 0);
	ck_assert_str_eq(to, "by CPU");
	duo_stream_close(state);
	if (pin)
		duo_device_release(pin);
}
