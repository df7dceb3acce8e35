/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The sender's side of a resize. The sender publishes RESIZE as the last slot
 * of the old ring. When the receiver consumes this slot, it restarts the ring
 * with the size that its ring budget grants (link/ring_budget.h), and replies
 * in near_ctl.size. See docs/near/design.md.
 */
#ifndef NEAR_LINK_RESIZE_H
#define NEAR_LINK_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#define NEAR_RESIZE_FULL 4	/* times that a ring is full before a request */

struct near_peer;
struct near_port;

struct near_resize {
	uint64_t full_at;	/* near_tx.tail when full was last increased */
	uint32_t count;		/* resizes so far */
	uint32_t full;		/* times of a full ring since the last resize */
	uint32_t backoff;	/* value of full that causes a request */
	uint32_t more;		/* value of near_slot.resize.more to send */
	uint8_t tier;		/* size class of the ring */
	uint8_t most;		/* largest class that the ring can have */
	bool posted;		/* RESIZE is published; the reply is pending */
};

/* Initializes the state for a new ring of class tier. */
void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most);

/*
 * Handles a full ring; requests a larger one if the ring is often full. Returns
 * -EAGAIN (poll and retry), or -ECONNRESET if the peer has failed.
 */
int near_full(struct near_port *port, struct near_peer *peer);
/* Requests a larger ring, for a message of len bytes that did not fit. */
void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len);

#endif /* NEAR_LINK_RESIZE_H */
