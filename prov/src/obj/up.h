/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of higher layers that lower layers call; fi/ops.c has the table.
 * Each comment names the calling layer. Lock: the group's.
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
	 * av/: a peer has got a fi_addr, or the application has removed the
	 * address `gone` (FI_ADDR_UNSPEC: none), which another peer may get.
	 * Makes unexpected messages of these peers unresolved:
	 * docs/matching.md. Also defers all blocked receives, because the
	 * source may be confirmed already.
	 */
	void (*known)(struct duo_ep *ep, fi_addr_t gone);
	/* av/: addr's process was replaced or has exited: duo_lazy_readmit() */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/* core/: true if rx must become a blocked receive */
	bool (*blocked)(const struct duo_rx *rx);
	/* core/: completes rx, a sub-receive that the core has filled */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/* core/: ends rx, a sub-receive, with the core's error */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/*
	 * core/: ends rx, which is in no queue, with the core's error err > 0
	 */
	void (*rejected)(struct duo_rx *rx, int err);
	/* rx/: polls both paths; the same as duo_cq_progress() */
	void (*progress)(struct duo_cq *cq);
	/*
	 * obj/: selects the calls of ep, which has joined a group, by the mode
	 * of the group's lock
	 */
	void (*calls)(struct duo_ep *ep);
};

#endif /* DUO_UP_H */
