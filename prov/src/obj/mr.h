/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A memory region: the core's, and its entry in near's region table. Lock: the
 * domain's for domain->device_mrs, any group's to read near's table, all locks
 * of the domain to change it.
 */
#ifndef DUO_MR_H
#define DUO_MR_H

#include <stdbool.h>

#include "base/compat.h"
#include "near/near.h"

struct duo_device_handle;
struct duo_device_iface;
struct duo_domain;

struct duo_mr {
	struct fid_mr mr_fid;	/* with the core's key and descriptor */
	struct duo_domain *domain;
	struct fid_mr *core;
	/* functions for this kind of memory; NULL: host memory */
	const struct duo_device_iface *device;
	/* argument `state` of the functions in `device` */
	void *device_state;
	/* result of duo_device_iface.pin(); NULL: ofi_duo has pinned nothing */
	struct duo_device_handle *pin;
	/* entry in near's region table; see duo_near_region_entry() */
	struct near_region_entry region;
	/* description by which peers map the memory; id 0: none */
	struct near_export export;
	bool listed;		/* the region is in near's region table */
	/* number of later registrations with the same region of the core */
	unsigned int again;
};

/*
 * Stores the key and the address by which local peers name the bytes at
 * `memory`. False: they are not all in the region, the region does not permit
 * `access`, or it is not in near's region table.
 */
static inline bool duo_mr_name(const struct duo_mr *mr, uint32_t access,
			       const void *memory, size_t len, uint64_t *key,
			       uint64_t *addr)
{
	const struct near_region_entry *region = &mr->region;
	uint64_t offset = (uintptr_t) memory - region->memory;

	if (!mr->listed || !(region->access & access) ||
	    offset > region->len || len > region->len - offset)
		return false;
	*key = region->key;
	*addr = region->start + offset;
	return true;
}

#endif /* DUO_MR_H */
