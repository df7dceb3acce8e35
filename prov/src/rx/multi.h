/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MULTI_RECV. A buffer has an owner entry, which is in no queue, and a
 * sub-receive for each message. One sub-receive is posted: the remainder, which
 * has all unused space. When a message matches, the remainder is cut to the
 * message's size. The space behind the message becomes the next remainder, at
 * the same place of the queue. ofi_duo never passes FI_MULTI_RECV to the core.
 *
 * The size of a local message is available at the match, so the next remainder
 * is posted at once. The core reports the size only at the end of a receive.
 * Until then no other message can match the buffer.
 *
 * If an unexpected local message then matches the next remainder, the remainder
 * is *ready* (in ep->multi.ready), not posted: duo_multi_resume() first starts
 * to receive the message into the remainder.
 *
 * The last sub-receive that ends releases the buffer. Lock: the group's. Order
 * of buffers and receives: docs/matching.md. Cost: two entries per buffer, and
 * one per message.
 */
#ifndef DUO_MULTI_H
#define DUO_MULTI_H

#include "obj/ep.h"

struct duo_recv;

/* multi_post.c: calls of the application */
ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv);
/* Cancels the buffer whose posted remainder is rx. Returns 0. */
ssize_t duo_multi_cancel(struct duo_rx *rx);
/*
 * Cancels the open buffer with this context. The buffer's remainder must not be
 * in the posted queue. Returns 0. -FI_ENOENT: no such buffer, or the core
 * cannot cancel the remainder.
 */
ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context);
/*
 * Starts to receive the unexpected messages that match ready remainders. Then
 * posts each remainder that still has space to the core. Callbacks of the local
 * transport must not call this function, because no receive may start in a
 * callback.
 */
void duo_multi_resume(struct duo_ep *ep);

/* multi.c: handling of messages */

/*
 * True if the core must not get rx yet, because an earlier open buffer or an
 * earlier blocked receive could match the same message.
 */
bool duo_multi_blocks(const struct duo_rx *rx);
/*
 * Removes the remainder rx from the posted queue, for a local message of
 * msg_size bytes. Recalls rx if it is on the core. Cuts rx to the message, and
 * posts the next remainder if space is left. False: the core has matched rx;
 * the caller must try the next receive.
 */
bool duo_multi_match(struct duo_rx *rx, size_t msg_size);
/*
 * Reports the completion of the sub-receive rx, and drops rx's reference to its
 * buffer, see duo_multi_end().
 */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src);
/*
 * Handles the core's completion of the remainder rx. Posts the next remainder
 * to the core, defers it, or makes it ready.
 */
void duo_multi_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			 fi_addr_t src);
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry);
/*
 * Drops a sub-receive's reference to its buffer. The last drop releases the
 * buffer.
 */
void duo_multi_end(struct duo_rx *owner);
/* Closes the buffer of a failed remainder, and drops its reference. */
void duo_multi_abort(struct duo_rx *owner);

/* The functions below are for multi.c and multi_post.c only. */

/* Returns a new sub-receive of the buffer, in no queue. NULL: no free entry. */
struct duo_rx *duo_multi_sub(struct duo_rx *owner, void *buf, size_t len,
			     void *desc);
/*
 * Cuts the sub-receive rx to a message of len bytes. Returns the next
 * remainder, which is in no queue yet. NULL: the buffer is closed. If it was
 * open, this function has closed it, because too little space or no receive
 * entry is left.
 */
struct duo_rx *duo_multi_cut(struct duo_rx *rx, size_t len);
/* Closes the buffer: no further message matches it. */
void duo_multi_close(struct duo_rx *owner);
/* Frees the owner entry of a closed buffer. */
void duo_multi_free(struct duo_rx *owner);
/*
 * True if an unexpected message matches the remainder rx. This message must be
 * received before later messages.
 */
bool duo_multi_awaited(const struct duo_rx *rx);
/*
 * Posts the remainder rx to the core; if the core rejects rx, closes the buffer
 * and frees rx. Usually all receives that were posted before the buffer are
 * already on the core. If duo_lazy_readmit() has deferred one of them that
 * overlaps with rx, defers rx behind it. Also defers rx if that receive blocks
 * rx by now, because it is an open buffer or is blocked itself.
 */
void duo_multi_to_core(struct duo_rx *rx);

#endif /* DUO_MULTI_H */
