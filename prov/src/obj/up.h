/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of higher layers that lower layers call; fi/ops.c has the table.
 * Each comment begins with the calling layer. Not for the fast path. Lock: the
 * group's.
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
	 * av/: the map has found the fi_addr of a peer. The peer's unexpected
	 * messages without a source become unresolved.
	 */
	void (*known)(struct duo_ep *ep);
	/*
	 * av/: the process of addr was replaced, has exited or cannot be
	 * reached. The core may now deliver messages from addr.
	 */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/* core/: true if a multi-receive buffer blocks rx: duo_multi_blocks */
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
	/* obj/: sets the call tables for the lock mode of ep's new group. */
	void (*calls)(struct duo_ep *ep);
};

#endif /* DUO_UP_H */
