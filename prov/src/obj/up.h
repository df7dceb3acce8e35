/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of higher layers that lower layers call; fi/ops.c has the table.
 * Each comment begins with the calling layer. Local transports have other
 * tables: struct duo_transport, and near's struct near_sink. Not for the fast
 * path. Lock: the group's.
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
	 * av/: must be called when the map has found the fi_addr of a peer.
	 * Unexpected messages of the peer, which had no source until then,
	 * become unresolved, and get this fi_addr when they are matched again.
	 */
	void (*known)(struct duo_ep *ep);
	/*
	 * av/: must be called when the process of an address has been replaced,
	 * has exited or cannot be reached. From then on the core may deliver
	 * messages from this address.
	 */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/*
	 * core/: true if rx must not be posted to the core yet, because of a
	 * multi-receive buffer: duo_multi_blocks().
	 */
	bool (*blocked)(const struct duo_rx *rx);
	/* core/: the core has received a message into the sub-receive rx. */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/* core/: the core reports an error for the sub-receive rx. */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/* core/: the core has rejected rx, which is not posted any more. */
	void (*rejected)(struct duo_rx *rx, int err);
	/* rx/: polls both paths: duo_cq_progress(). */
	void (*progress)(struct duo_cq *cq);
	/*
	 * obj/: the endpoint has joined another group: sets the tables of calls
	 * for the mode of the new group's lock.
	 */
	void (*calls)(struct duo_ep *ep);
};

#endif /* DUO_UP_H */
