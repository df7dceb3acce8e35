/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copying from and to memory of Intel GPUs by Level Zero. This file is not
 * tested on a GPU.
 *
 * ofi_duo has a context per driver and a command list per device. If the device
 * has a queue that only copies, the list uses this queue. Copies in such a
 * queue do not wait for kernels. This is necessary because a kernel may wait
 * for a message.
 */

#include <stdbool.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "device/stream.h"
#include "device/ze_driver.h"

/* limits; ofi_duo ignores further drivers, devices per driver, queue groups */
#define DUO_ZE_DRIVERS 8
#define DUO_ZE_DEVICES 64
#define DUO_ZE_GROUPS 16

struct duo_ze duo_ze;

static const struct duo_symbol duo_ze_symbols[] = {
	{ "zeInit", &duo_ze.init },
	{ "zeDriverGet", &duo_ze.drivers },
	{ "zeDeviceGet", &duo_ze.devices },
	{ "zeContextCreate", &duo_ze.context_open },
	{ "zeMemGetAllocProperties", &duo_ze.memory },
	{ "zeDeviceGetCommandQueueGroupProperties", &duo_ze.groups },
	{ "zeCommandListCreateImmediate", &duo_ze.list_open },
	{ "zeCommandListDestroy", &duo_ze.list_close },
	{ "zeCommandListAppendMemoryCopy", &duo_ze.copy },
	{ "zeEventPoolCreate", &duo_ze.pool_open },
	{ "zeEventPoolDestroy", &duo_ze.pool_close },
	{ "zeEventCreate", &duo_ze.event_open },
	{ "zeEventDestroy", &duo_ze.event_close },
	{ "zeEventHostReset", &duo_ze.reset },
	{ "zeEventQueryStatus", &duo_ze.query },
	{ "zeEventHostSynchronize", &duo_ze.wait },
	{ NULL },
};

struct duo_ze_stream {
	struct duo_stream base;
	void *list;		/* immediate command list */
};

/*
 * A copy. Each copy has its own event pool, with one event, because a pool that
 * copies share would limit their number.
 */
struct duo_ze_copy {
	struct duo_stream_copy base;
	void *pool;
	void *event;
};

static void *duo_ze_drivers[DUO_ZE_DRIVERS];
/* context of each driver in duo_ze_drivers; NULL: could not be created */
static void *duo_ze_contexts[DUO_ZE_DRIVERS];
static uint32_t duo_ze_count;	/* number of drivers */

/*
 * Creates one context per driver, which is never destroyed. False: no context
 * could be created.
 */
static bool duo_ze_add_contexts(void)
{
	const struct duo_ze_context desc = { .stype = DUO_ZE_IS_CONTEXT };
	bool any = false;
	uint32_t i;

	duo_ze_count = DUO_ZE_DRIVERS;
	if (duo_ze.drivers(&duo_ze_count, duo_ze_drivers))
		return false;
	for (i = 0; i < duo_ze_count; i++) {
		if (duo_ze.context_open(duo_ze_drivers[i], &desc,
					&duo_ze_contexts[i]))
			duo_ze_contexts[i] = NULL;
		else
			any = true;
	}
	return any;
}

static bool duo_ze_init(void)
{
	return !duo_ze.init(DUO_ZE_GPU_ONLY) && duo_ze_add_contexts();
}

struct duo_library duo_ze_library = {
	.name = "libze_loader.so.1", .iface = "Level Zero",
	.symbols = duo_ze_symbols, .init = duo_ze_init,
};

static struct duo_ze_stream *duo_ze_stream_of(struct duo_stream *base)
{
	return duo_container_of(base, struct duo_ze_stream, base);
}

static struct duo_ze_copy *duo_ze_copy_of(struct duo_stream_copy *base)
{
	return duo_container_of(base, struct duo_ze_copy, base);
}

/*
 * Returns the device for a number from fi_hmem_ze_device(), and stores the
 * context of its driver. NULL: no such device.
 */
static void *duo_ze_by_number(unsigned int number, void **context)
{
	unsigned int driver = number >> 16, device = number & 0xffff;
	void *devices[DUO_ZE_DEVICES];
	uint32_t count = DUO_ZE_DEVICES;

	if (driver >= duo_ze_count || !duo_ze_contexts[driver] ||
	    duo_ze.devices(duo_ze_drivers[driver], &count, devices) ||
	    device >= count)
		return NULL;
	*context = duo_ze_contexts[driver];
	return devices[device];
}

/*
 * Returns the device of the memory at addr, and stores the context of the
 * device's driver. If no driver reports the memory as its own, returns the
 * device that attr names; NULL: no such device.
 */
static void *duo_ze_device(const struct fi_mr_attr *attr, const void *addr,
			   void **context)
{
	struct duo_ze_memory memory;
	void *device;
	uint32_t i;

	for (i = 0; i < duo_ze_count; i++) {
		memory = (struct duo_ze_memory) { .stype = DUO_ZE_IS_MEMORY };
		device = NULL;
		if (duo_ze_contexts[i] &&
		    !duo_ze.memory(duo_ze_contexts[i], addr, &memory,
				   &device) &&
		    memory.type != DUO_ZE_TYPE_UNKNOWN && device) {
			*context = duo_ze_contexts[i];
			return device;
		}
	}
	return duo_ze_by_number((unsigned int) attr->device.ze, context);
}

