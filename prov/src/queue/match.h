/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The posted and the unexpected queue. An endpoint has both for each kind of
 * receives, untagged and tagged: "The queues" in docs/matching.md. Lock: the
 * group's.
 *
 * A queue with more than DUO_MATCH_LINEAR entries has an index: a hash table by
 * source and tag, of 64 KiB. The unexpected queue has a second index, by tag
 * alone, for receives from any source. When the posted queue becomes empty, its
 * index is turned off. If there is no memory for an index, searches are linear.
 *
 * The hash function ignores the tag bits of `mask`. If a receive ignores other
 * tag bits, duo_match_learn() adds these bits to `mask`, but only if `mask`
 * then has at most 16 bits. Otherwise the receive is *wild*: it joins the list
 * `wild`, and each search of the posted queue reads this list, too. The search
 * for a message that matches a wild receive reads the whole unexpected queue.
 */
#ifndef DUO_MATCH_H
#define DUO_MATCH_H

#include "queue/rx.h"

#define DUO_MATCH_LINEAR 16
#define DUO_BUCKETS 4096

struct duo_index {
	struct duo_rx_list *bucket; /* DUO_BUCKETS lists; NULL: not allocated */
	bool on;
};

struct duo_match {
	struct duo_rx_list posted;
	size_t posted_count;
	size_t unexp_count;
	uint64_t seq; /* order number (duo_rx.seq) for the next new entry */
	uint64_t mask;		/* tag bits that the hash function ignores */
	struct duo_index by_want;	/* posted receives, by source and tag */
	struct duo_rx_list unexp;
	/* wild receives: they ignore tag bits that the hash function uses */
	struct duo_rx_list wild;
	struct duo_index by_source; /* unexpected messages, by source and tag */
	struct duo_index by_tag;	/* unexpected messages, by tag alone */
};

/* True if a receive for *want matches a message with this source and tag. */
static inline bool duo_want_matches(const struct duo_want *want, fi_addr_t addr,
				    uint64_t tag)
{
	return (want->addr == FI_ADDR_UNSPEC || want->addr == addr) &&
	       ((want->tag ^ tag) & ~want->ignore) == 0;
}

/* True if some message could match both a and b. */
static inline bool duo_want_overlap(const struct duo_want *a,
				    const struct duo_want *b)
{
	return (a->addr == FI_ADDR_UNSPEC || b->addr == FI_ADDR_UNSPEC ||
		a->addr == b->addr) &&
	       ((a->tag ^ b->tag) & ~(a->ignore | b->ignore)) == 0;
}

static inline bool duo_rx_matches(const struct duo_rx *rx, fi_addr_t addr,
				  uint64_t tag)
{
	return duo_want_matches(&rx->want, addr, tag);
}

void duo_match_init(struct duo_match *match, enum duo_rx_kind kind);
void duo_match_fini(struct duo_match *match);
/*
 * Inserts rx into the posted queue, directly before the posted receive
 * `posted`. rx gets the order number of `posted`. Both must have the same
 * source, tag and ignored bits.
 */
void duo_match_post_before(struct duo_match *match, struct duo_rx *posted,
			   struct duo_rx *rx);
/* Inserts rx into the posted queue at the place that rx->seq determines. */
void duo_match_repost(struct duo_match *match, struct duo_rx *rx);
/* Appends the local message rx to the unexpected queue. */
void duo_match_queue(struct duo_match *match, struct duo_rx *rx);
/* Removes the local message rx from the unexpected queue. Keeps rx->state. */
void duo_match_unqueue(struct duo_match *match, struct duo_rx *rx);
/*
 * duo_match_post() and duo_match_unpost() call the next three functions for
 * wild receives, or while the posted queue has an index.
 */
void duo_match_learn(struct duo_match *match, uint64_t ignore);
void duo_match_add_want(struct duo_match *match, struct duo_rx *rx);
void duo_match_drop_want(struct duo_match *match, struct duo_rx *rx);

/* True if a receive that ignores these tag bits belongs to the list `wild`. */
static inline bool duo_match_wild(const struct duo_match *match,
				  uint64_t ignore)
{
	return ignore & ~match->mask;
}

/*
 * True if duo_match_append_plain() is sufficient to post a receive that ignores
 * these tag bits, because the post changes neither match->mask nor an index.
 */
DUO_INLINE bool duo_match_plain(const struct duo_match *match, uint64_t ignore)
{
	return !match->by_want.on && !duo_match_wild(match, ignore);
}

/* Appends rx (state DUO_RX_POSTED) to the posted queue, but to no index. */
DUO_INLINE void duo_match_append_plain(struct duo_match *match,
				       struct duo_rx *rx)
{
	rx->seq = match->seq++;
	TAILQ_INSERT_TAIL(&match->posted, rx, link);
	match->posted_count++;
}

/* Appends rx to the posted queue, and adds it to the index if that is on. */
DUO_INLINE void duo_match_post(struct duo_match *match, struct duo_rx *rx)
{
	if (duo_match_wild(match, rx->ignore))
		duo_match_learn(match, rx->ignore);
	duo_rx_become(rx, DUO_RX_POSTED);
	duo_match_append_plain(match, rx);
	if (match->by_want.on)
		duo_match_add_want(match, rx);
}

/* Removes rx from the posted queue; rx must be in no index. Keeps rx->state. */
DUO_INLINE void duo_match_unpost_plain(struct duo_match *match,
				       struct duo_rx *rx)
{
	assert(match->posted_count > 0);
	TAILQ_REMOVE(&match->posted, rx, link);
	match->posted_count--;
}

/* Removes rx from the posted queue and from its index. Keeps rx->state. */
DUO_INLINE void duo_match_unpost(struct duo_match *match, struct duo_rx *rx)
{
	if (match->by_want.on)
		duo_match_drop_want(match, rx);
	duo_match_unpost_plain(match, rx);
}

/* Returns the oldest receive that matches this source and tag; NULL: none. */
struct duo_rx *duo_match_posted(struct duo_match *match, fi_addr_t addr,
				uint64_t tag);
/* Returns the oldest unexpected message that matches *want; NULL: none. */
struct duo_rx *duo_match_unexp(struct duo_match *match,
			       const struct duo_want *want);
/* Returns the oldest posted receive with this context; NULL: none. */
struct duo_rx *duo_match_context(struct duo_match *match, void *context);

#endif /* DUO_MATCH_H */
