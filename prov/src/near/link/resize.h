/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The sender's side of a resize, which enlarges a ring. The sender requests a
 * resize by a RESIZE slot, the last slot of the old ring. The receiver then
 * restarts the ring at slot 0, with the size that its ring budget grants
 * (link/ring_budget.h), and replies in near_ctl.size. See docs/near/design.md.
 */
#ifndef NEAR_LINK_RESIZE_H
#define NEAR_LINK_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#define NEAR_RESIZE_FULL 4	/* times a ring must be full before a request */

struct near_peer;
struct near_port;

struct near_resize {
	/*
	 * near_tx.tail when near_full() last increased `full`; UINT64_MAX: not
	 * since the last resize
	 */
	uint64_t full_at;
	uint32_t count;		/* resizes so far */
	/*
	 * times the ring was full since the last resize, plus NEAR_RESIZE_FULL
	 * for each message that was too long: near_too_small()
	 */
	uint32_t full;
	uint32_t backoff;	/* value of `full` that causes a request */
	uint32_t more;	/* near_slot.resize.more of the pending resize */
	uint8_t tier;		/* size class of the ring */
	uint8_t most;		/* largest class that the ring can have */
	bool posted;	/* a RESIZE slot is published; no reply has come yet */
};

void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most);

/*
 * Must be called when the ring has no space. Continues a pending resize. If
 * none is pending and the ring was full often enough, requests a resize.
 * Returns -EAGAIN: poll and retry; or -ECONNRESET: the peer has failed.
 */
int near_full(struct near_port *port, struct near_peer *peer);
/*
 * Requests a larger ring, because a message of len bytes was too long for the
 * data ring. Makes no request while a resize is pending or the backoff delays
 * requests.
 */
void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len);

#endif /* NEAR_LINK_RESIZE_H */
