/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Is it worth to give one's processor away while one waits for others? Only if
 * one of them may need just this one. Where each can have one of its own, a
 * processor that is given away goes to strangers, for milliseconds.
 *
 * Cost: two system calls for each process, less where there are processors
 * enough for all: for those who have nothing else to do, and not each time.
 */
#ifndef NEAR_CROWD_H
#define NEAR_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The processes that we exchange messages with, in any order, some more than
 * once perhaps, and ourselves or not; 0: one without a pid here. Of so many
 * others nothing is known but that they are there. Are those of all these that
 * can run nowhere but on the processors of this thread, and we, more than these
 * processors? Or those that can run nowhere but on these and on those of whom
 * else runs on one of them? pid[] is sorted afterwards.
 */
bool near_crowd(pid_t *pid, size_t count, size_t others);

/* Of so many endpoints so many are known, which there may be more of. */
static inline size_t near_crowd_others(size_t endpoints, size_t known)
{
	return endpoints > known ? endpoints - known : 0;
}

/*
 * When to look again: soon after the answer has changed, then less and less
 * often. All 0 at first. In ms, of any clock.
 */
struct near_crowd_turn {
	uint64_t next;
	uint64_t wait;
	bool crowded;	/* as of the last look */
};

#define NEAR_CROWD_SOON 100	/* ms */
#define NEAR_CROWD_LATE 1600

static inline bool near_crowd_due(const struct near_crowd_turn *turn,
				  uint64_t now)
{
	return now >= turn->next;
}

/* More are known than at the last look, which may have been long ago. */
static inline void near_crowd_again(struct near_crowd_turn *turn)
{
	turn->next = turn->wait = 0;
}

static inline void near_crowd_told(struct near_crowd_turn *turn, uint64_t now,
				   bool crowded)
{
	if (!turn->wait || crowded != turn->crowded)
		turn->wait = NEAR_CROWD_SOON;
	else if (turn->wait < NEAR_CROWD_LATE)
		turn->wait *= 2;
	turn->next = now + turn->wait;
	turn->crowded = crowded;
}

#endif /* NEAR_CROWD_H */
