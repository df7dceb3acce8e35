/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The state of a receive entry. Only duo_rx_become() changes it; without NDEBUG
 * it aborts the program on a change that is not in the table of state.c.
 * docs/matching.md has the table as a diagram. Cost: a store.
 */
#ifndef DUO_STATE_H
#define DUO_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum duo_rx_state {
	DUO_RX_FREE,
	DUO_RX_POSTED,		/* in the posted queue */
	DUO_RX_LOCAL,		/* the local transport will complete it */
	DUO_RX_CORE,		/* the core has matched it, or keeps it */
	DUO_RX_CANCELING,	/* fi_cancel was called on the core */
	DUO_RX_CANCELED,	/* the core returned it as canceled */
	DUO_RX_PEEK,		/* an FI_PEEK is pending at the core */
	DUO_RX_ARRIVING,	/* a local message, in no queue yet */
	DUO_RX_UNEXP,		/* in the unexpected queue */
	DUO_RX_HELD,		/* unresolved local message */
	DUO_RX_CLAIMED,		/* local message claimed by FI_PEEK|FI_CLAIM */
	DUO_RX_CORE_CLAIMED,	/* core message claimed the same way */
	DUO_RX_RETIRED,		/* ended; the core may report it once more */
	DUO_RX_OWNER,		/* a multi-receive buffer, see multi.h */
	DUO_RX_READY,		/* its remainder, not posted yet */
	DUO_RX_MORE,		/* has the buffers of another entry */
	DUO_RX_STATES
};

/* Per state, the bits of the states that may follow. For asserts and tests. */
extern const uint32_t duo_rx_next[DUO_RX_STATES];

static inline bool duo_rx_may(enum duo_rx_state from, enum duo_rx_state to)
{
	return duo_rx_next[from] & 1U << to;
}

#endif /* DUO_STATE_H */