/*
 * Returns the index of a queue group that can copy, if possible of one that can
 * only copy; -1: no group can copy.
 */
static int duo_ze_group(void *device)
{
	struct duo_ze_group groups[DUO_ZE_GROUPS] = { { 0 } };
	uint32_t count = DUO_ZE_GROUPS, i;
	int found = -1;

	for (i = 0; i < count; i++)
		groups[i].stype = DUO_ZE_IS_GROUP;
	if (duo_ze.groups(device, &count, groups))
		return -1;
	for (i = 0; i < count; i++) {
		if (!(groups[i].flags & DUO_ZE_GROUP_COPY))
			continue;
		if (!(groups[i].flags & DUO_ZE_GROUP_COMPUTE))
			return (int) i;
		if (found < 0)
			found = (int) i;
	}
	return found;
}

static int duo_ze_stream_open(struct duo_stream *base)
{
	void *device = (void *) (uintptr_t) base->device;
	int group = duo_ze_group(device);
	const struct duo_ze_queue desc = {
		.stype = DUO_ZE_IS_QUEUE, .ordinal = (uint32_t) group,
		.mode = DUO_ZE_ASYNCHRONOUS,
	};

	return group < 0 || duo_ze.list_open(base->context, device, &desc,
					     &duo_ze_stream_of(base)->list) ?
		       -FI_EIO : 0;
}

static void duo_ze_stream_close(struct duo_stream *base)
{
	duo_ze.list_close(duo_ze_stream_of(base)->list);
}

static int duo_ze_copy_open(struct duo_stream_copy *base)
{
	static const struct duo_ze_pool pool = {
		.stype = DUO_ZE_IS_POOL, .flags = DUO_ZE_HOST_VISIBLE,
		.count = 1,
	};
	static const struct duo_ze_event event = {
		.stype = DUO_ZE_IS_EVENT, .signal = DUO_ZE_SCOPE_HOST,
		.wait = DUO_ZE_SCOPE_HOST,
	};
	struct duo_ze_copy *copy = duo_ze_copy_of(base);

	if (duo_ze.pool_open(base->stream->context, &pool, 0, NULL,
			     &copy->pool))
		return -FI_EIO;
	if (!duo_ze.event_open(copy->pool, &event, &copy->event))
		return 0;
	duo_ze.pool_close(copy->pool);
	return -FI_EIO;
}

static void duo_ze_copy_close(struct duo_stream_copy *base)
{
	const struct duo_ze_copy *copy = duo_ze_copy_of(base);

	duo_ze.event_close(copy->event);
	duo_ze.pool_close(copy->pool);
}

static int duo_ze_start(struct duo_stream_copy *base, void *to,
			const void *from, size_t len)
{
	void *event = duo_ze_copy_of(base)->event;

	return duo_ze.reset(event) ||
	       duo_ze.copy(duo_ze_stream_of(base->stream)->list, to, from, len,
			   event, 0, NULL) ? -FI_EIO : 0;
}

static int duo_ze_done(struct duo_stream_copy *base)
{
	int ret = duo_ze.query(duo_ze_copy_of(base)->event);

	return ret == DUO_ZE_NOT_READY ? -FI_EAGAIN : ret ? -FI_EIO : 0;
}

/* Waits for the end of a copy. Returns at once if the device is lost. */
static void duo_ze_wait(struct duo_stream_copy *base)
{
	duo_ze.wait(duo_ze_copy_of(base)->event, UINT64_MAX);
}

static const struct duo_stream_driver duo_ze_driver = {
	.size = sizeof(struct duo_ze_stream),
	.copy_size = sizeof(struct duo_ze_copy),
	.open = duo_ze_stream_open,
	.close = duo_ze_stream_close,
	.copy_open = duo_ze_copy_open,
	.copy_close = duo_ze_copy_close,
	.start = duo_ze_start,
	.done = duo_ze_done,
	.wait = duo_ze_wait,
};

static int duo_ze_open(const struct fi_mr_attr *attr, const void *addr,
		       struct duo_stream **stream)
{
	void *context, *device;

	if (!duo_library_load(&duo_ze_library))
		return -FI_ENOSYS;
	device = duo_ze_device(attr, addr, &context);
	if (!device) {
		DUO_INFO(MR, "memory at %p: Level Zero has no device %#x\n",
			 addr, (unsigned int) attr->device.ze);
		return -FI_EINVAL;
	}
	return duo_stream_open(&duo_ze_driver, (uintptr_t) device, context,
			       stream);
}

/* has no pin(), because Level Zero's driver pins host memory for each copy */
const struct duo_device_iface duo_ze_iface = {
	.id = FI_HMEM_ZE,
	.open = duo_ze_open,
};
