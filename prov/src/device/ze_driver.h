/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions, types and constants of Level Zero. They are declared here, so that
 * the build of ofi_duo does not require headers of Level Zero. Source: "oneAPI
 * Level Zero Specification", version 1.0 and later, Core API. Any thread may
 * call the library, but only one thread at a time may use a command list.
 */
#ifndef DUO_DEVICE_ZE_DRIVER_H
#define DUO_DEVICE_ZE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "device/library.h"

#define DUO_ZE_NOT_READY 1	/* ZE_RESULT_NOT_READY */
#define DUO_ZE_GPU_ONLY 1	/* ZE_INIT_FLAG_GPU_ONLY */
#define DUO_ZE_TYPE_UNKNOWN 0	/* ZE_MEMORY_TYPE_UNKNOWN */
/* Bits of struct duo_ze_group, flags: ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_* */
#define DUO_ZE_GROUP_COMPUTE 1
#define DUO_ZE_GROUP_COPY 2
#define DUO_ZE_ASYNCHRONOUS 2	/* ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS */
#define DUO_ZE_HOST_VISIBLE 1	/* ZE_EVENT_POOL_FLAG_HOST_VISIBLE */
#define DUO_ZE_SCOPE_HOST 4	/* ZE_EVENT_SCOPE_FLAG_HOST */

/* Values of the member stype: ZE_STRUCTURE_TYPE_* */
#define DUO_ZE_IS_GROUP 0x6		/* COMMAND_QUEUE_GROUP_PROPERTIES */
#define DUO_ZE_IS_CONTEXT 0xd		/* CONTEXT_DESC */
#define DUO_ZE_IS_QUEUE 0xe		/* COMMAND_QUEUE_DESC */
#define DUO_ZE_IS_POOL 0x10		/* EVENT_POOL_DESC */
#define DUO_ZE_IS_EVENT 0x11		/* EVENT_DESC */
#define DUO_ZE_IS_MEMORY 0x17		/* MEMORY_ALLOCATION_PROPERTIES */

/* ze_context_desc_t */
struct duo_ze_context {
	int stype;
	const void *next;
	uint32_t flags;
};

/* ze_memory_allocation_properties_t */
struct duo_ze_memory {
	int stype;
	void *next;
	int type;
	uint64_t id;
	uint64_t page_size;
};

/* ze_command_queue_group_properties_t */
struct duo_ze_group {
	int stype;
	void *next;
	uint32_t flags;
	size_t pattern_size;
	uint32_t queues;
};

/* ze_command_queue_desc_t */
struct duo_ze_queue {
	int stype;
	const void *next;
	uint32_t ordinal;	/* index of the command queue group */
	uint32_t index;
	uint32_t flags;
	int mode;
	int priority;
};

/* ze_event_pool_desc_t */
struct duo_ze_pool {
	int stype;
	const void *next;
	uint32_t flags;
	uint32_t count;
};

/* ze_event_desc_t */
struct duo_ze_event {
	int stype;
	const void *next;
	uint32_t index;
	uint32_t signal;
	uint32_t wait;
};

/* Handles are pointers. Each function returns a ze_result_t; 0: success. */
extern struct duo_ze {
	int (*init)(uint32_t flags);
	int (*drivers)(uint32_t *count, void **drivers);
	int (*devices)(void *driver, uint32_t *count, void **devices);
	int (*context_open)(void *driver, const struct duo_ze_context *desc,
			    void **context);
	int (*memory)(void *context, const void *addr,
		      struct duo_ze_memory *memory, void **device);
	int (*groups)(void *device, uint32_t *count,
		      struct duo_ze_group *groups);
	int (*list_open)(void *context, void *device,
			 const struct duo_ze_queue *desc, void **list);
	int (*list_close)(void *list);
	int (*copy)(void *list, void *to, const void *from, size_t len,
		    void *event, uint32_t count, void **before);
	int (*pool_open)(void *context, const struct duo_ze_pool *desc,
			 uint32_t count, void **devices, void **pool);
	int (*pool_close)(void *pool);
	int (*event_open)(void *pool, const struct duo_ze_event *desc,
			  void **event);
	int (*event_close)(void *event);
	int (*reset)(void *event);
	int (*query)(void *event);
	int (*wait)(void *event, uint64_t timeout);
} duo_ze;

extern struct duo_library duo_ze_library;

#endif /* DUO_DEVICE_ZE_DRIVER_H */
