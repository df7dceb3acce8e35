/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Receives and the core, which is opaque: we post to it, cancel, and read its
 * CQ (read.h). A receive that a local sender may satisfy waits in the lazy
 * list before it is given to the core, in posting order; one that is there
 * can be recalled. lazy.c posts and recalls, lazy_when.c says when, when.h
 * which receives at all. docs/matching.md has the reasons. Under the
 * domain's lock.
 *
 * Cost: a post is the core's, some 330 instructions on efa; so is a recall,
 * with a read of its CQ.
 */
#ifndef DUO_LAZY_H
#define DUO_LAZY_H

#include "base/params.h"
#include "obj/ep.h"

/* lazy.c */
/* 0, -FI_EAGAIN, or what the core says of a receive it does not take. */
int duo_lazy_post(struct duo_rx *rx);
void duo_lazy_drop(struct duo_rx *rx);
/* In its place among the others. */
void duo_lazy_insert(struct duo_rx *rx);
/* rx comes where another one is, if that is in the list; which stays. */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx);
/* It has to wait until a multi-receive buffer is used up. */
void duo_lazy_block(struct duo_rx *rx);
void duo_lazy_unblock(struct duo_ep *ep);
/* Receives from addr that only a local message could satisfy become lazy. */
void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr);
int duo_lazy_flush(struct duo_ep *ep);
/* Those that are due, with all before them. */
int duo_lazy_flush_due(struct duo_ep *ep);
/* All, or the first that the core may satisfy; the caller polls the core for
 * them once, and no poll is sure to do so because of them. */
int duo_lazy_flush_once(struct duo_ep *ep);
int duo_lazy_flush_oldest(struct duo_ep *ep);
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want);
/* Takes an unposted receive back from the core; false: it is matched. */
bool duo_lazy_recall(struct duo_rx *rx);

/* lazy_when.c: gives the core what has waited long enough, in a poll: before
 * local messages, at a look at the clock; and behind them, each time. */
void duo_cq_take_turns(struct duo_cq *cq);
void duo_cq_flush_lazy(struct duo_cq *cq);

/*
 * The core has delivered, and may do so again: the oldest goes at once. Beside
 * an idle peer all go with the next poll, and no clock has to be read.
 */
#define DUO_LONG_AGO (-(1ULL << 62))	/* microseconds */
static inline void duo_lazy_hurry(struct duo_ep *ep)
{
	ep->lazy.limit = duo_params.defer_polls;
	ep->lazy.turn_us = DUO_LONG_AGO;
	if (ep->rx_cq->local_idle < ep->lazy.limit)
		ep->rx_cq->look_in = 0;
}

/* The caller puts rx, of ep, into the list. */
DUO_INLINE void duo_lazy_enlist(struct duo_ep *ep, struct duo_rx *rx,
				enum duo_rx_lazy lazy)
{
	rx->lazy = lazy;
	ep->lazy.count++;
	ep->domain->lazy++;
	if (lazy == DUO_LAZY_DUE)
		ep->lazy.due++;
	else
		ep->domain->waits++;
	duo_ep_chore(ep);
	duo_cq_rouse(ep->rx_cq);	/* nobody else takes it to the core */
}

/* The last one of the list. */
DUO_INLINE void duo_lazy_add(struct duo_ep *ep, struct duo_rx *rx,
			     enum duo_rx_lazy lazy)
{
	TAILQ_INSERT_TAIL(&ep->lazy.list, rx, lazy_link);
	duo_lazy_enlist(ep, rx, lazy);
}

#endif /* DUO_LAZY_H */
