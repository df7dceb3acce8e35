/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MULTI_RECV: docs/matching.md, "Multi-receive buffers". A buffer has an
 * owner entry, which is in no queue, and a sub-receive for each message. The
 * last sub-receive that ends releases the buffer. Lock: the group's.
 */
#ifndef DUO_MULTI_H
#define DUO_MULTI_H

#include "obj/ep.h"

struct duo_recv;

ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv);
/* Cancels the buffer whose posted or ready remainder is rx. Returns 0. */
ssize_t duo_multi_cancel(struct duo_rx *rx);
/*
 * Cancels the open buffer with this context. The buffer's remainder must not be
 * in the posted queue. Returns 0. -FI_ENOENT: no such buffer, or the core
 * cannot cancel the remainder.
 */
ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context);
/*
 * Starts to receive the unexpected messages that match the remainders in
 * ep->multi.ready. Then posts each remainder that still has space to the core.
 * Callbacks of the local transport, which may start no receive, must not call
 * this function.
 */
void duo_multi_resume(struct duo_ep *ep);

/* True if the core must not get rx yet: docs/matching.md, "Order". */
bool duo_multi_blocks(const struct duo_rx *rx);
/*
 * Removes the remainder rx from the posted queue, for a local message of
 * msg_size bytes. Recalls rx if it is on the core. Cuts rx to the message, and
 * posts the next remainder if space is left. False: the core has matched rx;
 * the caller must try the next receive.
 */
bool duo_multi_match(struct duo_rx *rx, size_t msg_size);
/* Reports the completion of the sub-receive rx, and drops its reference. */
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
/* Drops a sub-receive's reference to its buffer; the last releases it. */
void duo_multi_end(struct duo_rx *owner);
/* Closes the buffer of a failed remainder, and drops its reference. */
void duo_multi_abort(struct duo_rx *owner);

#endif /* DUO_MULTI_H */
