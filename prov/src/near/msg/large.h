/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Large messages: docs/near/protocol.md. */
#ifndef NEAR_MSG_LARGE_H
#define NEAR_MSG_LARGE_H

#include "near/msg/inline.h"
#include "near/msg/coop.h"

#define NEAR_STOP_MS 1000	/* longest wait until a peer's writes end, ms */

/* bytes of large messages that a poll copies at most, in each direction */
#define NEAR_STEP (512u << 10)
#define NEAR_FRAG (16u << 10)	/* length of the longest fragment, bytes */

enum near_tx_state {
	NEAR_TX_ANNOUNCED,	/* RTS was sent; waits for CTS, COOP or ACK */
	NEAR_TX_SENT,		/* all fragments were sent; waits for the ACK */
	NEAR_TX_FRAGS,		/* sends fragments; in port->sending */
	NEAR_TX_COOP,		/* both ends copy; in port->sending */
};

/* The sender's operation for a large message. */
struct near_tx_op {
	struct near_pooled pooled;
	struct near_link link;	/* in port->sending */
	enum near_tx_state state;
	struct near_peer *peer;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	size_t len;	/* bytes of the message; after a CTS: bytes to send */
	size_t done;		/* bytes sent in fragments */
	uint64_t answer;	/* id of the receiver's operation, from CTS */
	/* cooperative copy: the fields to `wrote`, from the COOP slot */
	uint64_t there;		/* address of the receiver's buffer */
	size_t shared;		/* bytes that both ends copy together */
	uint32_t round;
	uint32_t step;		/* bytes of a step */
	uint32_t steps;		/* number of steps */
	uint32_t wrote;	/* number of steps that the sender has written */
	bool device;	/* iov is device memory; false after unload() */
	int failed;	/* positive error of near_sink.unload(); 0: none */
	/* length of the message if a larger ring would make it eager; else 0 */
	uint32_t too_small;
	void *copy;	/* memory that near_tx_end() frees; NULL: none */
	void *cookie;
};

/* State of a near_rx_op, which is in port->receiving unless noted here. */
enum near_rx_state {
	NEAR_RX_READ,		/* single copy by the receiver */
	/* must send COOP; in peer->waiting while peer->coop_op is another op */
	NEAR_RX_COOP_PENDING,
	NEAR_RX_COOP,		/* both ends copy */
	/* the round has ended, but the sender may still write its last step */
	NEAR_RX_COOP_RUNNING,
	NEAR_RX_CTS,		/* must send CTS */
	NEAR_RX_ACK,		/* must send ACK */
	NEAR_RX_FRAGS,		/* waits for fragments; in no list */
	NEAR_RX_FETCHING,	/* the embedder fetches; in no list */
};

/* The receiver's operation for a large message. */
struct near_rx_op {
	struct near_pooled pooled;
	struct near_link link;	/* in port->receiving or peer->waiting */
	enum near_rx_state state;
	struct near_peer *peer;
	struct near_rndv rndv;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	size_t len;		/* bytes to receive */
	/* offset of the first byte that the receiver must not read */
	size_t stop;
	size_t done;		/* bytes copied to iov by the receiver */
	/* cooperative copy: the fields to `failed` */
	uint32_t step;		/* bytes of a step */
	uint32_t steps;		/* number of steps */
	uint32_t sender_steps;	/* steps taken by the sender, at the end */
	bool failed;		/* a read has failed */
	void *cookie;
};

/*
 * Returns the length of the longest fragment in bytes: an eighth of the data
 * ring, so that both ends can copy at the same time, but at most NEAR_FRAG.
 */
static inline size_t near_frag_max(const struct near_tx *tx)
{
	size_t most = tx->dsize / 8 & ~(size_t)(NEAR_LINE - 1);

	return most < NEAR_FRAG ? most : NEAR_FRAG;
}

/*
 * Returns &port->read_left, the number of bytes that this poll may still copy
 * by single copy. The first call in a poll sets this number to NEAR_STEP.
 */
static inline size_t *near_read_left(struct near_port *port)
{
	if (port->read_poll != port->polls) {
		port->read_poll = port->polls;
		port->read_left = NEAR_STEP;
	}
	return &port->read_left;
}

