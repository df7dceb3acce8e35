/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Matching: the posted receives of an endpoint in posting order, and its
 * unexpected messages in order of arrival, one pair of queues per kind
 * (untagged, tagged). Pure: calls no provider, takes no lock (the caller
 * holds the domain's). docs/matching.md has the rules.
 *
 * A queue of up to DUO_MATCH_LINEAR entries is searched from its head. A
 * longer one has an index: hash buckets by source and tag, less the bits in
 * "mask", the union of the bits that receives ignore. So an expected match
 * costs the same at any length. A receive that would make the mask longer than
 * DUO_MASK_BITS is in "wild", which is searched linearly, as are unexpected
 * messages for such a receive. The first search builds the index of posted
 * receives; an empty queue turns the index off. Cost: 64 KiB per index, from
 * its first use on; without memory for it, the search stays linear.
 */
#ifndef DUO_MATCH_H
#define DUO_MATCH_H

#include "queue/rx.h"

#define DUO_MATCH_LINEAR 16
#define DUO_BUCKETS 4096

struct duo_index {
	struct duo_rx_list *bucket;	/* [DUO_BUCKETS]; NULL: never used */
	bool on;
};

struct duo_match {
	struct duo_rx_list posted;
	size_t posted_count;
	size_t unexp_count;
	uint64_t seq;			/* seq of the next entry */
	uint64_t mask;			/* bits of the tag not hashed */
	struct duo_index by_want;	/* posted, by source and tag */
	struct duo_rx_list unexp;
	struct duo_rx_list wild;	/* posted, ignore more than mask */
	struct duo_index by_source;	/* unexpected, by source and tag */
	struct duo_index by_tag;	/* unexpected, by tag alone */
};

/* The messages that a receive matches; untagged: tag 0, all bits ignored. */
struct duo_want {
	fi_addr_t addr;		/* FI_ADDR_UNSPEC: any source */
	uint64_t tag;
	uint64_t ignore;	/* bits of the tag that are not compared */
};

/* True if a receive for *want matches a message of (addr, tag). */
static inline bool duo_want_takes(const struct duo_want *want, fi_addr_t addr,
				  uint64_t tag)
{
	return (want->addr == FI_ADDR_UNSPEC || want->addr == addr) &&
	       ((want->tag ^ tag) & ~want->ignore) == 0;
}

/* True if a message could match both a and b. */
static inline bool duo_want_overlap(const struct duo_want *a,
				    const struct duo_want *b)
{
	return (a->addr == FI_ADDR_UNSPEC || b->addr == FI_ADDR_UNSPEC ||
		a->addr == b->addr) &&
	       ((a->tag ^ b->tag) & ~(a->ignore | b->ignore)) == 0;
}

static inline struct duo_want duo_rx_want(const struct duo_rx *rx)
{
	return (struct duo_want) {
		.addr = rx->addr,
		.tag = rx->tag,
		.ignore = rx->ignore,
	};
}

static inline bool duo_rx_takes(const struct duo_rx *rx, fi_addr_t addr,
				uint64_t tag)
{
	const struct duo_want want = duo_rx_want(rx);

	return duo_want_takes(&want, addr, tag);
}

void duo_match_init(struct duo_match *match, enum duo_rx_kind kind);
void duo_match_fini(struct duo_match *match);
/* Inserts rx before a posted receive of the same source, tag and ignore. */
void duo_match_post_before(struct duo_match *match, struct duo_rx *posted,
			   struct duo_rx *rx);
/* Inserts rx by rx->seq, which the caller has set. Walks the queue. */
void duo_match_repost(struct duo_match *match, struct duo_rx *rx);
void duo_match_queue(struct duo_match *match, struct duo_rx *rx);
void duo_match_unqueue(struct duo_match *match, struct duo_rx *rx);
/* For duo_match_post() and duo_match_unpost(). */
void duo_match_learn(struct duo_match *match, uint64_t ignore);
void duo_match_add_want(struct duo_match *match, struct duo_rx *rx);
void duo_match_drop_want(struct duo_match *match, struct duo_rx *rx);

/* True if ignore has bits that the mask lacks. */
static inline bool duo_match_wild(const struct duo_match *match,
				  uint64_t ignore)
{
	return ignore & ~match->mask;
}

/* True if a receive that ignores these bits changes no index and no mask. */
DUO_INLINE bool duo_match_plain(const struct duo_match *match, uint64_t ignore)
{
	return !match->by_want.on && !duo_match_wild(match, ignore);
}

/* Appends rx, which is in the state POSTED. No index is on. */
DUO_INLINE void duo_match_append_plain(struct duo_match *match,
				       struct duo_rx *rx)
{
	rx->seq = match->seq++;
	TAILQ_INSERT_TAIL(&match->posted, rx, link);
	match->posted_count++;
}

DUO_INLINE void duo_match_append(struct duo_match *match, struct duo_rx *rx)
{
	duo_rx_become(rx, DUO_RX_POSTED);
	duo_match_append_plain(match, rx);
}

DUO_INLINE void duo_match_post(struct duo_match *match, struct duo_rx *rx)
{
	if (duo_match_wild(match, rx->ignore))
		duo_match_learn(match, rx->ignore);
	duo_match_append(match, rx);
	if (match->by_want.on)
		duo_match_add_want(match, rx);
}

/* Removes rx. The caller sets its next state. No index is on. */
DUO_INLINE void duo_match_unpost_plain(struct duo_match *match,
				       struct duo_rx *rx)
{
	assert(match->posted_count > 0);
	TAILQ_REMOVE(&match->posted, rx, link);
	match->posted_count--;
}

DUO_INLINE void duo_match_unpost(struct duo_match *match, struct duo_rx *rx)
{
	if (match->by_want.on)
		duo_match_drop_want(match, rx);
	duo_match_unpost_plain(match, rx);
}

/* Returns the first posted receive for a message of (addr, tag), or NULL. */
struct duo_rx *duo_match_posted(struct duo_match *match, fi_addr_t addr,
				uint64_t tag);
/* duo_match_posted(), with the test of the oldest posted receive inline. */
static inline struct duo_rx *duo_match_first(struct duo_match *match,
					     fi_addr_t addr, uint64_t tag)
{
	struct duo_rx *rx = TAILQ_FIRST(&match->posted);

	return !rx || duo_rx_takes(rx, addr, tag) ? rx :
	       duo_match_posted(match, addr, tag);
}

/* Returns the first unexpected message that *want matches, or NULL. */
struct duo_rx *duo_match_unexp(struct duo_match *match,
			       const struct duo_want *want);
/* Returns the first posted receive with the application's context, or NULL. */
struct duo_rx *duo_match_context(struct duo_match *match, void *context);

#endif /* DUO_MATCH_H */
