/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "match/match.h"

void near_match_init(struct near_match *match)
{
	int kind;

	match->order = 0;
	for (kind = 0; kind < NEAR_KINDS; kind++) {
		near_list_init(&match->any[kind]);
		near_list_init(&match->unexp[kind]);
	}
}

void near_source_init(struct near_source *source, struct near_peer *peer)
{
	int kind;

	source->peer = peer;
	source->gone = false;
	near_list_init(&source->pieces);
	for (kind = 0; kind < NEAR_KINDS; kind++) {
		near_list_init(&source->posted[kind]);
		near_list_init(&source->unexp[kind]);
	}
}

void near_match_queue(struct near_match *match, struct near_unexp *unexp)
{
	unsigned int kind = unexp->msg.flags & NEAR_TAGGED;

	near_list_append(&match->unexp[kind], &unexp->link);
	near_list_append(&unexp->source->unexp[kind], &unexp->by_source);
}

void near_match_unqueue(struct near_unexp *unexp)
{
	near_list_remove(&unexp->link);
	near_list_remove(&unexp->by_source);
}

static bool near_unexp_matches(const struct near_unexp *unexp,
			       const struct near_recv *recv)
{
	return !((recv->tag ^ unexp->msg.tag) & ~recv->ignore);
}

struct near_unexp *near_match_unexp(const struct near_match *match,
				    unsigned int kind,
				    const struct near_recv *recv)
{
	const struct near_link *head = &match->unexp[kind];
	struct near_link *link;
	struct near_unexp *unexp;

	if (recv->source) {
		head = &recv->source->unexp[kind];
		for (link = head->next; link != head; link = link->next) {
			unexp = near_container(link, struct near_unexp,
					       by_source);
			if (near_unexp_matches(unexp, recv))
				return unexp;
		}
		return NULL;
	}
	for (link = head->next; link != head; link = link->next) {
		unexp = near_container(link, struct near_unexp, link);
		if (near_unexp_matches(unexp, recv))
			return unexp;
	}
	return NULL;
}

struct near_recv *near_match_context(const struct near_link *head,
				     const void *context)
{
	struct near_link *link;
	struct near_recv *recv;

	for (link = head->next; link != head; link = link->next) {
		recv = near_container(link, struct near_recv, link);
		if (recv->context == context)
			return recv;
	}
	return NULL;
}
