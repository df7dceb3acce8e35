/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A memory region: the region of the core, and its entry in near's region
 * table, which has the regions that local peers may access.
 *
 * Locks: domain->device_mrs needs the domain's lock. To read near's region
 * table, a thread needs the lock of any one group of the domain (obj/group.h).
 * To change that table, a thread needs all locks of the domain.
 */
#ifndef DUO_MR_H
#define DUO_MR_H

#include <stdbool.h>

#include "base/compat.h"
#include "near/near.h"

struct duo_device_handle;
struct duo_device_iface;
struct duo_domain;
struct duo_stream;

struct duo_mr {
	struct fid_mr mr_fid;	/* with the core's key and descriptor */
	struct duo_domain *domain;
	struct fid_mr *core;
	/* functions for this kind of memory; NULL: host memory */
	const struct duo_device_iface *device;
	/* executes copies from and to the region; valid if `device` is set */
	struct duo_stream *stream;
	/* result of duo_device_iface.pin(); NULL: ofi_duo has pinned nothing */
	struct duo_device_handle *pin;
	/* entry in near's region table; see duo_near_region_entry() */
	struct near_region_entry region;
	/* description by which peers map the memory; id 0: none */
	struct near_export export;
	bool listed;		/* the region is in near's region table */
	/*
	 * number of later registrations for which the core returned the same
	 * region; they share this object, and the last fi_close() closes it
	 */
	unsigned int again;
};

/*
 * Stores the key and the address by which local peers name the `len` bytes at
 * `memory`. False: some of these bytes are not in the region, the region does
 * not permit `access`, or the region is not in near's region table.
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
