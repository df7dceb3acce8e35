/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * How a port shares its memory out among those who send to it. Each has a page.
 * Beyond that a port has a budget. Newcomers get what it offers, which takes
 * into account how many peers it knows, and that others may come. A sender for
 * which its ring is too small gets a larger one: its even share, or a size more
 * than it has, as long as there is room. Where there is none, those that have
 * more than their share are asked to give it back at the next look, and those that
 * send nothing all that they have.
 */
#ifndef NEAR_LINK_RING_BUDGET_H
#define NEAR_LINK_RING_BUDGET_H

#include <stdint.h>

#include "near/near.h"

struct near_rx_ring;

struct near_budget {
	uint32_t pages_max;	/* pages of all rings */
	uint32_t growing;	/* rings that can have more than one */
	uint32_t peers;		/* that the port knows, without itself */
	uint32_t rings;
	uint32_t extra;		/* pages of theirs, beyond one each */
};

void near_budget_init(struct near_budget *budget, size_t bytes);

/* So many more peers with that address. */
void near_budget_peers(struct near_port *port, const struct near_addr *addr,
		       int more);
/* Tells newcomers what they may take. */
void near_budget_advertise(struct near_port *port);
/* A lane came, 1, of the size that its sender chose; it leaves, -1. */
void near_budget_rx_ring(struct near_port *port,
			 const struct near_rx_ring *ring, int more);

/*
 * Every NEAR_CHECK_MS: while somebody lacks what there was not when he asked for
 * it, those that have long been silent are asked to give all but a page back,
 * and he to move when there is room.
 */
void near_budget_check(struct near_port *port);

/*
 * All that came before the MOVE slot was taken: gives the lane a ring of the
 * size that there is room for. more: see near_slot.move; it may be anything.
 */
void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more);

#endif /* NEAR_LINK_RING_BUDGET_H */
