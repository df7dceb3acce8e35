/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A slot of a message or of a large message's protocol, with any bytes.
 * Asserted:
 * - the payload that the embedder gets is in the ring;
 * - an id finds only operations with the sender of the slot;
 * - fragments are copied within the buffers of an operation.
 *
 * Lines for ./run, which explains their keys:
 * C: near/msg/inline.h near_rx_ring_one near_rx_ring_inline near_rx_ring_other
 * C: near/msg/inline.h near_rx_ring_payload near_rx_ring_announced
 * C: near/msg/control.c near_control near_control_answer near_control_frag
 * C: near/msg/large_tx.c near_tx_answered near_tx_cts near_tx_frag near_tx_end
 * C: near/msg/large_rx.c near_rx_find near_rx_frag near_rx_answer
 * C: near/msg/large_rx.c near_medium_measured near_rx_ns
 * C: near/link/pool.h near_pool_find near_pool_at
 * C: near/link/copy.h near_iov_copy near_copy_small
 * CBMC: --unwind 4 -DRINGS_CLASS=0 --object-bits 10
 * LONG: 12 s of CPU time
 * CASES: 4
 * EDIT near/link/pool.h: s/NEAR_POOL_CHUNK 64/NEAR_POOL_CHUNK 1/
 * EDIT near/near.h: s/NEAR_IOV_MAX 4/NEAR_IOV_MAX 2/
 * EDIT near/msg/inline.h: s/sink->arrived\(/arrived(/g
 * EDIT near/msg/large_tx.c: s/port->sink->sent\(/ended(/
 * EDIT near/msg/large_rx.c: s/port->sink->received\(/ended(/
 * MUTANT inline-length near/msg/inline.h: s/msg.len > NEAR_INLINE\)/0)/
 * MUTANT length-loaded-twice near/msg/inline.h: s/near_rx_data\(&ring->rx, msg->len\)/near_rx_data(\&ring->rx, hostile(slot->eager.len))/
 * MUTANT fragment-length near/msg/control.c: s/ \|\| len > op->len - op->done//
 * MUTANT fragment-of-another near/msg/large_rx.c: s/op && op->peer == peer && /op \&\& /
 * MUTANT finished-operation near/link/pool.h: s/obj && obj->use == id >> 32 && obj->use & 1/obj/
 * MUTANT index-unchecked near/link/pool.h: s/if \(index \/ NEAR_POOL_CHUNK >= pool->chunks\)/if (0)/
 * MUTANT answer-of-another near/msg/large_tx.c: s/op->peer != peer \|\| //
 * MUTANT length-zero near/msg/large_rx.c: s/\(len \| 1\)/len/
 * MUTANT requested-length near/msg/large_tx.c: s/ \|\| len > op->len\)/)/
 * MUTANT requested-twice near/msg/large_tx.c: s/ \|\| op->state == NEAR_TX_FRAGS\)/)/
 */

#include "rings.h"

#include "near/link/port.h"

static struct near_port port;
static struct near_peer peer, other;
static struct near_rx_ring rx_ring;

/* The embedder */

static int arrived(void *ctx, struct near_peer *source, struct near_msg *msg)
{
	check(source == &peer && !(msg->flags & ~NEAR_FLAGS));
	check(!msg->payload || msg->len <= NEAR_INLINE ||
	      in_data(msg->payload, msg->len));
	return any(bool) ? -EAGAIN : 0;
}

static void ended(void *ctx, void *cookie, int err)
{
	check(cookie == &peer);
}

#undef memcpy
#define memcpy hostile_bytes
#include "near/msg/control.c"
#include "near/msg/large_tx.c"
#include "near/msg/large_rx.c"
#undef memcpy

/* In place of functions of other layers and of link/ */

uint64_t duo_now_ns(void)
{
	return any(uint64_t);
}

void near_rx_ring_broken(struct near_port *of, struct near_rx_ring *broken,
			 const char *what, uint64_t value)
{
}

void near_rx_ring_resize(struct near_port *of, struct near_rx_ring *of_peer,
			 uint32_t more)
{
}

void near_doorbell_ring(struct near_peer *to)
{
}

void near_port_wake(struct near_port *of)
{
}

void near_peer_put(struct near_port *of, struct near_peer *source)
{
}

int near_connect(struct near_port *of, struct near_peer *to)
{
	return -EAGAIN;
}

int near_full(struct near_port *of, struct near_peer *to)
{
	return -EAGAIN;
}

void near_too_small(struct near_port *of, struct near_peer *to, uint32_t len)
{
}

bool near_peer_alive(struct near_port *of, const struct near_peer *source)
{
	return any(bool);
}

bool near_peer_closed(struct near_port *of, struct near_peer *source)
{
	return any(bool);
}

