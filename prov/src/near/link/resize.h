/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Resize: the sender's side. If its ring was full several times, or too small
 * for a message, the sender publishes a last slot, RESIZE, and waits. At
 * RESIZE, with all earlier slots consumed, the receiver restarts the ring in
 * place, in a size within its budget (link/ring_budget.h), and stores the reply
 * in near_ctl.size. The receiver may request a resize, too (near_ctl.resize).
 */
#ifndef NEAR_LINK_RESIZE_H
#define NEAR_LINK_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#define NEAR_RESIZE_FULL 4	/* times full before the first request */

struct near_peer;
struct near_port;

struct near_resize {
	uint64_t full_at;	/* tail when the ring was last found full */
	uint32_t count;		/* number of resizes */
	uint32_t full;		/* times found full since the last resize */
	uint32_t backoff;	/* value of full for the next request */
	uint32_t more;		/* request: near_slot.resize.more */
	uint8_t tier;		/* size class of the ring */
	uint8_t most;		/* largest class that the ring can have */
	bool posted;		/* RESIZE is published, no reply yet */
};

/* Initializes the state of a new ring of class tier. */
void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most);

/*
 * Counts a full ring, and requests a larger one after several. Returns -EAGAIN,
 * or -ECONNRESET: the peer has failed.
 */
int near_full(struct near_port *port, struct near_peer *peer);
/*
 * Continues a resize. Must be called at times for each connected peer: a sender
 * that sends nothing would not see the receiver's request.
 */
void near_resize_check(struct near_port *port, struct near_peer *peer);
/* Requests space for a message of len, which was sent by rendezvous. */
void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len);

#endif /* NEAR_LINK_RESIZE_H */
