/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/proc.h"
#include "base/util.h"
#include "near/link/port.h"

void near_rx_ring_activate(struct near_port *port, struct near_rx_ring *ring)
{
	if (ring->broken)
		return;
	__atomic_store_n(&ring->rx.ctl->need_doorbell, 0, __ATOMIC_RELAXED);
	ring->idle = 0;
	if (ring->active_at != NEAR_NOT_ACTIVE)
		return;
	ring->active_at = port->active_count;
	port->active[port->active_count++] = ring;
}

/* Removes a ring from port->active. Does not set near_ctl.need_doorbell. */
static void near_rx_ring_deactivate(struct near_port *port,
				    struct near_rx_ring *ring)
{
	struct near_rx_ring *last = port->active[--port->active_count];

	port->active[ring->active_at] = last;
	last->active_at = ring->active_at;
	ring->active_at = NEAR_NOT_ACTIVE;
}

void near_rx_ring_broken(struct near_port *port, struct near_rx_ring *ring,
			 const char *what, uint64_t value)
{
	near_log(port, 0, "peer %d: invalid %s %" PRIu64 " in its ring; "
		 "disconnecting it. The peer is faulty or its shared memory "
		 "is corrupt", ring->peer->addr.pid, what, value);
	ring->broken = true;
	if (ring->active_at != NEAR_NOT_ACTIVE)
		near_rx_ring_deactivate(port, ring);
	near_peer_fail(port, ring->peer);
}

static bool near_rx_ring_ready(const struct near_rx_ring *ring)
{
	uint64_t word;

	return near_rx_slot(&ring->rx, &word) != NULL;
}

/*
 * Finds or creates the peer that has taken a claim, and takes a reference.
 * Copies the address before the check, because the sender can still change the
 * address in the claim. Returns 0, or
 * - -EINVAL or -EHOSTUNREACH: call near_claim_failed()
 * - -EAGAIN: the peer has not replied with its pidfd yet; retry. Meanwhile a
 *   reference of near_peer_expect() keeps the peer.
 * - another -errno: retry
 */
static int near_rx_ring_peer(struct near_port *port,
			     const struct near_claim *claim,
			     struct near_peer **peer_out)
{
	struct near_addr addr = claim->addr;
	struct near_peer *peer;
	int ret = near_addr_check(port, &addr);

	if (ret)
		return ret;
	ret = near_peer_get(port, &addr, &peer);
	if (ret)
		return ret;
	/* an fd request of the peer may have arrived; it contains the pidfd */
	if (peer->needs_fdx && !peer->expected && port->fdx >= 0)
		near_fdx_read(port);
	ret = near_monitor(port, peer);
	if (ret == -EACCES)
		ret = -EHOSTUNREACH;
	if (ret == -ESRCH) {
		near_peer_fail(port, peer);
		ret = 0;
	}
	if (!ret) {
		*peer_out = peer;
		return 0;
	}
	near_peer_expect(port, peer, ret == -EAGAIN);
	near_peer_put(port, peer);
	return ret;
}

