/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The state of a receive entry (rx.h). duo_rx_become() asserts that the table
 * in state.c permits a change. Diagram: docs/matching.md.
 */
#ifndef DUO_STATE_H
#define DUO_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum duo_rx_state {
	DUO_RX_FREE,
	DUO_RX_POSTED,		/* receive in the posted queue */
	DUO_RX_LOCAL, /* receive that the local transport fills and completes */
	/* receive that the core has matched, or that it cannot cancel */
	DUO_RX_CORE,
	/* receive for which ofi_duo has called the core's fi_cancel() */
	DUO_RX_CANCELING,
	DUO_RX_CANCELED, /* receive that the core has reported as canceled */
	DUO_RX_PEEK,	/* FI_PEEK that the core has not completed */
	DUO_RX_ARRIVING,	/* local message that is in no queue yet */
	DUO_RX_UNEXP,		/* local message in the unexpected queue */
	/*
	 * local message that a later poll matches, because
	 * - its source had no fi_addr when it arrived
	 * - or it arrived while there were such messages, or during fi_close()
	 */
	DUO_RX_UNRESOLVED,
	DUO_RX_CLAIMED,	/* local message claimed by FI_PEEK | FI_CLAIM */
	DUO_RX_CORE_CLAIMED,	/* core message claimed by FI_PEEK | FI_CLAIM */
	/* ended receive, not reused yet: the core may report it again */
	DUO_RX_RETIRED,
	DUO_RX_OWNER,	/* owner entry of a multi-receive buffer, see multi.h */
	/* remainder of a multi-receive buffer that is not posted yet */
	DUO_RX_READY,
	/* second entry: the buffers of a receive that has more than one */
	DUO_RX_MORE,
	DUO_RX_STATES
};

/* For each state: bits (1 << state) of the states that may follow. */
extern const uint32_t duo_rx_next[DUO_RX_STATES];

static inline bool duo_rx_may(enum duo_rx_state from, enum duo_rx_state to)
{
	return duo_rx_next[from] & 1U << to;
}

#endif /* DUO_STATE_H */
