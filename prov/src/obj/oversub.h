/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Intervals of a CQ's checks for oversubscription: near_oversub(). Pure. */
#ifndef DUO_OVERSUB_H
#define DUO_OVERSUB_H

#include <stdbool.h>
#include <stdint.h>

/*
 * After a change of the result the intervals are short, then they double.
 * Times are ms of any clock; all fields are 0 initially.
 */
struct duo_oversub_check {
	uint64_t next;		/* time of the next check */
	uint64_t wait;		/* interval */
	bool oversubscribed;	/* result of the last check */
};

#define DUO_OVERSUB_SOON 100	/* ms */
#define DUO_OVERSUB_LATE 1600

static inline bool duo_oversub_due(const struct duo_oversub_check *turn,
				   uint64_t now)
{
	return now >= turn->next;
}

static inline void duo_oversub_update(struct duo_oversub_check *turn,
				      uint64_t now, bool oversubscribed)
{
	if (!turn->wait || oversubscribed != turn->oversubscribed)
		turn->wait = DUO_OVERSUB_SOON;
	else if (turn->wait < DUO_OVERSUB_LATE)
		turn->wait *= 2;
	turn->next = now + turn->wait;
	turn->oversubscribed = oversubscribed;
}

#endif /* DUO_OVERSUB_H */
