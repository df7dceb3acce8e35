/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions, types and constants of ROCr. They are declared here, so that the
 * build of ofi_duo does not require headers of ROCm. Sources: "HSA Runtime
 * Programmer's Reference Manual", version 1.2, and, for hsa_amd_*,
 * hsa_ext_amd.h of ROCm 6.1. Any thread may call the library.
 */
#ifndef DUO_DEVICE_ROCR_DRIVER_H
#define DUO_DEVICE_ROCR_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "device/library.h"

#define DUO_ROCR_BREAK 1	/* HSA_STATUS_INFO_BREAK */
#define DUO_ROCR_INFO_DEVICE 17	/* HSA_AGENT_INFO_DEVICE */
#define DUO_ROCR_CPU 0		/* HSA_DEVICE_TYPE_CPU */
#define DUO_ROCR_UNKNOWN 0	/* HSA_EXT_POINTER_TYPE_UNKNOWN */
#define DUO_ROCR_LOCKED 2	/* HSA_EXT_POINTER_TYPE_LOCKED */
#define DUO_ROCR_LESS 2		/* HSA_SIGNAL_CONDITION_LT */
#define DUO_ROCR_BLOCKED 0	/* HSA_WAIT_STATE_BLOCKED */

/* hsa_agent_t: a CPU or a GPU */
struct duo_rocr_agent {
	uint64_t handle;
};

/* hsa_signal_t */
struct duo_rocr_signal {
	uint64_t handle;
};

/* The first members of hsa_amd_pointer_info_t. */
struct duo_rocr_info {
	uint32_t size;		/* size of this struct, bytes */
	uint32_t type;
	void *agent_base;	/* start of the allocation, for GPUs */
	void *host_base;	/* start of the allocation, for CPUs */
	size_t len;		/* length of the allocation, bytes */
	void *user;
	struct duo_rocr_agent owner;
};

/* The library's functions. Each returned int is an hsa_status_t; 0: success. */
extern struct duo_rocr {
	int (*init)(void);
	int (*agents)(int (*callback)(struct duo_rocr_agent agent, void *data),
		      void *data);
	int (*agent_info)(struct duo_rocr_agent agent, int attribute,
			  void *value);
	int (*pointer)(const void *addr, struct duo_rocr_info *info,
		       void *(*alloc)(size_t len), uint32_t *count,
		       struct duo_rocr_agent **accessible);
	int (*signal_open)(int64_t value, uint32_t count,
			   const struct duo_rocr_agent *consumers,
			   struct duo_rocr_signal *signal);
	int (*signal_close)(struct duo_rocr_signal signal);
	int64_t (*load)(struct duo_rocr_signal signal);
	void (*store)(struct duo_rocr_signal signal, int64_t value);
	int64_t (*wait)(struct duo_rocr_signal signal, int condition,
			int64_t value, uint64_t timeout, int state);
	int (*copy)(void *to, struct duo_rocr_agent to_agent, const void *from,
		    struct duo_rocr_agent from_agent, size_t len,
		    uint32_t count, const struct duo_rocr_signal *before,
		    struct duo_rocr_signal signal);
	int (*pin)(void *memory, size_t len, struct duo_rocr_agent *agents,
		   int count, void **agent_addr);
	int (*unpin)(void *memory);
} duo_rocr;

extern struct duo_library duo_rocr_library;

#endif /* DUO_DEVICE_ROCR_DRIVER_H */
