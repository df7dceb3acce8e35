/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The data path: near_send() and near_poll(). The argument `sink` of
 * near_poll() points to the embedder's callbacks. If this pointer is a
 * compile-time constant, the compiler can inline the callbacks.
 */
#ifndef NEAR_MSG_INLINE_H
#define NEAR_MSG_INLINE_H

#include <errno.h>
#include <sys/types.h>

#include "base/proc.h"
#include "near/link/port.h"

/*
 * control.c: handles a slot that is not a message, such as an ACK. Returns 0:
 * the caller must release the slot; nonzero: the slot must stay in the ring.
 */
int near_control(struct near_port *port, struct near_rx_ring *ring,
		 const struct near_slot *slot, uint64_t word);
/*
 * Continues pending operations. If the only ones are RMA operations that wait
 * for peers (NEAR_WORK_WAITS), and this poll does not call near_port_tick(),
 * returns the result of near_onesided.advanced(). Otherwise returns the number
 * of large messages that have left port->sending or port->receiving, plus the
 * result of near_onesided.work() if RMA operations are pending.
 */
int near_work(struct near_port *port);
/* Slow path of near_send_end(): rings the doorbell if required. Returns 0. */
ssize_t near_notify(struct near_peer *peer);
/*
 * large_tx.c: for a message of more than tx.eager_max bytes: true if it must
 * be eager (docs/near/protocol.md, *Medium messages*).
 */
bool near_medium_eager(struct near_peer *peer, size_t len);
/*
 * Stores the time that len bytes from the peer's ring have taken since `start`,
 * ns, for the results of trials.
 */
void near_medium_measured(struct near_peer *peer, uint64_t start, size_t len);

/* True if the receiver must measure the copy of this eager message. */
static near_inline bool near_is_measured(const struct near_peer *peer,
					 size_t len)
{
	return len > NEAR_EAGER_MAX && peer->medium == NEAR_TRIAL - 1;
}

/* Returns a value for near_slot.word, without the lap number. */
static near_inline uint64_t near_word(enum near_kind kind, unsigned int flags,
				      size_t len, uint64_t data)
{
	return (uint64_t)kind << NEAR_WORD_KIND |
	       (uint64_t)flags << NEAR_WORD_FLAGS |
	       (uint64_t)len << NEAR_WORD_LEN | data << NEAR_WORD_DATA;
}

/*
 * Must be called after a send. If the port's last send was to the same peer,
 * and no slot has arrived since then, prefetches the slot after the next one.
 * In other cases, the prefetch might take the slot's cache line away from the
 * receiver.
 */
static near_inline void near_slot_prefetch(struct near_port *port,
					   const struct near_peer *peer)
{
	const struct near_tx *tx = &peer->tx;

	if (port->run == peer)
		near_prefetch_write(&tx->slots[(tx->tail + 1) & tx->mask]);
	port->run = peer;
}

/* Must be called after a slot was published. Rings the doorbell if required. */
static near_inline void near_sent(struct near_port *port,
				  struct near_peer *peer)
{
	if (near_unlikely(near_tx_need_doorbell(&peer->tx)))
		near_doorbell_ring(peer);
	near_slot_prefetch(port, peer);
}

/*
 * Prefetches the space in the data ring that a next message of len bytes would
 * use.
 */
static near_inline void near_data_prefetch(const struct near_tx *tx, size_t len)
{
	uint32_t at = (uint32_t)(tx->dtail - tx->dbase), i;

	if (near_unlikely(at + len > tx->dsize))
		at = 0;
	for (i = 0; i < len; i += NEAR_LINE)
		near_prefetch_write(tx->data + at + i);
}

static near_inline void near_send_inline(struct near_tx *tx,
					 struct near_slot *slot,
					 const struct near_msg *msg)
{
	near_copy_small(slot->bytes, msg->payload, msg->len);
	slot->tag = msg->tag;
	near_tx_publish(tx, slot, near_word(NEAR_KIND_INLINE, msg->flags,
					    msg->len, msg->data));
}

/*
 * Sends an inline message without a function call, so that msg stays in
 * registers. True: sent; the caller must call near_send_end(). False: not sent;
 * the caller must call near_send().
 */
static near_inline bool near_send_short(struct near_port *port,
					struct near_peer *peer,
					const struct near_msg *msg)
{
	struct near_tx *tx = &peer->tx;

	if (near_unlikely(msg->len > NEAR_INLINE || msg->data >> 32 ||
			  tx->tail - tx->head > tx->mask))
		return false;
	near_send_inline(tx, &tx->slots[tx->tail & tx->mask], msg);
	near_slot_prefetch(port, peer);
	return true;
}

/*
 * Must be called after near_send_short() has sent a message. Rings the doorbell
 * if required. Returns 0.
 */
static near_inline ssize_t near_send_end(struct near_peer *peer)
{
	return near_likely(near_tx_polled(&peer->tx)) ? 0 : near_notify(peer);
}

