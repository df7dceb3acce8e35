/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Claims and doorbells, with any bytes in the segment. Asserted:
 * - a ring is mapped and cleared only at a place that near_place() has computed
 *   (place.c);
 * - the address in a claim is not loaded again after its check;
 * - each ring and each reference is dropped once;
 * - the tables of rings stay consistent.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/rx_ring.c near_port_doorbells near_doorbell_handle
 * C: near/link/rx_ring.c near_rx_ring_open
 * C: near/link/rx_ring.c near_rx_ring_peer near_claim_failed near_ring_free
 * C: near/link/rx_ring.c near_claim_reject near_ring_retry near_rx_ring_closed
 * C: near/link/rx_ring.c near_rx_ring_release near_rx_ring_free
 * C: near/link/rx_ring.c near_rx_ring_activate near_rx_ring_deactivate
 * C: near/link/rx_ring.c near_rx_ring_broken near_rings_check
 * C: near/link/rx_ring.c near_claim_abandoned
 * C: near/link/rx_ring.c near_claim_exited
 * CBMC: --unwind 5 --object-bits 10
 * CASES: 2
 * EDIT near/link/rx_ring.c: \
 *   s/for \(; (words|bits); /for (assume(few(\1)); \1; /g
 * EDIT near/link/rx_ring.c: \
 *   s/near_doorbell_handle\(port,\s+(word|i\))/rang(\1/g
 * EDIT near/link/rx_ring.c: s/duo_alloc\(sizeof\(\*ring\)\)/ring_new()/
 * EDIT near/link/rx_ring.c: \
 *   s/pages \* NEAR_CLAIMS_PER_PAGE && i < NEAR_SENDERS/RINGS/
 * MUTANT place-unchecked near/link/rx_ring.c: \
 *   s/if \(!near_place\(port->budget.growing, \
 *   index,\n([^;]*)&place\)\)\n\t\treturn -EINVAL;/\
 *   near_place(port->budget.growing, index,\n\1\&place);/
 * MUTANT address-loaded-twice near/link/rx_ring.c: \
 *   s/near_peer_get\(port, &addr, &peer\)/\
 *   near_peer_get(port, \&claim->addr, \&peer)/
 * MUTANT address-unchecked near/link/rx_ring.c: \
 *   s/int ret = near_addr_check\(port, &addr\);/int ret = 0;/
 * MUTANT class-of-claim near/link/rx_ring.c: \
 *   s/(near_ring_free\(port, index,\n\t\t \
 *   *)near_tier_most\(port->budget.growing, index\)/\
 *   \1hostile(port->segment->claim[index].tier)/
 * MUTANT reference-kept near/link/rx_ring.c: \
 *   s/err_put:\n\tnear_peer_put\(port, peer\);/err_put:/
 * MUTANT released-in-table near/link/rx_ring.c: \
 *   s/port->ring\[ring->index\] = NULL;//
 * MUTANT released-is-active near/link/rx_ring.c: \
 *   s/near_rx_ring_deactivate\(port, ring\);\n\tport->ring\[/;\n\tport->ring[/
 * MUTANT moved-elsewhere near/link/rx_ring.c: \
 *   s/last->active_at = ring->active_at;//
 * MUTANT active-twice near/link/rx_ring.c: \
 *   s/if \(ring->active_at != NEAR_NOT_ACTIVE\)\n\t\treturn;//
 * MUTANT broken-is-active near/link/rx_ring.c: \
 *   s/if \(ring->broken\)\n\t\treturn;\n//
 * MUTANT opened-again near/link/rx_ring.c: s/if \(!port->ring\[index\]\) \{/{/
 * MUTANT word-of-bit near/link/rx_ring.c: s/rang\(word \* 64/rang(word * 65/
 */

#include <stdlib.h>
#include <sys/mman.h>

#include "hostile.h"

/*
 * True if at most two bits are set, so that a loop over the bits has at most
 * two passes.
 */
#define few(x) (!((x) & ((x) - 1) & (((x) & ((x) - 1)) - 1)))
#define RINGS 2
#define PLACE 4096	/* size of each place of near_place() below */

static void rang(uint32_t index);
static void *ring_new(void);
#include "near/link/rx_ring.c"

static struct near_port port;
/* not an array: CBMC is faster if the offset of each object is 0 */
static struct near_peer first, second;
static struct near_rx_ring *rings[RINGS], *active[RINGS];
static struct near_addr checked;

static void *ring_new(void)
{
	struct near_rx_ring *ring = any(bool) ? NULL : malloc(sizeof(*ring));

	if (ring)
		*ring = (struct near_rx_ring){ 0 };
	return ring;
}

static void rang(uint32_t index)
{
	check(index < NEAR_SENDERS);
}

bool near_place(uint32_t growing, uint32_t index, uint32_t tier,
		struct near_place *place)
{
	check(index < RINGS);
	if (tier >= NEAR_TIERS)
		return false;
	place->offset = PLACE * (index + 1);
	place->size = place->span = PLACE;
	place->tier = tier;
	return true;
}

uint32_t near_tier_most(uint32_t growing, uint32_t index)
{
	return NEAR_TIERS - 1;
}

static bool place_valid(size_t offset, size_t size)
{
	return size == PLACE && offset % PLACE == 0 && offset &&
	       offset <= PLACE * RINGS;
}

int near_ring_map(int fd, const struct near_place *place, void **memory)
{
	check(place_valid(place->offset, place->size));
	if (any(bool))
		return -ENOMEM;
	*memory = malloc(sizeof(struct near_ctl));
	return 0;
}

void near_segment_clear(int fd, size_t offset, size_t size)
{
	check(place_valid(offset, size));
}

int munmap(void *addr, size_t len)
{
	check(len == PLACE);
	free(addr);
	return 0;
}

void near_rx_init(struct near_rx *rx, void *memory,
		  const struct near_place *place)
{
	rx->ctl = memory;
}

int near_addr_check(const struct near_port *of, const struct near_addr *addr)
{
	checked = *addr;
	return any(bool) ? 0 : -EINVAL;
}

int near_peer_get(struct near_port *of, const struct near_addr *addr,
		  struct near_peer **peer_out)
{
	check(addr->nonce == checked.nonce && addr->pid == checked.pid &&
	      addr->start == checked.start && addr->fd == checked.fd);
	if (any(bool))
		return -ENOMEM;
	*peer_out = any(bool) ? &first : &second;
	(*peer_out)->refs++;
	return 0;
}

void near_peer_put(struct near_port *of, struct near_peer *put)
{
	check(put->refs > 0);
	put->refs--;
}

void near_peer_fail(struct near_port *of, struct near_peer *failed)
{
	failed->draining = true;
}

void near_peer_expect(struct near_port *of, struct near_peer *from,
		      bool expected)
{
}

bool near_peer_check_exited(const struct near_peer *of)
{
	return any(bool);
}

int near_monitor(struct near_port *of, struct near_peer *whom)
{
	int ret = any(int);

	assume(ret == 0 || ret == -EACCES || ret == -ESRCH || ret == -EAGAIN ||
	       ret == -EHOSTUNREACH);
	return ret;
}

void near_fdx_read(struct near_port *of)
{
}

void near_fd_drop(struct near_peer *of, enum near_fd_open which)
{
}

void near_budget_rx_ring(struct near_port *of, const struct near_rx_ring *ring,
			 int more)
{
}

void near_log(const struct near_port *of, int level, const char *format, ...)
{
}

int duo_proc_check(pid_t pid, uint64_t start)
{
	return any(bool) ? 0 : -ESRCH;
}

/* Makes an rx ring of one of the peers: active, idle or broken. */
static void ring_any(uint32_t index)
{
	struct near_rx_ring *ring = ring_new();

	assume(ring);
	ring->index = index;
	ring->peer = index ? &second : &first;
	ring->peer->refs++;
	ring->peer->ring = ring;
	ring->tier = any(uint8_t);
	assume(ring->tier < NEAR_TIERS);
	ring->rx.ctl = malloc(sizeof(struct near_ctl));
	ring->broken = any(bool);
	ring->active_at = NEAR_NOT_ACTIVE;
	rings[index] = ring;
	if (port.ring_count <= index)
		port.ring_count = index + 1;
	if (any(bool))
		near_rx_ring_activate(&port, ring);
}

/*
 * Asserts that each ring is in the table once and, if it is active, in the list
 * of active rings at index active_at.
 */
static void check_rings(void)
{
	uint32_t i, n = 0, refs[2] = { 0, 0 };

	for (i = 0; i < RINGS; i++) {
		if (!rings[i])
			continue;
		check(i < port.ring_count && rings[i]->index == i);
		refs[rings[i]->peer == &second]++;
		if (rings[i]->active_at == NEAR_NOT_ACTIVE)
			continue;
		n++;
		check(!rings[i]->broken);
		check(rings[i]->active_at < port.active_count);
		check(active[rings[i]->active_at] == rings[i]);
	}
	check(n == port.active_count);
	check(refs[0] == first.refs && refs[1] == second.refs);
	check(!first.ring || readable(first.ring, 1));
}

/* Handles the doorbell of ring 0, a new or a known ring. Ring 1 exists, too. */
static void news(void)
{
	if (any(bool))
		ring_any(0);
	ring_any(1);
	near_doorbell_handle(&port, 0);
	check_rings();
}

static void scans(void)
{
	if (any(bool))
		ring_any(0);
	near_port_doorbells(&port);
	near_rings_check(&port);
	if (rings[0])
		near_rx_ring_broken(&port, rings[0], "value", 0);
	check_rings();
}

static void peer_any(struct near_peer *peer)
{
	peer->state = any(enum near_peer_state);
	peer->needs_fdx = any(bool);
	peer->expected = any(bool);
}

int main(void)
{
	port.segment = malloc(sizeof(*port.segment));
	port.ring = rings;
	port.active = active;
	port.fdx = any(int);
	peer_any(&first);
	peer_any(&second);
	if (CASE)
		scans();
	else
		news();
	return 0;
}
