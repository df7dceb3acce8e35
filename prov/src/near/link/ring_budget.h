/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The ring budget, which a port divides among its senders: docs/near/design.md,
 * *Ring sizes*.
 */
#ifndef NEAR_LINK_RING_BUDGET_H
#define NEAR_LINK_RING_BUDGET_H

#include <stdint.h>

#include "near/near.h"

struct near_rx_ring;

struct near_budget {
	uint32_t pages_max;	/* limit of all rings together, pages */
	uint32_t growing;	/* number of rings that can exceed one page */
	uint32_t peers;		/* number of peers, without the port itself */
	uint32_t rings;		/* number of rx rings */
	uint32_t extra;		/* pages of rx rings beyond the first */
};

void near_budget_init(struct near_budget *budget, size_t bytes);

/* Adds (more: 1) or subtracts (-1) a peer, unless it is the port itself. */
void near_budget_peers(struct near_port *port, const struct near_addr *addr,
		       int more);
/* Sets near_segment.adv. Must be called after each change of port->budget. */
void near_budget_advertise(struct near_port *port);
/* Adds (more: 1) or subtracts (-1) an rx ring with its present size. */
void near_budget_rx_ring(struct near_port *port,
			 const struct near_rx_ring *ring, int more);

/* Handles a RESIZE slot: resizes the ring and replies. `more` is unchecked. */
void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more);

#endif /* NEAR_LINK_RING_BUDGET_H */
