/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Has one function for each inline function of near that the file "expected"
 * names, so that the compiler emits the inline function's instructions.
 */

#include "near/near.h"
#include "near/rma/inline.h"
#include "near/msg/coop.h"
#include "near/rma/delegate.h"
#include "near/rma/table.h"

void tx_publish(struct near_tx *tx, struct near_slot *slot, uint64_t word)
{
	near_tx_publish(tx, slot, word);
}

bool tx_polled(const struct near_tx *tx)
{
	return near_tx_polled(tx);
}

bool tx_consumed(struct near_tx *tx)
{
	return near_tx_consumed(tx);
}

uint8_t *tx_data(struct near_tx *tx, size_t len, uint64_t *end)
{
	return near_tx_data(tx, len, end);
}

struct near_slot *rx_slot(const struct near_rx *rx, uint64_t *word)
{
	return near_rx_slot(rx, word);
}

void rx_release_slot(struct near_rx *rx)
{
	near_rx_release_slot(rx);
}

void rx_release(struct near_rx *rx)
{
	near_rx_release(rx);
}

void coop_begin(struct near_ctl *ctl, uint32_t round)
{
	near_coop_begin(ctl, round);
}

int32_t coop_take(struct near_ctl *ctl, uint32_t round, uint32_t all)
{
	return near_coop_take(ctl, round, all, true);
}

uint32_t coop_end(struct near_ctl *ctl)
{
	return near_coop_end(ctl);
}

void coop_wrote(struct near_ctl *ctl, uint32_t round, uint32_t steps)
{
	near_coop_wrote(ctl, round, steps, false);
}

bool coop_over(const struct near_ctl *ctl, uint32_t round,
	       uint32_t sender_steps, uint32_t *steps)
{
	return near_coop_sender_ended(ctl, round, sender_steps, steps);
}

void deleg_done(struct near_rx_ring *ring, uint64_t word)
{
	near_deleg_done(ring, word);
}

const struct near_region_entry *table_known(const struct near_table_view *view,
					    uint64_t key)
{
	return near_table_view_known(view, key);
}