/*
 * Sends an inline or eager message. Returns
 * - 0: sent; the caller may reuse the buffer
 * - NEAR_LARGE: not sent; the caller must call near_send_large()
 * - -EAGAIN, -ECONNRESET or -EHOSTUNREACH: not sent; these errors have the same
 *   meaning as in near_send_large() (near.h)
 */
static near_inline int near_send(struct near_port *port, struct near_peer *peer,
				 const struct near_msg *msg)
{
	struct near_tx *tx = &peer->tx;
	struct near_slot *slot;
	uint64_t end;
	uint8_t *data;
	int ret;

	if (near_unlikely(!tx->slots)) {
		ret = near_connect(port, peer);
		if (ret)
			return ret;
	}
	slot = near_tx_slot(tx);
	if (near_unlikely(!slot))
		return near_full(port, peer);
	if (near_likely(msg->len <= NEAR_INLINE && !(msg->data >> 32))) {
		near_send_inline(tx, slot, msg);
		near_sent(port, peer);
		return 0;
	}
	if (near_unlikely(msg->len > tx->eager_max) &&
	    !near_medium_eager(peer, msg->len))
		return NEAR_LARGE;
	data = near_tx_data(tx, msg->len, &end);
	if (near_unlikely(!data))
		return msg->len > tx->eager_max ? NEAR_LARGE :
						  near_full(port, peer);
	memcpy(data, msg->payload, msg->len);
	slot->tag = msg->tag;
	slot->eager.len = (uint32_t)msg->len;
	slot->eager.data = (uint32_t)(msg->data >> 32);
	tx->dtail = end;
	near_tx_publish(tx, slot, near_word(NEAR_KIND_EAGER, msg->flags,
					    near_is_measured(peer, msg->len),
					    msg->data));
	near_sent(port, peer);
	if (near_likely(msg->len <= NEAR_EAGER_MAX))
		near_data_prefetch(tx, msg->len);
	return 0;
}

/*
 * Sets tag, flags and the lower half of data in msg. The slots of all kinds of
 * messages have these fields in the same place. The upper half of data becomes
 * 0.
 */
static near_inline void near_rx_ring_header(struct near_msg *msg,
					    const struct near_slot *slot,
					    uint64_t word)
{
	msg->tag = slot->tag;
	msg->data = word >> NEAR_WORD_DATA;
	msg->flags = word >> NEAR_WORD_FLAGS & NEAR_FLAGS;
}

/*
 * Delivers an inline message, and releases its slot. False: the slot remains in
 * the ring, because it is invalid, or because arrived() returned an error.
 */
static near_inline bool near_rx_ring_inline(struct near_port *port,
					    struct near_rx_ring *ring,
					    const struct near_slot *slot,
					    uint64_t word,
					    const struct near_sink *sink)
{
	struct near_msg msg;

	near_rx_ring_header(&msg, slot, word);
	msg.len = (uint8_t)(word >> NEAR_WORD_LEN);
	msg.payload = slot->bytes;
	if (near_unlikely(msg.len > NEAR_INLINE)) {
		near_rx_ring_broken(port, ring, "length", msg.len);
		return false;
	}
	if (near_unlikely(sink->arrived(port->ctx, ring->peer, &msg)))
		return false;
	near_rx_release_slot(&ring->rx);
	return true;
}

/*
 * For an eager message: sets len, payload and the upper half of data in msg.
 * near_rx_ring_header() must have set the other fields. False: the length in
 * the slot is invalid.
 */
static near_inline bool near_rx_ring_payload(struct near_rx_ring *ring,
					     const struct near_slot *slot,
					     struct near_msg *msg)
{
	msg->len = __atomic_load_n(&slot->eager.len, __ATOMIC_RELAXED);
	msg->data |= (uint64_t)slot->eager.data << 32;
	msg->payload = near_rx_data(&ring->rx, msg->len);
	return msg->payload;
}

/*
 * For an RTS: sets len, rndv and the upper half of data in msg, and payload to
 * NULL. near_rx_ring_header() must have set the other fields.
 */
static near_inline void near_rx_ring_announced(struct near_msg *msg,
					       const struct near_slot *slot)
{
	msg->len = __atomic_load_n(&slot->rts.len, __ATOMIC_RELAXED);
	msg->data |= (uint64_t)slot->rts.data << 32;
	msg->payload = NULL;
	msg->rndv.id = slot->rts.id;
	msg->rndv.addr = slot->rts.addr;
	msg->rndv.key = slot->rts.key;
}

/*
 * Handles a slot of any kind but an inline message. Releases the slot, or
 * returns false: the slot remains in the ring.
 */
