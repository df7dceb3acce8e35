/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MULTI_RECV. A buffer has an owner entry, which is in no queue, and a
 * sub-receive for each message. One sub-receive is posted: the remainder, which
 * has all unused space. When a message matches the remainder, the remainder is
 * cut to the message's size, and the space behind the message becomes the next
 * remainder, at the same place of the queue. So all rules for receives hold for
 * multi-receive buffers as well, and ofi_duo never passes FI_MULTI_RECV to the
 * core.
 *
 * The size of a local message is known at its match, so the next remainder is
 * posted before the message is received. The core reports the size only at the
 * end of a receive; until then no other message can match the buffer.
 *
 * The last sub-receive that ends releases the buffer to the application. Lock:
 * the group's. Order of buffers and receives: docs/matching.md. Cost: two
 * entries for a buffer, and one for each message.
 */
#ifndef DUO_MULTI_H
#define DUO_MULTI_H

#include "obj/ep.h"

struct duo_recv;

/* multi_post.c: calls of the application */
ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv);
/*
 * duo_multi_cancel() cancels the buffer whose remainder rx is posted.
 * duo_multi_cancel_context() cancels the open buffer with this context of the
 * application; its remainder is not posted, but ready or on the core. Both
 * return 0. duo_multi_cancel_context() returns -FI_ENOENT if there is no such
 * buffer, or if the core has the remainder and cannot cancel it.
 */
ssize_t duo_multi_cancel(struct duo_rx *rx);
ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context);
/*
 * Posts the remainders in ep->multi.ready. Must not be called within a callback
 * of the local transport, because no receive may start there.
 */
void duo_multi_resume(struct duo_ep *ep);

/*
 * multi.c: true if rx must not be posted to the core yet, because of an open
 * buffer, or a blocked receive, that was posted before rx and overlaps with it.
 */
bool duo_multi_blocks(const struct duo_rx *rx);
/*
 * Must be called for a local message of msg_size bytes that matches the
 * remainder rx. Takes rx out of the posted queue, and recalls rx if it is on
 * the core. Then cuts rx to the message, and posts the next remainder if enough
 * space is left. False: the core has already matched rx, and the caller must
 * look for another receive.
 */
bool duo_multi_match(struct duo_rx *rx, size_t msg_size);
/*
 * Reports the completion of a sub-receive. Releases the buffer if no other
 * sub-receive is left.
 */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src);
/*
 * Handles the core's completion of the remainder rx: cuts rx to the message,
 * posts the next remainder, and reports the completion.
 */
void duo_multi_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			 fi_addr_t src);
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry);
/*
 * Ends a sub-receive whose completion or error was reported. Releases the
 * buffer if no other sub-receive is left.
 */
void duo_multi_end(struct duo_rx *rx);
/* Ends rx, a remainder that has failed, and closes its buffer. */
void duo_multi_abort(struct duo_rx *rx);

/*
 * The functions below are for multi.c and multi_post.c only.
 *
 * True if the buffer stays open with `left` unused bytes.
 */
bool duo_multi_has_space(const struct duo_ep *ep, size_t left);
/* Returns a new sub-receive of the buffer, in no queue. NULL: no free entry. */
struct duo_rx *duo_multi_sub(struct duo_rx *owner, void *buf, size_t len,
			     void *desc);
/* Closes the buffer: no further message matches it. */
void duo_multi_close(struct duo_rx *owner);
/*
 * Reports the release of a closed buffer without sub-receives to the
 * application, and frees the owner entry.
 */
void duo_multi_release(struct duo_rx *owner);
/*
 * Posts the remainder rx to the core. The core already has the receives that
 * the application posted before the buffer, because they had to go to the core
 * before the previous remainder. So no deferred receive must be posted first.
 * If the core rejects rx, closes the buffer.
 */
void duo_multi_to_core(struct duo_rx *rx);

#endif /* DUO_MULTI_H */
