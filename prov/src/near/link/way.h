/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * How a large message is fetched. Which way is the fastest is a property of
 * the machine, of the message's size and of the ring, so it is measured: each
 * way is tried a few times, then the one that took the least is taken, as long
 * as the mean of what it takes is less than that of the others. Pure; costs two
 * looks at the clock for each message that is measured: each that goes another
 * way than the first, and one in eight of those that are read at once.
 */
#ifndef NEAR_LINK_WAY_H
#define NEAR_LINK_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum near_way {
	NEAR_WAY_READ,		/* the receiver reads the sender's memory */
	NEAR_WAY_SHARE,		/* and the sender writes to the receiver's */
	NEAR_WAY_PIECES,	/* through the ring, both ends copying */
	NEAR_WAYS
};

#define NEAR_WAY_BIT(way) (1u << (way))
#define NEAR_WAY_ALL (NEAR_WAY_BIT(NEAR_WAYS) - 1)
#define NEAR_WAY_TRIES 4	/* of each way and size */
#define NEAR_WAY_MEMORY 16	/* messages that a mean is of, about */
#define NEAR_WAY_MIN 4096	/* bytes: sizes are powers of two from here */
#define NEAR_WAY_SIZES 10	/* the last is 2 MiB and more */
#define NEAR_WAY_UNTIMED 7	/* messages that are read between two that are
				 * timed */

struct near_ways {
	struct near_way_cost {
		uint64_t cost;		/* ns per MiB */
		uint32_t begun;		/* tries */
		uint32_t known;		/* samples; it does not wrap */
	} cost[NEAR_WAY_SIZES][NEAR_WAYS];
	uint8_t untimed[NEAR_WAY_SIZES];	/* see near_way_reads() */
};

/* Of those whose bits are set in allowed, which must be one at least. */
enum near_way near_way_choose(const struct near_ways *ways, size_t len,
			      unsigned int allowed);

/* Whether it was tried often enough, and if not, that it is tried now. */
bool near_way_known(const struct near_ways *ways, enum near_way way,
		    size_t len);
void near_way_begin(struct near_ways *ways, enum near_way way, size_t len);

/*
 * Whether one more may be read without a look at what is best: how many is told
 * each time that reading was found to be, near_way_reads_on().
 */
bool near_way_reads(struct near_ways *ways, size_t len);
void near_way_reads_on(struct near_ways *ways, size_t len);

/* A message of len bytes, at least one, took so long. */
void near_way_learn(struct near_ways *ways, enum near_way way, size_t len,
		    uint64_t ns);

#endif /* NEAR_LINK_WAY_H */
