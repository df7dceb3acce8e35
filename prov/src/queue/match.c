/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <assert.h>
#include <stdlib.h>

#include "queue/match.h"

/* maximum number of bits that duo_match_learn() sets in duo_match.mask */
#define DUO_MASK_BITS 16

void duo_match_init(struct duo_match *match, enum duo_rx_kind kind)
{
	*match = (struct duo_match) {
		.mask = kind == DUO_TAGGED ? 0 : ~0ULL,
	};
	TAILQ_INIT(&match->posted);
	TAILQ_INIT(&match->unexp);
	TAILQ_INIT(&match->wild);
}

void duo_match_fini(struct duo_match *match)
{
	free(match->by_want.bucket);
	free(match->by_source.bucket);
	free(match->by_tag.bucket);
}

static struct duo_rx_list *duo_bucket(const struct duo_match *match,
				      const struct duo_index *index,
				      fi_addr_t addr, uint64_t tag)
{
	uint64_t hash = addr * 0x9e3779b97f4a7c15ULL ^
			(tag & ~match->mask) * 0xc2b2ae3d27d4eb4fULL;

	return &index->bucket[(hash ^ hash >> 28) % DUO_BUCKETS];
}

/*
 * Turns on an index, with empty buckets. False: there is no memory, and the
 * index stays off.
 */
static bool duo_index_start(struct duo_index *index)
{
	bool empty = index->bucket && !index->on;
	size_t i;

	if (!index->bucket)
		index->bucket = malloc(DUO_BUCKETS * sizeof(*index->bucket));
	index->on = index->bucket;
	for (i = 0; index->on && !empty && i < DUO_BUCKETS; i++)
		TAILQ_INIT(&index->bucket[i]);
	return index->on;
}

static struct duo_rx_list *duo_match_want_list(struct duo_match *match,
					       const struct duo_rx *rx)
{
	return duo_match_wild(match, rx->ignore) ? &match->wild :
	       duo_bucket(match, &match->by_want, rx->addr,
			  rx->tag);
}

void duo_match_add_want(struct duo_match *match, struct duo_rx *rx)
{
	TAILQ_INSERT_TAIL(duo_match_want_list(match, rx), rx, key_link);
}

static void duo_match_add_unexp(struct duo_match *match, struct duo_rx *rx)
{
	TAILQ_INSERT_TAIL(duo_bucket(match, &match->by_source, rx->addr,
				     rx->tag), rx, key_link);
	TAILQ_INSERT_TAIL(duo_bucket(match, &match->by_tag, 0, rx->tag),
			  rx, tag_link);
}

static void duo_match_index_posted(struct duo_match *match)
{
	struct duo_rx *rx;

	TAILQ_INIT(&match->wild);
	if (!duo_index_start(&match->by_want))
		return;
	TAILQ_FOREACH(rx, &match->posted, link)
		duo_match_add_want(match, rx);
}

static void duo_match_index_unexp(struct duo_match *match)
{
	struct duo_rx *rx;

	if (!duo_index_start(&match->by_source))
		return;
	if (!duo_index_start(&match->by_tag)) {
		match->by_source.on = false;
		return;
	}
	TAILQ_FOREACH(rx, &match->unexp, link)
		duo_match_add_unexp(match, rx);
}

/*
 * Adds the tag bits that a receive ignores to match->mask, and rebuilds the
 * indexes that are on. If match->mask would then have more than DUO_MASK_BITS
 * bits, changes nothing.
 */
void duo_match_learn(struct duo_match *match, uint64_t ignore)
{
	if (__builtin_popcountll(match->mask | ignore) > DUO_MASK_BITS)
		return;
	match->mask |= ignore;
	if (match->by_want.on)
		duo_match_index_posted(match);
	if (match->by_source.on)
		duo_match_index_unexp(match);
}

void duo_match_drop_want(struct duo_match *match, struct duo_rx *rx)
{
	TAILQ_REMOVE(duo_match_want_list(match, rx), rx, key_link);
	if (match->posted_count == 1)
		match->by_want.on = false;
}

void duo_match_post_before(struct duo_match *match, struct duo_rx *posted,
			   struct duo_rx *rx)
{
	duo_rx_become(rx, DUO_RX_POSTED);
	rx->seq = posted->seq;
	TAILQ_INSERT_BEFORE(posted, rx, link);
	if (match->by_want.on)
		TAILQ_INSERT_BEFORE(posted, rx, key_link);
	match->posted_count++;
}

