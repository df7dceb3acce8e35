/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Hints compared with an info. The log says which field keeps an info from
 * being offered, with FI_LOG_LEVEL=info. Pure; control path only.
 */
#ifndef DUO_HINTS_H
#define DUO_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>

/* Orders between messages and one-sided operations, and all that are known. */
#define DUO_ORDER_MIXED \
	(FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW)
#define DUO_ORDER \
	(DUO_ORDER_MIXED | FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | \
	 FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | \
	 FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* A field of an attribute structure, or of fi_info itself. */
struct duo_hint {
	const char *name;
	bool set;	/* of bits; else a number, which is a maximum */
	bool direct;	/* a field of fi_info */
	size_t attr;	/* where fi_info has the pointer */
	size_t at;	/* where the structure has the field, */
	size_t size;	/* and its bytes: 4 or 8 */
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

/* A field of which the hints have more than the info. */
struct duo_hint_beyond {
	const struct duo_hint *field;	/* NULL: there is none */
	uint64_t asked;			/* by the hints */
	uint64_t most;			/* that the info has */
};
/* Returns the first of the listed fields. */
struct duo_hint_beyond duo_hints_beyond(const struct fi_info *hints,
					const struct fi_info *info,
					const struct duo_hint *fields,
					size_t count);
/* True if the hints have nothing beyond the info. Logs the field. */
bool duo_hints_within(const struct fi_info *hints, const struct fi_info *info,
		      const struct duo_hint *fields, size_t count);
#define DUO_HINTS_BEYOND(hints, info, table) \
	duo_hints_beyond(hints, info, table, sizeof(table) / sizeof(*(table)))
#define DUO_HINTS_WITHIN(hints, info, table) \
	duo_hints_within(hints, info, table, sizeof(table) / sizeof(*(table)))

/* Returns false, and says what of the hints is refused. */
bool duo_hint_refuse(const char *name, uint64_t asked);

#endif /* DUO_HINTS_H */
