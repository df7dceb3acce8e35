/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The sender's side of a resize: docs/near/design.md, *Resizing*. */
#ifndef NEAR_LINK_RESIZE_H
#define NEAR_LINK_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#define NEAR_RESIZE_FULL 4	/* times a ring must be full before a request */

struct near_peer;
struct near_port;

struct near_resize {
	uint64_t full_at;	/* near_tx.tail when `full` last increased */
	uint32_t count;		/* resizes so far */
	/* number of times that the ring was full since the last resize */
	uint32_t full;
	uint32_t backoff;	/* value of `full` that causes a request */
	uint32_t more;		/* near_slot.resize.more of a pending resize */
	uint8_t tier;		/* size class of the ring */
	uint8_t most;		/* largest class that the ring can have */
	bool posted;		/* RESIZE is published; its reply is pending */
};

void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most);

/*
 * Must be called when the ring has no space. Continues a pending resize, or
 * requests one if the ring was full often enough. Returns -EAGAIN: poll and
 * retry; or -ECONNRESET: the peer has failed.
 */
int near_full(struct near_port *port, struct near_peer *peer);
/* Requests a ring for messages of len bytes, if the backoff permits that. */
void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len);

#endif /* NEAR_LINK_RESIZE_H */
