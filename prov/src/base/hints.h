/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Compares the hints of fi_getinfo() with an info. */
#ifndef DUO_HINTS_H
#define DUO_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>

#include "base/util.h"

/*
 * Internal flags of fi_getinfo(), by which ofi_duo gets the infos (struct
 * fi_info) of the provider that it wraps. The flags are the same in libfabric
 * 1.17 to 2.7. Without any of the flags, libfabric would return only the infos
 * that FI_PROVIDER permits: if FI_PROVIDER is "efa;ofi_duo", libfabric would
 * drop the infos of efa alone.
 */
/* returns infos of single providers, and of stacks such as "tcp;ofi_rxm" */
#define DUO_GETINFO_INTERNAL (1ULL << 58)
/* returns infos of single providers only, none of stacks */
#define DUO_GETINFO_CORE_ONLY (1ULL << 59)
/* also returns infos of providers that libfabric hides from applications */
#define DUO_GETINFO_HIDDEN (1ULL << 60)

/*
 * True while this thread calls fi_getinfo() with an internal flag. libfabric
 * then also calls duo_getinfo(), which must return no info.
 */
extern __thread bool duo_in_getinfo;

/* orders between messages and RMA or atomics */
#define DUO_ORDER_MIXED \
	(FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW)
/* all orders that ofi_duo supports */
#define DUO_ORDER \
	(DUO_ORDER_MIXED | FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | \
	 FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | \
	 FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* A field of fi_info, or of one of its attribute structures */
struct duo_hint {
	const char *name;
	bool set;	/* true: a set of bits; false: a maximum */
	bool direct;	/* the field is in fi_info itself */
	/* offset in fi_info of the pointer to the attributes; 0 if `direct` */
	size_t attr;
	/* offset of the field in fi_info or in the attributes */
	size_t at;
	size_t size;	/* size of the field, bytes: 4 or 8 */
};

#define DUO_HINT_ROW(set, attr, field) \
	{ #attr "->" #field, set, false, offsetof(struct fi_info, attr), \
	  offsetof(struct fi_##attr, field), \
	  sizeof(((struct fi_##attr *) 0)->field) }
#define DUO_HINT_MAX(attr, field) DUO_HINT_ROW(false, attr, field)
#define DUO_HINT_SET(attr, field) DUO_HINT_ROW(true, attr, field)
#define DUO_HINT_INFO(set, field) \
	{ #field, set, true, 0, offsetof(struct fi_info, field), \
	  sizeof(((struct fi_info *) 0)->field) }

struct duo_hint_beyond {
	const struct duo_hint *field;	/* NULL: no field exceeds the info */
	uint64_t requested;		/* value in the hints */
	uint64_t limit;			/* value in the info */
};
/* Returns the first field in which the hints exceed the info. */
struct duo_hint_beyond duo_hints_beyond(const struct fi_info *hints,
					const struct fi_info *info,
					const struct duo_hint *fields,
					size_t count);
/*
 * True if no field of the hints exceeds the info. Otherwise logs the first
 * field that does.
 */
bool duo_hints_within(const struct fi_info *hints, const struct fi_info *info,
		      const struct duo_hint *fields, size_t count);
#define DUO_HINTS_WITHIN(hints, info, table) \
	duo_hints_within(hints, info, table, DUO_COUNT(table))

/* Logs that no info is returned because of this value. Returns false. */
bool duo_hint_reject(const char *name, uint64_t requested);

#endif /* DUO_HINTS_H */