bool near_claim_reject(struct near_port *port, uint32_t index)
{
	uint32_t open = NEAR_CLAIM_OPEN;

	return __atomic_compare_exchange_n(&port->segment->claim[index].state,
					   &open, NEAR_CLAIM_REJECTED, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Creates the rx ring of a claim. Returns the values of near_rx_ring_peer(). */
static int near_rx_ring_open(struct near_port *port, uint32_t index)
{
	const struct near_claim *claim = &port->segment->claim[index];
	struct near_rx_ring *ring;
	struct near_peer *peer;
	struct near_place place;
	void *memory;
	int ret;

	if (!near_place(port->budget.growing, index,
			__atomic_load_n(&claim->tier, __ATOMIC_RELAXED),
			&place))
		return -EINVAL;
	ret = near_rx_ring_peer(port, claim, &peer);
	if (ret)
		return ret;
	ring = duo_alloc(sizeof(*ring));
	ret = ring ? near_ring_map(port->fd, &place, &memory) : -ENOMEM;
	peer->ring_due = ret ? index + 1 : 0;
	if (ret)
		goto err_put;
	near_rx_init(&ring->rx, memory, &place);
	ring->peer = peer;
	ring->index = index;
	ring->tier = (uint8_t)place.tier;
	peer->ring = ring;
	ring->active_at = NEAR_NOT_ACTIVE;
	port->ring[index] = ring;
	if (port->ring_count <= index)
		port->ring_count = index + 1;
	near_budget_rx_ring(port, ring, 1);
	near_rx_ring_activate(port, ring);
	/* this port can send no reply, so the sender must end its operations */
	if (peer->state >= NEAR_PEER_CLOSED_OFF)
		near_claim_reject(port, index);
	return 0;

err_put:
	near_peer_put(port, peer);
	free(ring);
	return ret;
}

/* Frees a ring's memory, which then contains zeros. */
static void near_ring_clear(struct near_port *port, uint32_t index,
			    uint32_t tier)
{
	struct near_place place;

	near_place(port->budget.growing, index, tier, &place);
	near_segment_clear(port->fd, place.offset, place.size);
}

/* Lets another sender take the ring. */
static void near_ring_free(struct near_port *port, uint32_t index,
			   uint32_t tier)
{
	near_ring_clear(port, index, tier);
	__atomic_store_n(&port->segment->claim[index].state, NEAR_CLAIM_FREE,
			 __ATOMIC_RELEASE);
}

/*
 * Handles a claim for which near_rx_ring_open() has failed. If err is
 * -EHOSTUNREACH and the claim is open, rejects it; otherwise frees the ring.
 */
static void near_claim_failed(struct near_port *port, uint32_t index, int err)
{
	if (err == -EHOSTUNREACH && near_claim_reject(port, index)) {
		near_log(port, 0, "ring %u: connection rejected, the sender "
			 "belongs to another user or is hidden from /proc "
			 "(hidepid)", index);
		return;
	}
	near_log(port, err == -EHOSTUNREACH, "ring %u: invalid or closed "
		 "connection request; the ring is free again", index);
	near_ring_free(port, index,
		       near_tier_most(port->budget.growing, index));
}

void near_rx_ring_free(const struct near_port *port, struct near_rx_ring *ring)
{
	struct near_place place;

	near_place(port->budget.growing, ring->index, ring->tier, &place);
	munmap(ring->rx.ctl, place.span);
	free(ring);
}

/*
 * If the sender of a ring is alive and has not closed the claim, it can still
 * write to the ring, so no other sender may get the ring. In this case rejects
 * the claim, empties the ring, stores the ring's size for a later
 * near_rx_ring_open(), and returns true. False: the caller must free the ring.
 */
static bool near_rx_ring_reject(struct near_port *port,
				const struct near_rx_ring *ring)
{
	struct near_claim *claim = &port->segment->claim[ring->index];

	if (near_peer_check_exited(ring->peer) ||
	    (!near_claim_reject(port, ring->index) &&
	     __atomic_load_n(&claim->state, __ATOMIC_ACQUIRE) !=
		     NEAR_CLAIM_REJECTED))
		return false;
	__atomic_store_n(&claim->tier, ring->tier, __ATOMIC_RELAXED);
	near_ring_clear(port, ring->index, ring->tier);
	return true;
}

void near_rx_ring_release(struct near_port *port, struct near_rx_ring *ring)
{
	if (ring->active_at != NEAR_NOT_ACTIVE)
		near_rx_ring_deactivate(port, ring);
	port->ring[ring->index] = NULL;
	if (ring->peer->ring == ring)
		ring->peer->ring = NULL;
	near_budget_rx_ring(port, ring, -1);
	if (!near_rx_ring_reject(port, ring))
		near_ring_free(port, ring->index, ring->tier);
	near_peer_put(port, ring->peer);
	near_rx_ring_free(port, ring);
}

/* Makes the next poll handle the ring again: sets the ring's doorbell bits. */
static void near_ring_retry(struct near_port *port, uint32_t index)
{
	__atomic_fetch_or(&port->segment->doorbell[index / 64],
			  1ull << index % 64, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&port->segment->doorbell_words, 1ull << index / 64,
			  __ATOMIC_SEQ_CST);
}

/*
 * Handles a ring whose sender has closed its claim or was killed. If near has
 * reported the sender as failed before, discards the sender's messages.
 */
static void near_rx_ring_closed(struct near_port *port,
				struct near_rx_ring *ring)
{
	if (ring->peer->state == NEAR_PEER_GONE)
		near_rx_ring_release(port, ring);
	else
		near_peer_fail(port, ring->peer);
}

/*
 * Memory ordering: message passing. When a peer closes its port, it closes its
 * claim, executes full barriers in near_doorbell_ring(), then reuses its
 * buffers. This port has copied one of these buffers. It executes a fence, then
 * loads the claim's state. If the copy has bytes that the peer stored after the
 * close, the load finds the claim closed.
 */
bool near_peer_closed(struct near_port *port, struct near_peer *peer)
{
	const struct near_claim *claim;

	if (!peer->ring)
		return false;
	claim = &port->segment->claim[peer->ring->index];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&claim->state, __ATOMIC_RELAXED) !=
	    NEAR_CLAIM_CLOSED)
		return false;
	near_peer_fail(port, peer);
	return true;
}

