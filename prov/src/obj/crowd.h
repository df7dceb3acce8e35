/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* When a CQ looks again whether who waits is to yield: near_crowd(). Pure. */
#ifndef DUO_CROWD_H
#define DUO_CROWD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * When to look again: soon after the answer has changed, then less and less
 * often. All 0 at first. In ms, of any clock.
 */
struct duo_crowd_turn {
	uint64_t next;
	uint64_t wait;
	bool crowded;	/* as of the last look */
};

#define DUO_CROWD_SOON 100	/* ms */
#define DUO_CROWD_LATE 1600

static inline bool duo_crowd_due(const struct duo_crowd_turn *turn,
				  uint64_t now)
{
	return now >= turn->next;
}

static inline void duo_crowd_told(struct duo_crowd_turn *turn, uint64_t now,
				   bool crowded)
{
	if (!turn->wait || crowded != turn->crowded)
		turn->wait = DUO_CROWD_SOON;
	else if (turn->wait < DUO_CROWD_LATE)
		turn->wait *= 2;
	turn->next = now + turn->wait;
	turn->crowded = crowded;
}

#endif /* DUO_CROWD_H */