/* In place of functions of near/msg/large_coop.c, which coop.c checks */
bool near_tx_coop_requested(struct near_port *of, struct near_tx_op *op,
			    const struct near_slot *slot)
{
	check(op->peer == &peer);
	return any(bool);
}

void near_tx_coop(struct near_port *of, struct near_tx_op *op, size_t *budget)
{
}

void near_rx_coop(struct near_port *of, struct near_rx_op *op, size_t *budget)
{
}

void near_rx_coop_stop(struct near_rx_op *op, uint64_t end_ms)
{
}

uint64_t duo_now_ms(void)
{
	return any(uint64_t);
}

void near_ops_stop(struct near_port *of)
{
}

int near_port_open(struct near_port **of, const struct near_attr *attr,
		   const struct near_messages *messages)
{
	return -ENOMEM;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	return -1;
}

/* Makes one or two buffers. Returns their total size, bytes. */
static size_t buffers(struct iovec *iov, uint32_t *count)
{
	size_t first = any(size_t), second = any(size_t);

	assume(first <= 10000 && second <= 10000);
	*count = any(bool) ? 1 : 2;
	iov[0] = (struct iovec){ malloc(first), first };
	iov[1] = (struct iovec){ malloc(second), second };
	return *count == 1 ? first : first + second;
}

/* An operation in its pool: of this peer or of another peer, in use or free. */
static struct near_tx_op tx_op;
static struct near_rx_op rx_op;
static char *tx_chunk[1] = { (char *)&tx_op };
static char *rx_chunk[1] = { (char *)&rx_op };

static bool tx_op_valid(size_t room)
{
	return tx_op.len <= room && tx_op.done <= tx_op.len &&
	       (!tx_op.done || tx_op.state == NEAR_TX_FRAGS ||
		tx_op.state == NEAR_TX_SENT);
}

static size_t tx_op_any(bool mine)
{
	size_t room = buffers(tx_op.iov, &tx_op.iov_count);

	port.tx_ops = (struct near_pool){ .chunk = tx_chunk, .chunks = 1 };
	tx_op.pooled.use = any(uint32_t) << 1;
	tx_op.peer = mine || any(bool) ? &peer : &other;
	tx_op.pooled.use |= mine || tx_op.peer == &other;
	tx_op.cookie = mine ? &peer : &other;
	tx_op.len = any(size_t);
	tx_op.done = any(size_t);
	tx_op.state = any(enum near_tx_state);
	tx_op.too_small = any(uint32_t);
	assume(tx_op.state <= NEAR_TX_COOP && tx_op_valid(room));
	near_list_append(&port.sending, &tx_op.link);
	return room;
}

static void rx_op_any(bool mine)
{
	size_t room = buffers(rx_op.iov, &rx_op.iov_count);

	port.rx_ops = (struct near_pool){ .chunk = rx_chunk, .chunks = 1 };
	rx_op.pooled.use = any(uint32_t) << 1;
	rx_op.peer = mine || any(bool) ? &peer : &other;
	rx_op.pooled.use |= mine || rx_op.peer == &other;
	rx_op.cookie = mine ? &peer : &other;
	rx_op.len = any(size_t);
	rx_op.done = any(size_t);
	rx_op.state = any(enum near_rx_state);
	assume(rx_op.len <= room && rx_op.done < rx_op.len);
	near_list_append(&port.receiving, &rx_op.link);
}

static void message(void)
{
	struct near_slot *slot;
	uint64_t word;

	if (!near_rx_ready(&rx_ring.rx, &slot, &word))
		return;
	assume((word >> NEAR_WORD_KIND & 0xf) <= NEAR_KIND_RTS);
	near_rx_ring_one(&port, &rx_ring, slot, word, NULL);
	check(rx_valid(&rx_ring.rx));
}

static void answer(void)
{
	size_t room = tx_op_any(any(bool));

	near_control_answer(&port, &rx_ring, rx_ring.rx.next,
			    any(enum near_kind));
	check(tx_op.pooled.use % 2 == 0 || tx_op_valid(room));
}

static void fragment(void)
{
	rx_op_any(any(bool));
	near_control_frag(&port, &rx_ring, rx_ring.rx.next, any(uint64_t));
}

/* Calls the sender's step after a CTS. */
static void sends(void)
{
	size_t room = tx_op_any(true);

	assume(tx_op.state == NEAR_TX_FRAGS);
	tx_any(&peer.tx);
	near_tx_frag(&port, &tx_op);
	check(tx_op_valid(room));
}

int main(void)
{
	rx_ring.peer = &peer;
	near_list_init(&peer.waiting);
	near_list_init(&port.sending);
	near_list_init(&port.receiving);
	near_tx_none(&peer.tx);
	ring_made();
	rx_any(&rx_ring.rx);
	switch (CASE) {
	case 0:
		message();
		break;
	case 1:
		answer();
		break;
	case 2:
		fragment();
		break;
	default:
		sends();
	}
	return 0;
}