void duo_match_repost(struct duo_match *match, struct duo_rx *rx)
{
	struct duo_rx_list *wants;

	duo_rx_become(rx, DUO_RX_POSTED);
	DUO_RX_INSERT(&match->posted, rx, link);
	match->posted_count++;
	if (match->by_want.on) {
		wants = duo_match_want_list(match, rx);
		DUO_RX_INSERT(wants, rx, key_link);
	}
}

void duo_match_queue(struct duo_match *match, struct duo_rx *rx)
{
	duo_rx_become(rx, DUO_RX_UNEXP);
	rx->seq = match->seq++;
	TAILQ_INSERT_TAIL(&match->unexp, rx, link);
	if (match->by_source.on)
		duo_match_add_unexp(match, rx);
	else if (match->unexp_count >= DUO_MATCH_LINEAR)
		duo_match_index_unexp(match);
	match->unexp_count++;
}

void duo_match_unqueue(struct duo_match *match, struct duo_rx *rx)
{
	assert(match->unexp_count > 0 && rx->state == DUO_RX_UNEXP);
	if (match->by_source.on) {
		TAILQ_REMOVE(duo_bucket(match, &match->by_source,
					rx->addr, rx->tag), rx,
			     key_link);
		TAILQ_REMOVE(duo_bucket(match, &match->by_tag, 0,
					rx->tag), rx, tag_link);
	}
	TAILQ_REMOVE(&match->unexp, rx, link);
	match->unexp_count--;
}

/*
 * Searches a list that is linked by key_link for the first receive that matches
 * a message with this source and tag. If *best is NULL or later than this
 * receive, stores this receive in *best.
 */
static void duo_match_earlier(const struct duo_rx_list *list, fi_addr_t addr,
			      uint64_t tag, struct duo_rx **best)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, list, key_link) {
		if (*best && (*best)->seq < rx->seq)
			return;
		if (duo_rx_matches(rx, addr, tag)) {
			*best = rx;
			return;
		}
	}
}

struct duo_rx *duo_match_posted(struct duo_match *match, fi_addr_t addr,
				uint64_t tag)
{
	struct duo_rx *rx = TAILQ_FIRST(&match->posted), *best = NULL;

	if (!rx || duo_rx_matches(rx, addr, tag))
		return rx;
	if (match->posted_count > DUO_MATCH_LINEAR && !match->by_want.on)
		duo_match_index_posted(match);
	if (match->posted_count > DUO_MATCH_LINEAR && match->by_want.on) {
		duo_match_earlier(duo_bucket(match, &match->by_want, addr, tag),
				  addr, tag, &best);
		duo_match_earlier(duo_bucket(match, &match->by_want,
					     FI_ADDR_UNSPEC, tag),
				  addr, tag, &best);
		duo_match_earlier(&match->wild, addr, tag, &best);
		return best;
	}
	TAILQ_FOREACH(rx, &match->posted, link)
		if (duo_rx_matches(rx, addr, tag))
			break;
	return rx;
}

struct duo_rx *duo_match_unexp(struct duo_match *match,
			       const struct duo_want *want)
{
	const struct duo_rx_list *list;
	struct duo_rx *rx;
	bool indexed = match->by_source.on &&
		       match->unexp_count > DUO_MATCH_LINEAR;

	if (indexed && duo_match_wild(match, want->ignore))
		duo_match_learn(match, want->ignore);
	if (!indexed || duo_match_wild(match, want->ignore)) {
		TAILQ_FOREACH(rx, &match->unexp, link)
			if (duo_want_matches(want, rx->addr, rx->tag))
				break;
	} else if (want->addr == FI_ADDR_UNSPEC) {
		list = duo_bucket(match, &match->by_tag, 0, want->tag);
		TAILQ_FOREACH(rx, list, tag_link)
			if (duo_want_matches(want, rx->addr, rx->tag))
				break;
	} else {
		list = duo_bucket(match, &match->by_source, want->addr,
				  want->tag);
		TAILQ_FOREACH(rx, list, key_link)
			if (duo_want_matches(want, rx->addr, rx->tag))
				break;
	}
	return rx;
}

struct duo_rx *duo_match_context(struct duo_match *match, void *context)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &match->posted, link)
		if (rx->context == context)
			break;
	return rx;
}
