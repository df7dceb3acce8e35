/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MULTI_RECV: docs/matching.md, "Multi-receive buffers". Each buffer has an
 * *owner entry*, a receive entry that is in no queue. Each message for the
 * buffer has a *sub-receive*: a receive entry for the part of the buffer that
 * the message fills. One more sub-receive, the *remainder*, has all unused
 * space. The remainder is *ready* while it is not posted yet, because
 * unexpected messages match it. A buffer is *open* until it is used up or
 * canceled. Each sub-receive holds a reference to the owner entry. When the
 * last one ends, ofi_duo returns the buffer to the application. Lock: the
 * group's.
 */
#ifndef DUO_MULTI_H
#define DUO_MULTI_H

#include "obj/ep.h"

ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv);
/* Cancels the buffer that has the posted or ready remainder rx. Returns 0. */
ssize_t duo_multi_cancel(struct duo_rx *rx);
/*
 * Cancels the open buffer with this context. The remainder of the buffer must
 * not be in the posted queue: it is ready, or the core has matched it. Returns
 * 0. -FI_ENOENT: there is no such buffer, or the remainder is posted to a core
 * that cannot cancel it.
 */
ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context);
/*
 * For each ready remainder: starts to receive the unexpected messages that
 * match the remainder, then posts the space behind these messages to the core.
 * Callbacks of the local transport must not call this function, because they
 * must not start to receive a message.
 */
void duo_multi_resume(struct duo_ep *ep);

/*
 * True if the core must not get rx yet, because an earlier open buffer or an
 * earlier blocked receive could match the same messages: docs/matching.md,
 * "Order".
 */
bool duo_multi_blocks(const struct duo_rx *rx);
/*
 * Removes the remainder rx from the posted queue, for a local message of
 * msg_size bytes. If rx is also posted to the core, recalls it from the core.
 * Shortens rx to the message. If enough space is left, posts it as the next
 * remainder. False: the core has already matched rx, so the caller must try the
 * next receive.
 */
bool duo_multi_match(struct duo_rx *rx, size_t msg_size);
/*
 * Reports the completion of the sub-receive rx, and drops the reference of rx
 * to its owner entry. May change *entry.
 */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src);
/*
 * Handles the core's completion of the remainder rx. If enough space is left,
 * posts the next remainder to the core, defers it, or makes it ready.
 */
void duo_multi_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			 fi_addr_t src);
/* Handles an error of the remainder rx at the core. Closes the buffer. */
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry);
/*
 * Drops the reference of a sub-receive that has ended. If this was the last
 * reference, returns the buffer to the application, and frees owner.
 */
void duo_multi_end(struct duo_rx *owner);
/*
 * Closes the buffer if it is open, because its remainder has failed. Then calls
 * duo_multi_end() for the remainder.
 */
void duo_multi_abort(struct duo_rx *owner);

#endif /* DUO_MULTI_H */
