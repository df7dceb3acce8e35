/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A stand-in for Level Zero's library: two drivers with two devices each. Only
 * the devices of the first driver have memory.
 */

#include <rdma/fi_errno.h>

#include "device/stream.h"
#include "device/ze_driver.h"
#include "staged.h"

#define NOT_READY 1
#define FAILS 0x70000001	/* device lost */

/* handles, used only as addresses; devices[i] belong to drivers[i] */
static char drivers[2], contexts[2], devices[2][2], list;
static int lists;		/* number of open command lists */
static void *list_device;	/* device of the command list opened last */
static uint32_t ordinal; /* queue group of the command list opened last */
/* flags of the two queue groups: 1: compute, 2: copy */
static uint32_t flags[2] = { 3, 2 };

/* Counts a call of the library; returns 0 or FAILS. */
static int result(void)
{
	return standin_fails() ? FAILS : 0;
}

CALL(zeInit, uint32_t init_flags)
{
	ck_assert_uint_eq(init_flags, 1);	/* GPUs only */
	return result();
}

CALL(zeDriverGet, uint32_t *count, void **found)
{
	ck_assert_uint_ge(*count, 2);
	*count = standin.no_device ? 0 : 2;
	found[0] = &drivers[0];
	found[1] = &drivers[1];
	return result();
}

CALL(zeDeviceGet, void *driver, uint32_t *count, void **found)
{
	int i = driver == &drivers[1];

	ck_assert_uint_ge(*count, 2);
	*count = 2;
	found[0] = &devices[i][0];
	found[1] = &devices[i][1];
	return result();
}

CALL(zeContextCreate, void *driver, const struct duo_ze_context *desc,
     void **context)
{
	ck_assert_int_eq(desc->stype, 0xd);
	*context = &contexts[driver == &drivers[1]];
	return result();
}

/* Recognizes memory in the first driver's context only. */
CALL(zeMemGetAllocProperties, void *context, const void *addr,
     struct duo_ze_memory *memory, void **device)
{
	int i = standin_device(addr);

	ck_assert_int_eq(memory->stype, 0x17);
	memory->type = i >= 0 && context == &contexts[0] ? 2 : 0;
	*device = memory->type ? &devices[0][i] : (void *) 1;
	return result();
}

CALL(zeDeviceGetCommandQueueGroupProperties, void *device, uint32_t *count,
     struct duo_ze_group *groups)
{
	int i;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(groups[i].stype, 0x6);
		groups[i].flags = flags[i];
	}
	*count = 2;
	return result();
}

CALL(zeCommandListCreateImmediate, void *context, void *device,
     const struct duo_ze_queue *desc, void **found)
{
	ck_assert_int_eq(desc->stype, 0xe);
	ck_assert_int_eq(desc->mode, 2);	/* asynchronous */
	ck_assert_uint_eq(desc->index, 0);
	ck_assert_int_eq(context == &contexts[1],
			 (char *) device >= &devices[1][0]);
	if (standin_fails())
		return FAILS;
	ordinal = desc->ordinal;
	list_device = device;
	standin.live++;
	lists++;
	*found = &list;
	return 0;
}

CALL(zeCommandListDestroy, void *closed)
{
	ck_assert_ptr_eq(closed, &list);
	standin.live--;
	lists--;
	return 0;
}

CALL(zeCommandListAppendMemoryCopy, void *used, void *to, const void *from,
     size_t len, void *event, uint32_t count, void **before)
{
	ck_assert_ptr_eq(used, &list);
	ck_assert_int_gt(lists, 0);
	ck_assert_uint_eq(count, 0);
	if (standin_fails())
		return FAILS;
	standin_begin(event, to, from, len);
	return 0;
}

CALL(zeEventPoolCreate, void *context, const struct duo_ze_pool *desc,
     uint32_t count, void **visible, void **pool)
{
	ck_assert_int_eq(desc->stype, 0x10);
	ck_assert_uint_eq(desc->flags, 1);	/* visible to the host */
	ck_assert_uint_eq(desc->count, 1);
	ck_assert_uint_eq(count, 0);
	if (standin_fails())
		return FAILS;
	standin.live++;
	*pool = calloc(1, 1);
	return 0;
}

CALL(zeEventPoolDestroy, void *pool)
{
	standin.live--;
	free(pool);
	return 0;
}

CALL(zeEventCreate, void *pool, const struct duo_ze_event *desc, void **event)
{
	ck_assert_int_eq(desc->stype, 0x11);
	ck_assert_uint_eq(desc->index, 0);
	ck_assert_uint_eq(desc->signal, 4);	/* scope: host */
	if (standin_fails())
		return FAILS;
	*event = standin_open();
	return 0;
}

CALL(zeEventDestroy, void *event)
{
	standin_close(event);
	return 0;
}

CALL(zeEventHostReset, void *event)
{
	struct standin_copy *copy = event;

	ck_assert_int_ne(copy->state, STANDIN_MOVES);
	if (standin_fails())
		return FAILS;
	copy->state = STANDIN_IDLE;
	return 0;
}

CALL(zeEventQueryStatus, void *event)
{
	enum standin_state state = standin_poll(event, false);

	return state == STANDIN_MOVES ? NOT_READY :
	       state == STANDIN_LOST ? FAILS : 0;
}

CALL(zeEventHostSynchronize, void *event, uint64_t timeout)
{
	ck_assert_uint_eq(timeout, UINT64_MAX);
	standin.waits++;
	return standin_poll(event, true) == STANDIN_LOST ? FAILS : 0;
}

UNIT_SETUP(setup, duo_ze_library.name = NULL);
UNIT_SETUP(teardown, ck_assert_int_eq(standin.live, 0));

UNIT_CASE("ze", setup, teardown);

/*
 * The device has two queue groups. If one of them can copy but not compute,
 * duo_ze_open() must choose it. _i is
 * - 0: the second group can copy only, the first can copy and compute
 * - 1: both groups can copy and compute
 * - 2: no group can copy, so duo_ze_open() must fail
 */
UNIT_LOOP(queue_for_copies_is_preferred, 0, 3)
{
	static const struct fi_mr_attr attr = { .iface = FI_HMEM_ZE };
	static const uint32_t second[] = { 2, 3, 1 };
	struct duo_stream *state;
	int ret;

	flags[0] = _i == 2 ? 1 : 3;
	flags[1] = second[_i];
	ret = duo_ze_iface.open(&attr, standin.memory, &state);
	ck_assert_int_eq(ret, _i == 2 ? -FI_EIO : 0);
	if (ret)
		return;
	ck_assert_uint_eq(ordinal, _i ? 0 : 1);
	duo_stream_close(state);
}

/*
 * The copies use the device of the memory or, if the driver does not recognize
 * the memory (_i is 1), the device in the attributes.
 */
UNIT_LOOP(device_of_memory_is_used, 0, 2)
{
	static const struct fi_mr_attr attr = {
		.iface = FI_HMEM_ZE, .device.ze = 1 << 16,
	};
	struct duo_stream *state;

	standin.unknown = _i;
	ck_assert_int_eq(duo_ze_iface.open(&attr, standin.memory + STANDIN_HALF,
				     &state), 0);
	ck_assert_ptr_eq(list_device, _i ? &devices[1][0] : &devices[0][1]);
	duo_stream_close(state);
}
