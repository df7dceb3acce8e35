/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The sender's end of a resize, with any reply in near_ctl: the sender uses
 * only bytes that it may access, and all of these lie in the address space of
 * its ring.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/resize.c near_resize_init near_resize_post near_resize_done
 * C: near/link/resize.c near_resize_answer near_resize_step near_resize_request
 * C: near/link/resize.c near_tx_full near_full near_too_small
 * C: near/link/place.c near_place near_tier_most
 * CBMC: --unwind 9 --object-bits 10
 * MUTANT class-unchecked near/link/resize.c: s/tier > peer->resize.most \|\|\n[\t ]*!near_place\(([^;]*)&place\)\) \{/!near_place(\1\&place)) {/
 * MUTANT class-loaded-twice near/link/resize.c: s/near_resize_done\(peer, \(uint8_t\)tier\)/near_resize_done(peer, (uint8_t)hostile_load(\&peer->tx.ctl->size, 0))/
 * MUTANT place-of-another near/link/resize.c: s/near_tx_restart\(&peer->tx, &place\)/near_place(NEAR_SENDERS, 0, NEAR_TIERS - 1, \&place);\n\tnear_tx_restart(\&peer->tx, \&place)/
 * MUTANT not-extended near/link/resize.c: s/if \(near_ring_extend\(peer->tx.ctl, place.size\)\)/if (0)/
 * MUTANT failure-ignored near/link/resize.c: s/if \(near_ring_extend\(peer->tx.ctl, place.size\)\)/if (near_ring_extend(peer->tx.ctl, place.size) \&\& 0)/
 * MUTANT not-restarted near/link/resize.c: s/near_tx_restart\(&peer->tx, &place\);//
 * MUTANT slot-unmasked near/link/resize.c: s/tx->tail & tx->mask\]/tx->tail]/
 */

#include "rings.h"

#include "near/link/resize.c"

static struct near_port port;
static struct near_peer peer;
static size_t span;		/* address space of the ring */
static size_t extended;		/* bytes that may be accessed */

int near_ring_extend(void *memory, size_t size)
{
	check(memory == ring && size <= span);
	if (any(bool))
		return -ENOMEM;
	if (size > extended)
		extended = size;
	return 0;
}

void near_peer_fail(struct near_port *of, struct near_peer *failed)
{
	failed->draining = true;
}

void near_doorbell_ring(struct near_peer *to)
{
}

void near_log(const struct near_port *of, int level, const char *format, ...)
{
}

/* Makes a peer. Its ring either keeps the smallest size class, or can grow. */
static void peer_any(void)
{
	uint32_t growing = any(bool), tier = any(uint32_t);

	near_page_assume(4096);
	assume(tier <= near_tier_most(growing, 0));
	near_place(growing, 0, tier, &place);
	span = place.span;
	extended = any(size_t);
	assume(extended >= place.size && extended <= span);
	ring = malloc(span);
	near_resize_init(&peer.resize, (uint8_t)tier,
			 (uint8_t)near_tier_most(growing, 0));
	tx_any(&peer.tx);
	peer.draining = any(bool);
	peer.resize.count = any(uint32_t);
	peer.resize.full = any(uint32_t);
	peer.resize.full_at = any(uint64_t);
	peer.resize.posted = any(bool);
	peer.resize.more = any(uint32_t);
}

int main(void)
{
	struct near_tx *tx = &peer.tx;

	peer_any();
	if (any(bool))
		near_full(&port, &peer);
	else
		near_too_small(&port, &peer, any(uint32_t));
	check(peer.resize.tier <= peer.resize.most);
	near_place(peer.resize.most ? 1 : 0, 0, peer.resize.tier, &place);
	check(place.size <= extended && tx->mask == place.slots - 1);
	check(tx_valid(tx) && in_slots(tx->slots));
	check(in_slots(&tx->slots[tx->mask]) && in_data(tx->data, tx->dsize));
	return 0;
}
