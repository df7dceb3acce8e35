/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Resize: the sender's side. A sender requests a larger ring if its ring was
 * full several times, or too small for a message. It publishes RESIZE as the
 * last slot of the ring, and waits. The receiver first consumes all earlier
 * slots. At RESIZE the receiver restarts the ring in place, with a size within
 * its budget (link/ring_budget.h), and stores the reply in near_ctl.size. The
 * receiver may also request a resize, by near_ctl.resize.
 */
#ifndef NEAR_LINK_RESIZE_H
#define NEAR_LINK_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#define NEAR_RESIZE_FULL 4	/* times found full before the first request */

struct near_peer;
struct near_port;

struct near_resize {
	uint64_t full_at;	/* near_tx.tail when full was last increased */
	uint32_t count;		/* resizes so far */
	uint32_t full;		/* times found full since the last resize */
	uint32_t backoff;	/* value of full at the next request */
	uint32_t more;		/* value of near_slot.resize.more to send */
	uint8_t tier;		/* size class of the ring */
	uint8_t most;		/* largest class that the ring can have */
	bool posted;		/* RESIZE is published; the reply is pending */
};

/* Initializes the state for a new ring of class tier. */
void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most);

/*
 * Handles a full ring, for a sender. If the ring was full several times,
 * requests a larger ring. Returns -EAGAIN: poll and retry; or -ECONNRESET: the
 * peer has failed.
 */
int near_full(struct near_port *port, struct near_peer *peer);
/*
 * Continues a resize, also one that the receiver has requested. Ticks call it
 * for each connected peer, because a sender that sends nothing would not load
 * the request.
 */
void near_resize_check(struct near_port *port, struct near_peer *peer);
/*
 * Requests a ring whose data ring holds len bytes, after a message of this
 * length had to be sent by rendezvous.
 */
void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len);

#endif /* NEAR_LINK_RESIZE_H */
