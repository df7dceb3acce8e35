/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <inttypes.h>
#include <string.h>

#include "base/hints.h"
#include "base/log.h"

/* Returns a field's value in an info; 0 if the field's structure is NULL. */
static uint64_t duo_hint_value(const struct fi_info *info,
			       const struct duo_hint *field)
{
	const char *from = (const char *) info;
	uint64_t whole;
	uint32_t half;

	if (!field->direct)
		memcpy(&from, from + field->attr, sizeof(from));
	if (!from)
		return 0;
	memcpy(&half, from + field->at, sizeof(half));
	if (field->size == sizeof(half))
		return half;
	memcpy(&whole, from + field->at, sizeof(whole));
	return whole;
}

struct duo_hint_beyond duo_hints_beyond(const struct fi_info *hints,
					const struct fi_info *info,
					const struct duo_hint *fields,
					size_t count)
{
	const struct duo_hint *field;
	uint64_t requested, limit;

	for (field = fields; field < fields + count; field++) {
		requested = duo_hint_value(hints, field);
		limit = duo_hint_value(info, field);
		if (field->set ? requested & ~limit : requested > limit)
			return (struct duo_hint_beyond) { field, requested,
							  limit };
	}
	return (struct duo_hint_beyond) { NULL, 0, 0 };
}

bool duo_hints_within(const struct fi_info *hints, const struct fi_info *info,
		      const struct duo_hint *fields, size_t count)
{
	const struct duo_hint_beyond beyond =
		duo_hints_beyond(hints, info, fields, count);

	if (!beyond.field)
		return true;
	DUO_INFO(CORE, "no info returned: %s of the hints is 0x%" PRIx64
		 ", %s 0x%" PRIx64 "\n", beyond.field->name, beyond.requested,
		 beyond.field->set ? "supported are" : "more than",
		 beyond.limit);
	return false;
}

bool duo_hint_reject(const char *name, uint64_t requested)
{
	DUO_INFO(CORE, "no info returned: %s of the hints is %" PRIu64 "\n",
		 name, requested);
	return false;
}
