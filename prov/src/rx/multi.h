/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MULTI_RECV. A buffer is an owner, which is in no queue of receives, and
 * pieces, which are receives as any other: one message each. The piece that
 * is posted has all that is left of the buffer. When a message takes it, it
 * is cut to the message's size, and the rest becomes the next piece, in the
 * same place of the queue. So whatever holds for a receive holds for a
 * buffer, and the core never sees FI_MULTI_RECV.
 *
 * A local message has its size when it asks for a receive: the rest is posted
 * before the message is in. The core says it when the message is in; until
 * then the buffer takes no other.
 *
 * The owner has a reference of each piece and ends with the last one: that
 * releases the buffer. The caller holds the domain's lock. docs/matching.md
 * has the order among buffers and receives.
 *
 * Cost: two entries a buffer, one more for each message that is under way.
 */
#ifndef DUO_MULTI_H
#define DUO_MULTI_H

#include "obj/ep.h"

struct duo_recv;

/* multi_post.c: as the application asks */
ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv);
/* Of a posted piece; of a buffer that has none. */
ssize_t duo_multi_cancel(struct duo_rx *rx);
ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context);
/* Posts what is ready; in no callback of the peer. */
void duo_multi_resume(struct duo_ep *ep);

/* multi.c: as messages come */
/* Is a buffer before this receive, for the same messages? Then it must not
 * be on the core. */
bool duo_multi_blocks(const struct duo_rx *rx);
/* Takes a posted piece for a local message; what is left of the buffer is
 * posted again. False: the core has matched it. */
bool duo_multi_take(struct duo_rx *rx, size_t msg_size);
/* A message is in: its completion. */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src);
/* The same for the core, which had all that was left of the buffer. */
void duo_multi_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			 fi_addr_t src);
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry);
/* A piece has ended in an error, which was reported. */
void duo_multi_end(struct duo_rx *rx);
/* The same for a piece that was all that was left. */
void duo_multi_abort(struct duo_rx *rx);

/* Between the two files. */
bool duo_multi_room(const struct duo_ep *ep, size_t left);
/* A piece of the buffer, in no queue; NULL: too many receives. */
struct duo_rx *duo_multi_sub(struct duo_rx *owner, void *buf, size_t len,
			     void *desc);
/* No message goes into the buffer any more. */
void duo_multi_close(struct duo_rx *owner);
/* Tells the application that the buffer, closed, is its own again. */
void duo_multi_release(struct duo_rx *owner);
/* Gives a piece to the core, which had the one before it, so all that must
 * be there first is. If it refuses, the buffer ends early. */
void duo_multi_to_core(struct duo_rx *rx);

#endif /* DUO_MULTI_H */