/* Subtracts len from port->read_left. False: len is greater; do not read. */
static inline bool near_read_take(struct near_port *port, size_t len)
{
	size_t *left = near_read_left(port);

	if (len > *left)
		return false;
	*left -= len;
	return true;
}

/* Slow path of near_control_slot(). */
struct near_slot *near_control_slot_other(struct near_port *port,
					  struct near_peer *peer);

/*
 * Returns a slot for a control message such as an ACK, despite NEAR_GATE_QUEUE.
 * Connects to the peer if necessary. NULL: no slot is free, or the peer is not
 * usable.
 */
static inline struct near_slot *near_control_slot(struct near_port *port,
						  struct near_peer *peer)
{
	const struct near_tx *tx = &peer->tx;

	if (near_likely(tx->tail - tx->head <= tx->mask))
		return &tx->slots[tx->tail & tx->mask];
	return near_control_slot_other(port, peer);
}

/* Publishes a control message, which near_tx_consumed() ignores. */
static near_inline void near_control_send(struct near_port *port,
					  struct near_peer *peer,
					  struct near_slot *slot,
					  enum near_kind kind,
					  unsigned int flags)
{
	near_tx_publish_quiet(&peer->tx, slot, near_word(kind, flags, 0, 0));
	near_sent(port, peer);
}

/*
 * Continues an operation of port->sending until *budget bytes are copied, or
 * until the operation must wait. Subtracts the copied bytes from *budget, but
 * not below 0. True: the operation has left port->sending.
 */
bool near_tx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);
/* Does the same for port->receiving. */
bool near_rx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);

/* Continues a cooperative copy, at the sender. */
void near_tx_coop(struct near_port *port, struct near_tx_op *op,
		  size_t *budget);
/* Ends op's cooperative copy at the sender, if there is one. */
static inline void near_tx_coop_finish(struct near_tx_op *op)
{
	if (near_likely(op->state != NEAR_TX_COOP))
		return;
	near_list_remove(&op->link);
	op->state = NEAR_TX_ANNOUNCED;
}
/* Continues a cooperative copy, at the receiver. */
void near_rx_coop(struct near_port *port, struct near_rx_op *op,
		  size_t *budget);
/* Sets peer->coop_op to the first operation of peer->waiting, or to NULL. */
void near_rx_coop_next(struct near_port *port, struct near_peer *peer);
/* Reads len bytes from the sender, but not beyond op->stop. False: failed. */
bool near_rx_pull(struct near_rx_op *op, size_t len);
/* Requests the whole message in fragments, after a failed read. */
void near_rx_pull_failed(struct near_rx_op *op);

/* Handles a CTS, COOP or ACK from the peer. False: the slot is invalid. */
bool near_tx_answered(struct near_port *port, struct near_peer *peer,
		      const struct near_slot *slot, enum near_kind kind);
/* Handles a COOP for op. False: the slot is invalid. */
bool near_tx_coop_requested(struct near_port *port, struct near_tx_op *op,
			    const struct near_slot *slot);
/* Frees an operation that is not in port->sending, and calls sent(). */
void near_tx_end(struct near_port *port, struct near_tx_op *op, int err);
/* Returns the operation with this id that waits for fragments; NULL: none. */
struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id);
/*
 * Copies a fragment to op's buffers, and ends op after the last one. The caller
 * must check that len <= op->len - op->done.
 */
void near_rx_frag(struct near_port *port, struct near_rx_op *op,
		  const void *data, size_t len);
/*
 * Frees an operation that is in no list. First calls near_sink.received(), if
 * this was not called for the operation before.
 */
void near_rx_end(struct near_port *port, struct near_rx_op *op, int err);

/*
 * Ends op's cooperative copy, if there is one. Waits until the sender writes no
 * more, or until the time end_ms, because the application may reuse the buffer.
 * A sender that a signal has stopped may still write later.
 */
void near_rx_coop_stop(struct near_rx_op *op, uint64_t end_ms);
/* Implements near_messages.stop(). */
void near_ops_stop(struct near_port *port);

#endif /* NEAR_MSG_LARGE_H */