static __attribute__((noinline)) bool
near_rx_ring_other(struct near_port *port, struct near_rx_ring *ring,
		   const struct near_slot *slot, uint64_t word,
		   const struct near_sink *sink)
{
	struct near_msg msg;
	uint64_t start;

	ring->rx.dnext = ring->rx.dhead;
	near_rx_ring_header(&msg, slot, word);
	switch (word >> NEAR_WORD_KIND & 0xf) {
	case NEAR_KIND_EAGER:
		if (near_likely(near_rx_ring_payload(ring, slot, &msg)))
			break;
		near_rx_ring_broken(port, ring, "length", msg.len);
		return false;
	case NEAR_KIND_RTS:
		near_rx_ring_announced(&msg, slot);
		break;
	default:
		if (near_control(port, ring, slot, word))
			return false;
		near_rx_release(&ring->rx);
		return true;
	}
	start = near_unlikely(word >> NEAR_WORD_LEN & 0xff) ? duo_now_ns() : 0;
	if (near_unlikely(sink->arrived(port->ctx, ring->peer, &msg)))
		return false;
	if (near_unlikely(start))
		near_medium_measured(ring->peer, start, msg.len);
	near_rx_release(&ring->rx);
	return true;
}

/*
 * Handles a slot of any kind. Releases the slot, or returns false: the slot
 * remains in the ring.
 */
static near_inline bool near_rx_ring_one(struct near_port *port,
					 struct near_rx_ring *ring,
					 const struct near_slot *slot,
					 uint64_t word,
					 const struct near_sink *sink)
{
	port->run = NULL;
	return near_likely((word >> NEAR_WORD_KIND & 0xf) == NEAR_KIND_INLINE)
		       ? near_rx_ring_inline(port, ring, slot, word, sink)
		       : near_rx_ring_other(port, ring, slot, word, sink);
}

/*
 * Handles at most NEAR_BURST new slots of a ring. Stops at a slot that must
 * remain in the ring. slot, word: the first new slot and its word, which
 * near_rx_ready() has stored. Returns the number of consumed slots.
 */
static near_inline int near_rx_ring_poll(struct near_port *port,
					 struct near_rx_ring *ring,
					 struct near_slot *slot, uint64_t word,
					 const struct near_sink *sink)
{
	int n = 0;

	while (near_likely(near_rx_ring_one(port, ring, slot, word, sink))) {
		if (near_unlikely(++n == NEAR_BURST) ||
		    !near_rx_ready(&ring->rx, &slot, &word))
			break;
		near_rx_prefetch(&ring->rx, n);
	}
	return n;
}

/*
 * Searches port->active, from the entry `at` on, for a ring with a new slot.
 * Returns the entry of the first such ring; NULL: none.
 */
static near_inline struct near_rx_ring *const *
near_ring_ready(const struct near_port *port, struct near_rx_ring *const *at)
{
	struct near_rx_ring *const *end = port->active + port->active_count;
	struct near_slot *slot;
	uint64_t word;

	for (; at < end; at++)
		if (near_rx_ready(&(*at)->rx, &slot, &word))
			return at;
	return NULL;
}

/*
 * True if near_poll() would find nothing except slots in active rings. In place
 * of each of the next near_polls_left() calls of near_poll(), the caller may
 * then call the cheaper near_ring_ready(). The caller must report the number of
 * replaced polls by near_passed().
 */
static near_inline bool near_rings_only(const struct near_port *port)
{
	return !__atomic_load_n(&port->segment->doorbell_words,
				__ATOMIC_RELAXED) &&
	       !near_port_has_work(port);
}

/*
 * Returns the number of polls before the next poll that calls near_port_tick(),
 * which does the periodic work.
 */
static near_inline uint32_t near_polls_left(const struct near_port *port)
{
	return port->tick_at - 1 - port->polls;
}

/*
 * Adds `polls` to port->polls: the number of polls that the caller has replaced
 * (near_rings_only()). Adds at most near_polls_left(), because the next poll
 * would otherwise pass tick_at and not call near_port_tick(). Without this
 * call, the port would not detect failed peers.
 */
static near_inline void near_passed(struct near_port *port, uint32_t polls)
{
	uint32_t left = near_polls_left(port);

	port->polls += polls < left ? polls : left;
}

/*
 * Delivers messages and continues operations. Returns the number of consumed
 * slots plus the result of near_work().
 */
static near_inline int near_poll(struct near_port *port,
				 const struct near_sink *sink)
{
	struct near_rx_ring *ring;
	struct near_slot *slot;
	uint64_t word;
	uint32_t i;
	int n = 0;

	if (near_unlikely(__atomic_load_n(&port->segment->doorbell_words,
					  __ATOMIC_RELAXED)))
		near_port_doorbells(port);
	for (i = 0; i < port->active_count; i++) {
		ring = port->active[i];
		if (near_rx_ready(&ring->rx, &slot, &word))
			n += near_rx_ring_poll(port, ring, slot, word, sink);
	}
	if (near_unlikely(port->work))
		n += near_work(port);
	if (near_unlikely(++port->polls == port->tick_at))
		near_port_tick(port);
	return n;
}

#endif /* NEAR_MSG_INLINE_H */
