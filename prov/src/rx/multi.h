/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MULTI_RECV. A buffer has an owner entry, which is in no queue of receives,
 * and sub-receives, which are ordinary receives for one message each. The
 * posted sub-receive has all unused space of the buffer, the remainder. When it
 * matches a message, it is cut to the message's size, and the space behind
 * becomes the next sub-receive, in the same place of the queue. So the rules of
 * receives hold for buffers, and the core never gets FI_MULTI_RECV.
 *
 * The size of a local message is known when it is matched, so the remainder is
 * posted before the message is received. The core reports a size only after it
 * has received the message; until then the buffer matches no other message.
 *
 * The owner counts its sub-receives; the last one that ends releases the
 * buffer. The caller holds the domain's lock. docs/matching.md has the order
 * among buffers and receives.
 *
 * Cost: two entries a buffer, and one for each message being received.
 */
#ifndef DUO_MULTI_H
#define DUO_MULTI_H

#include "obj/ep.h"

struct duo_recv;

/* multi_post.c: the application's calls */
ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv);
/* Cancel a buffer: by its posted sub-receive; without one, by its context. */
ssize_t duo_multi_cancel(struct duo_rx *rx);
ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context);
/* Posts ready remainders. Must not be called in a transport's callback. */
void duo_multi_resume(struct duo_ep *ep);

/* multi.c: messages */
/* True if a buffer or blocked receive before rx keeps it from the core. */
bool duo_multi_blocks(const struct duo_rx *rx);
/* Unposts a sub-receive for a local message and posts the remainder. Returns
 * false if the core has matched it. */
bool duo_multi_take(struct duo_rx *rx, size_t msg_size);
/* Reports the completion of a sub-receive. */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src);
/* Cuts rx to the message of the core, which had the remainder; reports it. */
void duo_multi_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			 fi_addr_t src);
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry);
/* Drops a sub-receive's reference after its error was reported. */
void duo_multi_end(struct duo_rx *rx);
/* Closes the buffer, then drops the remainder's reference in the same way. */
void duo_multi_abort(struct duo_rx *rx);

/* Shared by the two files. */
bool duo_multi_room(const struct duo_ep *ep, size_t left);
/* Returns a new sub-receive, in no queue; NULL: no free entry. */
struct duo_rx *duo_multi_sub(struct duo_rx *owner, void *buf, size_t len,
			     void *desc);
/* Ends the matching of further messages with the buffer. */
void duo_multi_close(struct duo_rx *owner);
/* Reports the release of a closed buffer, or its cancellation. */
void duo_multi_release(struct duo_rx *owner);
/* Posts a sub-receive to the core. The core had the previous one, and so has
 * all receives that must precede rx. If that fails, the buffer ends early. */
void duo_multi_to_core(struct duo_rx *rx);

#endif /* DUO_MULTI_H */
