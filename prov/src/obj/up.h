/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of higher layers that lower layers call; fi/ops.c has the table.
 * Each comment names the calling layer. Not for the fast path. Lock: the
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
	 * Called by av/ when the map has found the fi_addr of a peer, or after
	 * the application has removed the address `gone` (FI_ADDR_UNSPEC: it
	 * has removed none). Makes unexpected messages unresolved
	 * - if their source had no fi_addr when they arrived, but has one now
	 * - if their source had the fi_addr `gone`, which may get another peer
	 * The next poll stores the present fi_addr, or none, in these messages
	 * and matches them again. Also defers all blocked receives, because the
	 * source may be confirmed already.
	 */
	void (*known)(struct duo_ep *ep, fi_addr_t gone);
	/*
	 * Called by av/ when the process of addr was replaced, has exited or
	 * cannot be reached. The same as duo_lazy_readmit().
	 */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/* Called by core/. True if rx must become a blocked receive. */
	bool (*blocked)(const struct duo_rx *rx);
	/* Called by core/. Completes rx, a sub-receive filled by the core. */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/* Called by core/. Ends rx, a sub-receive, with the core's error. */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/*
	 * Called by core/ after the core has rejected rx. Ends rx with the
	 * error err (a positive FI_E*). rx must be in no queue.
	 */
	void (*rejected)(struct duo_rx *rx, int err);
	/* Called by rx/. Polls both paths; the same as duo_cq_progress(). */
	void (*progress)(struct duo_cq *cq);
	/*
	 * Called by obj/ when ep has joined a group. Selects ep's tables of
	 * calls for the mode of the group's lock.
	 */
	void (*calls)(struct duo_ep *ep);
};

#endif /* DUO_UP_H */
