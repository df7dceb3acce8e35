/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of higher layers that lower layers call; fi/ops.c has the table.
 * Each comment names the folder of the calling layer. Lock: that of the
 * endpoint's or CQ's group.
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
	 * av/ calls it after ofi_duo has found the fi_addr of a peer, or after
	 * the application has removed the fi_addr `gone` (FI_ADDR_UNSPEC:
	 * none). The source of a waiting message may then have changed: a
	 * sender without a fi_addr may have one now, and another peer may get
	 * `gone`. Makes the unexpected messages of such senders unresolved, so
	 * that ofi_duo matches them again (docs/matching.md). Also defers all
	 * blocked receives: the source of the multi-receive buffer that blocks
	 * them may be confirmed, so that the buffer blocks them no longer.
	 */
	void (*known)(struct duo_ep *ep, fi_addr_t gone);
	/*
	 * av/ calls it after the process at addr has exited, was replaced or
	 * cannot be reached. Makes the core get the posted receives that name
	 * addr, because the next process at addr may send over the core.
	 */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/*
	 * core/ calls it. True if rx must not be posted to the core yet,
	 * because an earlier multi-receive buffer or blocked receive must come
	 * first.
	 */
	bool (*blocked)(const struct duo_rx *rx);
	/*
	 * core/ calls it. Completes rx, a sub-receive (the receive of one part
	 * of a multi-receive buffer) that the core has filled.
	 */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/*
	 * core/ calls it. Ends rx, a sub-receive, with an error that the core
	 * reports.
	 */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/*
	 * core/ calls it. Ends rx, which is in no queue, with err > 0: the
	 * error with which the core has rejected rx.
	 */
	void (*rejected)(struct duo_rx *rx, int err);
	/* rx/ calls it. Polls the CQ by duo_cq_progress(). */
	void (*progress)(struct duo_cq *cq);
	/*
	 * obj/ calls it after ep has joined a group. Selects the tables of
	 * functions by which the application calls ep: there is one for each
	 * mode of the group's lock (enum duo_lock_mode).
	 */
	void (*calls)(struct duo_ep *ep);
};

#endif /* DUO_UP_H */
