/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Who has a receive entry: its state, which changes here and nowhere else.
 * Where NDEBUG is not set, a change that is not in the table of state.c ends
 * the program. docs/matching.md has the table as a picture. Cost: a store.
 */
#ifndef DUO_STATE_H
#define DUO_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum duo_rx_state {
	DUO_RX_FREE,
	DUO_RX_POSTED,		/* in the posted queue */
	DUO_RX_LOCAL,		/* who carries local messages has it: its
				 * completion comes */
	DUO_RX_CORE,		/* the core has matched it */
	DUO_RX_CANCELING,	/* fi_cancel was called on the core */
	DUO_RX_CANCELED,	/* ... and the core gave it back */
	DUO_RX_PEEK,		/* a FI_PEEK is outstanding on the core */
	DUO_RX_ARRIVING,	/* a local message, in no queue yet */
	DUO_RX_UNEXP,		/* in the unexpected queue */
	DUO_RX_HELD,		/* unexpected, its source to be looked up */
	DUO_RX_CLAIMED,		/* local message claimed by FI_PEEK|FI_CLAIM */
	DUO_RX_CORE_CLAIMED,	/* core message claimed the same way */
	DUO_RX_RETIRED,		/* it may end again, see lazy.c */
	DUO_RX_OWNER,		/* a multi-receive buffer, see multi.h */
	DUO_RX_READY,		/* its rest, to be posted again */
	DUO_RX_MORE,		/* has the buffers of another entry */
	DUO_RX_STATES
};

/* Of each state a bit: those that may follow. For asserts and tests. */
extern const uint32_t duo_rx_next[DUO_RX_STATES];

static inline bool duo_rx_may(enum duo_rx_state from, enum duo_rx_state to)
{
	return duo_rx_next[from] & 1U << to;
}

#endif /* DUO_STATE_H */
