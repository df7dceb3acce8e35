/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Ring budget: a port divides its ring memory among its senders. Each ring has
 * a page at least. A new sender gets the advertised size, which depends on the
 * number of peers and leaves memory for further ones. A sender with too small
 * a ring gets its even share, or one class more while memory is free. If it
 * gets neither, the next check makes rings above the even share shrink to it,
 * and idle ones to a page. docs/near/design.md, *Ring sizes*.
 */
#ifndef NEAR_LINK_RING_BUDGET_H
#define NEAR_LINK_RING_BUDGET_H

#include <stdint.h>

#include "near/near.h"

struct near_rx_ring;

struct near_budget {
	uint32_t pages_max;	/* pages of all rings */
	uint32_t growing;	/* rings that can have more than one page */
	uint32_t peers;		/* peers of the port, without itself */
	uint32_t rings;		/* open rx rings */
	uint32_t extra;		/* pages of these rings, beyond one each */
};

void near_budget_init(struct near_budget *budget, size_t bytes);

/* Adds more (1 or -1) to the number of peers, unless addr is the port's own. */
void near_budget_peers(struct near_port *port, const struct near_addr *addr,
		       int more);
/* Computes and stores the advertised size. */
void near_budget_advertise(struct near_port *port);
/* Counts an rx ring of its present size. more: 1: opened, -1: closed. */
void near_budget_rx_ring(struct near_port *port,
			 const struct near_rx_ring *ring, int more);

/*
 * Balances ring sizes, every NEAR_CHECK_MS: if a request was not granted, makes
 * other rings shrink, and the requester resize when pages are free.
 */
void near_budget_check(struct near_port *port);

/*
 * Resizes a ring whose current slot is RESIZE, the last one. more:
 * near_slot.resize.more, not checked yet.
 */
void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more);

#endif /* NEAR_LINK_RING_BUDGET_H */
