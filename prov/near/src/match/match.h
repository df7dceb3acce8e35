/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Which receive takes which message: the first posted that matches takes the
 * message, the first that has come goes to the receive. Messages with a tag
 * and without are two worlds. Pure: queues of what others own.
 *
 * A receive that names its source waits with that source, one from any source
 * waits with all of those; order tells which was posted first.
 */
#ifndef NEAR_MATCH_MATCH_H
#define NEAR_MATCH_MATCH_H

#include "link/list.h"
#include "link/pool.h"
#include "near.h"

#define NEAR_KINDS 2	/* index: flags & NEAR_TAGGED */

/* What one peer has sent and what waits for it alone. */
struct near_source {
	struct near_peer *peer;
	uint64_t addr;		/* the owner's name for it */
	bool gone;		/* nothing comes from it any more */
	struct near_link posted[NEAR_KINDS];
	struct near_link unexp[NEAR_KINDS];
	struct near_link pieces;	/* of multi-receives: reported in order */
};

struct near_recv {
	struct near_pooled pooled;
	struct near_link link;
	uint64_t order;
	uint64_t tag;		/* with ignore ~0 where there are none */
	uint64_t ignore;
	struct near_source *source;	/* NULL: any */
	void *context;
	uint64_t flags;		/* the owner's, as the next ones */
	size_t len;
	uint32_t iov_count;
	uint32_t busy;		/* multi-receive: messages on their way in */
	bool posted;
	bool cancelled;		/* and pieces of it are still busy */
	bool ended;		/* a piece that others have to precede */
	int err;		/* of such a one */
	uint64_t from;		/* owner's name of msg's source */
	struct near_recv *multi;	/* a piece of this one */
	struct near_msg msg;	/* that is being received */
	struct iovec iov[NEAR_IOV_MAX];
};

#define NEAR_UNEXP_BYTES 48

/* A message that nobody has asked for yet. */
struct near_unexp {
	struct near_pooled pooled;
	struct near_link link;		/* all of the kind, in order */
	struct near_link by_source;	/* those of one source */
	struct near_source *source;
	void *claim;			/* context of the claim */
	struct near_msg msg;		/* payload: bytes, or block */
	void *block;
	uint8_t bytes[NEAR_UNEXP_BYTES];
};

struct near_match {
	struct near_link any[NEAR_KINDS];
	struct near_link unexp[NEAR_KINDS];
	uint64_t order;
};

void near_match_init(struct near_match *match);
void near_source_init(struct near_source *source, struct near_peer *peer);

static inline struct near_recv *near_recv_first(const struct near_link *head,
						uint64_t tag)
{
	struct near_link *link;
	struct near_recv *recv;

	for (link = head->next; link != head; link = link->next) {
		recv = near_container(link, struct near_recv, link);
		if (!((recv->tag ^ tag) & ~recv->ignore))
			return recv;
	}
	return NULL;
}

/* The posted receive that takes such a message; it stays posted. */
static inline struct near_recv *near_match_recv(const struct near_match *match,
						const struct near_source *source,
						unsigned int kind, uint64_t tag)
{
	struct near_recv *any = near_recv_first(&match->any[kind], tag);
	struct near_recv *own = near_recv_first(&source->posted[kind], tag);

	if (!own || (any && any->order < own->order))
		return any;
	return own;
}

static inline void near_match_post(struct near_match *match, unsigned int kind,
				   struct near_recv *recv)
{
	recv->order = match->order++;
	near_list_append(recv->source ? &recv->source->posted[kind] :
					&match->any[kind], &recv->link);
}

static inline void near_match_unpost(struct near_recv *recv)
{
	near_list_remove(&recv->link);
}

void near_match_queue(struct near_match *match, struct near_unexp *unexp);
void near_match_unqueue(struct near_unexp *unexp);

/* The first message that recv, not posted, would take; it stays queued. */
struct near_unexp *near_match_unexp(const struct near_match *match,
				    unsigned int kind,
				    const struct near_recv *recv);

/* The first posted receive with that context, of either kind. */
struct near_recv *near_match_context(const struct near_link *head,
				     const void *context);

#endif /* NEAR_MATCH_MATCH_H */
