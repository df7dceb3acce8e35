/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The sender's side of a ring that changes its size. When its ring is found
 * full again and again, or a message is too long for it, the sender writes its
 * last slot, MOVE, and waits. The receiver, when it comes to that slot, has all
 * that was before; it makes the ring anew, in the size that it has room for
 * (link/ring_budget.h), at the same place, and says so in near_ctl.size. The receiver
 * may ask for it, too (near_ctl.move).
 */
#ifndef NEAR_LINK_RESIZE_H
#define NEAR_LINK_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#define NEAR_RESIZE_FULL 4	/* times found full before more is asked for */

struct near_peer;
struct near_port;

struct near_resize {
	uint64_t full_at;	/* tail when the ring was last found full */
	uint32_t count;		/* of moves */
	uint32_t full;		/* times, since the last one */
	uint32_t backoff;	/* so many of them before it asks */
	uint32_t more;		/* what it asks for: near_slot.move */
	uint8_t tier;		/* that the ring has */
	uint8_t most;		/* that it can have */
	bool posted;		/* the MOVE is in the ring, no answer yet */
};

/* Of a ring that is taken in that size. */
void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most);

/*
 * No room in the ring to peer: -EAGAIN, for now, or -ECONNRESET, for ever. A
 * ring that is full again and again is to become larger.
 */
int near_full(struct near_port *port, struct near_peer *peer);
/*
 * Now and then, for a ring that is connected: who sends nothing does not find
 * out by itself that its room is wanted by others.
 */
void near_resize_check(struct near_port *port, struct near_peer *peer);
/* A message had to go the large way for want of room, and is sent. */
void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len);

#endif /* NEAR_LINK_RESIZE_H */
