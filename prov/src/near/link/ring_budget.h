/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The ring budget divides a port's ring memory among its senders. Each ring has
 * at least a page. A new sender takes the advertised size, which leaves memory
 * for further senders. A resize grants the even share. If the even share is no
 * larger than the ring, or too small for the message that caused the resize,
 * the resize grants the least sufficient size class while memory is free. A
 * ring never shrinks. See docs/near/design.md, *Ring sizes*.
 */
#ifndef NEAR_LINK_RING_BUDGET_H
#define NEAR_LINK_RING_BUDGET_H

#include <stdint.h>

#include "near/near.h"

struct near_rx_ring;

struct near_budget {
	uint32_t pages_max;	/* limit of pages of all rings */
	uint32_t growing;	/* rings that can have more than one page */
	uint32_t peers;		/* peers; the port itself does not count */
	uint32_t rings;		/* open rx rings */
	uint32_t extra;		/* pages of the open rx rings beyond one each */
};

/* Initializes a budget of this many bytes of ring memory. */
void near_budget_init(struct near_budget *budget, size_t bytes);

/* Adds more (1 or -1) to the number of peers, unless addr is the port's own. */
void near_budget_peers(struct near_port *port, const struct near_addr *addr,
		       int more);
/* Computes the advertised size. Call it after each change of the budget. */
void near_budget_advertise(struct near_port *port);
/* Adds (more: 1) or subtracts (-1) an open rx ring, at its present size. */
void near_budget_rx_ring(struct near_port *port,
			 const struct near_rx_ring *ring, int more);

/*
 * Resizes a ring at its RESIZE slot, and replies. more: near_slot.resize.more,
 * an unchecked value.
 */
void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more);

#endif /* NEAR_LINK_RING_BUDGET_H */
