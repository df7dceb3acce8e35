/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Calls from lower layers to higher ones; fi/ops.c has the table. The comments
 * begin with the calling layer. Local transports use struct duo_transport
 * instead, near also struct near_sink. Not for the fast path. Lock: the
 * domain's.
 */
#ifndef DUO_UP_H
#define DUO_UP_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

struct duo_cq;
struct duo_ep;
struct duo_rx;

struct duo_up {
	/*
	 * av/: the map has found a peer's fi_addr. Assigns this address to the
	 * peer's unresolved messages.
	 */
	void (*known)(struct duo_ep *ep);
	/*
	 * av/: the address belongs to a new process, or to none. So the core
	 * may now deliver messages for it.
	 */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/*
	 * core/: true if rx must not go to the core before a multi-receive
	 * buffer is used up.
	 */
	bool (*blocked)(const struct duo_rx *rx);
	/* core/: the core has received a message into the sub-receive rx. */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/* core/: the core reports an error for the sub-receive rx. */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/* core/: the core rejects the remainder rx, whose error is pushed. */
	void (*rejected)(struct duo_rx *rx);
	/* rx/: processes all messages that have arrived: duo_cq_progress(). */
	void (*progress)(struct duo_cq *cq);
};

#endif /* DUO_UP_H */
