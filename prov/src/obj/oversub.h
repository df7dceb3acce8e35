/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* When a CQ looks again whether who waits is to yield: near_oversub(). Pure. */
#ifndef DUO_OVERSUB_H
#define DUO_OVERSUB_H

#include <stdbool.h>
#include <stdint.h>

/*
 * When to look again: soon after the answer has changed, then less and less
 * often. All 0 at first. In ms, of any clock.
 */
struct duo_oversub_check {
	uint64_t next;
	uint64_t wait;
	bool oversubscribed;	/* as of the last look */
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