/* Handles a doorbell bit: a new sender, a new slot, or a closed claim. */
static void near_doorbell_handle(struct near_port *port, uint32_t index)
{
	struct near_claim *claim = &port->segment->claim[index];
	uint32_t state = __atomic_load_n(&claim->state, __ATOMIC_ACQUIRE);
	int ret;

	if (!port->ring[index]) {
		if (state != NEAR_CLAIM_OPEN && state != NEAR_CLAIM_CLOSED)
			return;
		ret = near_rx_ring_open(port, index);
		if (ret == -EINVAL || ret == -EHOSTUNREACH) {
			near_claim_failed(port, index, ret);
			return;
		}
		if (ret) {
			near_ring_retry(port, index);
			return;
		}
	}
	near_rx_ring_activate(port, port->ring[index]);
	/* if the sender was killed, its claim is not closed */
	if (state == NEAR_CLAIM_CLOSED ||
	    (port->ring[index]->peer->state == NEAR_PEER_GONE &&
	     near_peer_check_exited(port->ring[index]->peer)))
		near_rx_ring_closed(port, port->ring[index]);
}

/*
 * True if the sender of a TAKEN or REJECTED claim has exited. False if the
 * sender is in another pid namespace. A TAKEN claim has no address yet, only
 * the pid.
 */
static bool near_claim_exited(const struct near_port *port,
			      const struct near_claim *claim, uint32_t state)
{
	const struct near_addr *addr = &claim->addr;
	pid_t pid = (pid_t)(state >> NEAR_CLAIM_PID);

	if (state == NEAR_CLAIM_REJECTED)
		return addr->pid_ns == port->addr.pid_ns &&
		       duo_proc_check(addr->pid, addr->start) == -ESRCH;
	return (state & NEAR_CLAIM_STATE) == NEAR_CLAIM_TAKEN && pid &&
	       duo_proc_check(pid, 0) == -ESRCH;
}

/*
 * True if a claim's sender has exited. Loads the state again, because the
 * sender may have changed it between the first load and its exit.
 */
static bool near_claim_abandoned(const struct near_port *port,
				 const struct near_claim *claim)
{
	uint32_t state = __atomic_load_n(&claim->state, __ATOMIC_ACQUIRE);

	return near_claim_exited(port, claim, state) &&
	       __atomic_load_n(&claim->state, __ATOMIC_ACQUIRE) == state;
}

/*
 * Handles claims of senders that were killed before they rang the doorbell, or
 * before they closed a rejected claim. The port may have an rx ring for a
 * rejected claim; its peer is then gone, and no pidfd shows that the sender has
 * exited. Loads claims only up to the page that has claim port->ring_count,
 * because a load from a later page would allocate that page.
 */
void near_rings_check(struct near_port *port)
{
	uint32_t i, pages = port->ring_count / NEAR_CLAIMS_PER_PAGE + 1;
	const struct near_rx_ring *ring;

	port->rings_due = false;
	for (i = 0; i < pages * NEAR_CLAIMS_PER_PAGE && i < NEAR_SENDERS; i++) {
		ring = port->ring[i];
		if (ring && ring->peer->state != NEAR_PEER_GONE)
			continue;
		if (!ring &&
		    near_claim_abandoned(port, &port->segment->claim[i]))
			near_ring_free(port, i,
				       near_tier_most(port->budget.growing, i));
		else
			near_doorbell_handle(port, i);
	}
}

