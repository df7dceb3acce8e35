/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Calls from lower layers to higher ones; the table is in fi/ops.c. The
 * comments begin with the calling layer. Calls of local transports go through
 * struct duo_transport (transport/transport.h) instead, and near's through
 * struct near_sink. The fast path uses none of these. Lock: the domain's.
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
	 * av/: the fi_addr of a peer was found. Looks up unexpected messages
	 * from that peer.
	 */
	void (*known)(struct duo_ep *ep);
	/*
	 * av/: the address belongs to a new process, or to none. So the core
	 * may now deliver messages that only the local transport could deliver
	 * before.
	 */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/*
	 * core/: returns true if rx must not go to the core before a
	 * multi-receive buffer is used up.
	 */
	bool (*blocked)(const struct duo_rx *rx);
	/* core/: the core has received a message into the sub-receive rx. */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/* core/: the core reports an error for the sub-receive rx. */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/*
	 * core/: the core rejects the remainder rx. The caller has pushed the
	 * error.
	 */
	void (*refused)(struct duo_rx *rx);
	/* rx/: processes all messages that have arrived: duo_cq_progress(). */
	void (*progress)(struct duo_cq *cq);
};

#endif /* DUO_UP_H */
