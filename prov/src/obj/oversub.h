/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Decides when a CQ checks again whether CPUs are oversubscribed. Takes no lock
 * and makes no system call.
 */
#ifndef DUO_OVERSUB_H
#define DUO_OVERSUB_H

#include <stdbool.h>
#include <stdint.h>

/*
 * State of the checks for oversubscription, initially 0. After a check with a
 * new result, the next check is due after DUO_OVERSUB_SOON. Each check with the
 * same result as before doubles this interval, up to DUO_OVERSUB_LATE.
 */
struct duo_oversub_check {
	uint64_t next;		/* time of the next check, ms */
	uint64_t wait;	/* interval from the last check to the next, ms */
	bool oversubscribed;	/* result of the last check */
};

#define DUO_OVERSUB_SOON 100	/* ms */
#define DUO_OVERSUB_LATE 1600

static inline bool duo_oversub_due(const struct duo_oversub_check *check,
				   uint64_t now)
{
	return now >= check->next;
}

static inline void duo_oversub_update(struct duo_oversub_check *check,
				      uint64_t now, bool oversubscribed)
{
	if (!check->wait || oversubscribed != check->oversubscribed)
		check->wait = DUO_OVERSUB_SOON;
	else if (check->wait < DUO_OVERSUB_LATE)
		check->wait *= 2;
	check->next = now + check->wait;
	check->oversubscribed = oversubscribed;
}

#endif /* DUO_OVERSUB_H */