void near_port_doorbells(struct near_port *port)
{
	struct near_segment *segment = port->segment;
	uint64_t words, bits;
	uint32_t word;

	/*
	 * loads doorbell_words first, because senders set the bit in doorbell[]
	 * first: memory-ordering.md
	 */
	words = __atomic_exchange_n(&segment->doorbell_words, 0,
				    __ATOMIC_SEQ_CST);
	for (; words; words &= words - 1) {
		word = __builtin_ctzll(words);
		bits = __atomic_exchange_n(&segment->doorbell[word], 0,
					   __ATOMIC_SEQ_CST);
		for (; bits; bits &= bits - 1)
			near_doorbell_handle(port,
					     word * 64 + __builtin_ctzll(bits));
	}
}

/*
 * Makes idle each active ring that has near_rx_ring.idle >= 2 and no new slot.
 * If membarrier fails, all rings stay active. count: number of active rings
 * with near_rx_ring.idle >= 2. The caller must have set need_doorbell of these
 * rings: see near_tx_need_doorbell().
 */
static void near_rx_rings_deactivate(struct near_port *port, uint32_t count)
{
	bool seen = near_port_barrier(port);
	struct near_rx_ring *ring;
	uint32_t i;

	for (i = port->active_count; i-- > 0 && count;) {
		ring = port->active[i];
		if (ring->idle < 2)
			continue;
		count--;
		if (!seen || near_rx_ring_ready(ring))
			near_rx_ring_activate(port, ring);
		else
			near_rx_ring_deactivate(port, ring);
	}
}

void near_port_sweep(struct near_port *port)
{
	uint32_t i, idle = 0;
	struct near_rx_ring *ring;

	if (port->active_count <= NEAR_ACTIVE_MIN)
		return;
	for (i = 0; i < port->active_count; i++) {
		ring = port->active[i];
		if (ring->mark != ring->rx.head) {
			ring->mark = ring->rx.head;
			ring->idle = 0;
		} else if (port->active_count - idle > NEAR_ACTIVE_MIN &&
			   ++ring->idle >= 2) {
			__atomic_store_n(&ring->rx.ctl->need_doorbell, 1,
					 __ATOMIC_SEQ_CST);
			idle++;
		}
	}
	if (idle)
		near_rx_rings_deactivate(port, idle);
}

/*
 * Memory ordering: store buffering, twice (memory-ordering.md, *Sleeping*).
 * Stores the need-doorbell flags and `armed`, executes a membarrier, then loads
 * the doorbell and the next slots. The partners are near_tx_need_doorbell() and
 * near_doorbell_ring(). After an error the flags and `armed` stay set, which
 * only causes needless doorbells.
 *
 * While near_wakes_repeat() returns false, this port still has to wake a
 * sleeping peer. Only polls of this port repeat the wakeup. If this port slept,
 * too, each of the two might wait for a message of the other.
 */
int near_arm(struct near_port *port)
{
	struct near_segment *segment = port->segment;
	uint32_t i;

	if (!near_list_empty(&port->sending) ||
	    !near_list_empty(&port->receiving) ||
	    !near_list_empty(&port->onesided_work) || port->draining ||
	    !near_wakes_repeat(port))
		return -EAGAIN;
	if (!++port->sleeps)	/* skip 0, which means that no thread sleeps */
		port->sleeps++;
	for (i = 0; i < port->active_count; i++)
		__atomic_store_n(&port->active[i]->rx.ctl->need_doorbell, 1,
				 __ATOMIC_RELAXED);
	__atomic_store_n(&segment->armed, port->sleeps, __ATOMIC_SEQ_CST);
	if (!near_port_barrier(port) ||
	    __atomic_load_n(&segment->doorbell_words, __ATOMIC_SEQ_CST))
		return -EAGAIN;
	for (i = 0; i < port->active_count; i++)
		if (near_rx_ring_ready(port->active[i]))
			return -EAGAIN;
	port->asleep = true;
	return 0;
}
