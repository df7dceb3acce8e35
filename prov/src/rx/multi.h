/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MULTI_RECV. A multi-receive buffer has an owner entry, which is in no
 * queue of receives, and sub-receives, each an ordinary receive for one
 * message. The posted sub-receive, the remainder, has all unused space of the
 * buffer. When a message matches the remainder, the remainder is cut to the
 * size of the message. The space behind the message becomes the next
 * sub-receive, in the same place of the posted queue. So all rules for receives
 * also hold for buffers, and the core never gets FI_MULTI_RECV.
 *
 * The size of a local message is known when it matches. So the next remainder
 * is posted before the message is received. The core reports the size only
 * after it has received the message. Until that report no other message can
 * match the buffer.
 *
 * The owner counts its sub-receives; the last one that ends releases the
 * buffer. Lock: the domain's. docs/matching.md has the order among buffers and
 * receives.
 *
 * Cost: two entries for a buffer, and one for each message being received.
 */
#ifndef DUO_MULTI_H
#define DUO_MULTI_H

#include "obj/ep.h"

struct duo_recv;

/* multi_post.c: calls of the application */
ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv);
/*
 * Cancel a buffer. duo_multi_cancel() is for a posted remainder.
 * duo_multi_cancel_context() finds a buffer that has no posted remainder, by
 * the application's context. Return as fi_cancel(3).
 */
ssize_t duo_multi_cancel(struct duo_rx *rx);
ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context);
/*
 * Posts the remainders in ep->multi.ready. Must not be called in a callback of
 * the local transport, because it starts receives.
 */
void duo_multi_resume(struct duo_ep *ep);

/* multi.c: messages */
/*
 * True if rx must not go to the core yet, because an earlier open multi-receive
 * buffer or an earlier blocked receive overlaps with rx.
 */
bool duo_multi_blocks(const struct duo_rx *rx);
/*
 * Removes a remainder from the posted queue for a local message of msg_size
 * bytes, and posts the next remainder. Returns false if the core has matched
 * the remainder.
 */
bool duo_multi_take(struct duo_rx *rx, size_t msg_size);
/* Reports the completion of a sub-receive. The last one releases the buffer. */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src);
/*
 * Handles the core's completion of the remainder rx: cuts rx to the size of the
 * message, posts the next remainder, and reports the completion.
 */
void duo_multi_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			 fi_addr_t src);
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry);
/*
 * Ends a sub-receive whose error has been reported. The last one releases the
 * buffer.
 */
void duo_multi_end(struct duo_rx *rx);
/*
 * Ends a buffer whose remainder rx has failed: duo_multi_close(), then
 * duo_multi_end().
 */
void duo_multi_abort(struct duo_rx *rx);

/* Used by both files. True if "left" bytes are enough for a further message. */
bool duo_multi_room(const struct duo_ep *ep, size_t left);
/* Returns a new sub-receive of the buffer, in no queue. NULL: no free entry. */
struct duo_rx *duo_multi_sub(struct duo_rx *owner, void *buf, size_t len,
			     void *desc);
/* Closes the buffer: no further message matches it. */
void duo_multi_close(struct duo_rx *owner);
/*
 * Reports that a closed buffer is released, or canceled, and frees its owner
 * entry. All sub-receives must have ended.
 */
void duo_multi_release(struct duo_rx *owner);
/*
 * Posts the remainder rx to the core. The core must have had the previous
 * remainder, and therefore has all receives that must precede rx. Ends the
 * buffer if the core rejects rx.
 */
void duo_multi_to_core(struct duo_rx *rx);

#endif /* DUO_MULTI_H */
