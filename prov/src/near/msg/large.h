/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Large messages, which are sent by rendezvous: docs/near/protocol.md. Each end
 * has an operation for such a message. The embedder is the code that uses near.
 */
#ifndef NEAR_MSG_LARGE_H
#define NEAR_MSG_LARGE_H

#include "near/msg/inline.h"
#include "near/msg/coop.h"

/*
 * In a cooperative copy the sender writes to the receiver's buffers. If the
 * receiver's port closes, or disconnects the sender, the receiver waits until
 * these writes have ended. It waits at most this time, ms, then continues.
 */
#define NEAR_STOP_MS 1000

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
	/* The next six fields are valid only during a cooperative copy. */
	uint64_t there;	/* address of the receiver's buffer, from the COOP */
	size_t shared;	/* bytes that both ends copy together, from the COOP */
	uint32_t round;	/* number of this cooperative copy, from the COOP */
	uint32_t step;		/* length of a step, bytes */
	uint32_t steps;		/* number of steps of all `shared` bytes */
	uint32_t wrote;	/* number of steps that the sender has written so far */
	bool device;	/* iov is device memory; false after unload() */
	int failed;	/* positive error of near_sink.unload(); 0: none */
	/* length of the message if a larger ring would make it eager; else 0 */
	uint32_t too_small;
	/*
	 * buffer in iov that near_tx_end() must free: a copy of the message, or
	 * near_large.owned; NULL: the embedder frees the buffers in iov
	 */
	void *copy;
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
	/*
	 * All bytes are there; must call near_sink.received() and send ACK, as
	 * soon as a slot is free for the ACK. After the end of the receive the
	 * application might not poll, and the sender waits for the ACK.
	 */
	NEAR_RX_ACK,
	NEAR_RX_FRAGS,		/* waits for fragments; in no list */
	/* the embedder reads the message by near_rma(); in no list */
	NEAR_RX_FETCHING,
};

/* The receiver's operation for a large message. */
struct near_rx_op {
	struct near_pooled pooled;
	struct near_link link;	/* in port->receiving or peer->waiting */
	enum near_rx_state state;
	struct near_peer *peer;
	/*
	 * rndv.key is 1 only for a trial that the embedder receives in device
	 * memory, which the ACK reports. near_recv() sets rndv.key to 0.
	 */
	struct near_rndv rndv;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	size_t len;		/* bytes to receive */
	/*
	 * The receiver reads only the bytes before this offset: len, or after a
	 * cooperative copy the offset of the first byte that the sender wrote.
	 */
	size_t stop;
	size_t done;	/* bytes that the receiver has copied to iov so far */
	/* The next four fields are valid only during a cooperative copy. */
	uint32_t step;		/* length of a step, bytes */
	uint32_t steps;		/* number of steps of the whole message */
	/*
	 * number of steps that the sender has taken; it may still be writing
	 * them. Set when the receiver ends the round: near_coop_end()
	 */
	uint32_t sender_steps;
	bool failed;		/* the receiver could not read a step */
	int err;	/* result of the receive, in the state NEAR_RX_ACK */
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

/*
 * Subtracts len from port->read_left. False: len is greater than this number,
 * and the caller must not read in this poll.
 */
static inline bool near_read_take(struct near_port *port, size_t len)
{
	size_t *left = near_read_left(port);

	if (len > *left)
		return false;
	*left -= len;
	return true;
}

/* Slow path of near_control_slot(): no slot was free at the last check. */
struct near_slot *near_control_slot_other(struct near_port *port,
					  struct near_peer *peer);

/*
 * Returns a free slot for a control message such as an ACK. While RMA
 * operations are queued, NEAR_GATE_QUEUE makes the ring appear full to
 * messages, but not to this function. Connects to the peer if necessary. NULL:
 * no slot is free, or this port cannot send to the peer.
 */
static inline struct near_slot *near_control_slot(struct near_port *port,
						  struct near_peer *peer)
{
	const struct near_tx *tx = &peer->tx;

	if (near_likely(tx->tail - tx->head <= tx->mask))
		return &tx->slots[tx->tail & tx->mask];
	return near_control_slot_other(port, peer);
}

/*
 * Publishes a control message. near_tx_consumed() does not count its slot. So
 * RMA that must follow earlier messages (NEAR_RMA_BEHIND) does not wait for the
 * peer to consume this slot.
 */
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
 * These two functions continue an operation, of port->sending or of
 * port->receiving, until *budget bytes are copied, or until the operation must
 * wait. They subtract the copied bytes from *budget, but not below 0. They
 * return true if the operation has left its list.
 */
bool near_tx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);
bool near_rx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);

/* Continues op's cooperative copy, at the sender. Uses *budget as above. */
void near_tx_coop(struct near_port *port, struct near_tx_op *op,
		  size_t *budget);
/*
 * Ends op's cooperative copy at the sender, if there is one. The receiver may
 * then send a CTS or an ACK.
 */
static inline void near_tx_coop_finish(struct near_tx_op *op)
{
	if (near_likely(op->state != NEAR_TX_COOP))
		return;
	near_list_remove(&op->link);
	op->state = NEAR_TX_ANNOUNCED;
}
/* Continues op's cooperative copy, at the receiver. Uses *budget as above. */
void near_rx_coop(struct near_port *port, struct near_rx_op *op,
		  size_t *budget);
/* Sets peer->coop_op to the first operation of peer->waiting, or to NULL. */
void near_rx_coop_next(struct near_port *port, struct near_peer *peer);
/*
 * Reads the next len bytes of the message from the sender's memory, but not
 * beyond op->stop. False: the read failed.
 */
bool near_rx_pull(struct near_rx_op *op, size_t len);
/* Handles a failed read: the receiver will request all bytes in fragments. */
void near_rx_pull_failed(struct near_rx_op *op);

/* Handles a CTS, COOP or ACK from the peer. False: the slot is invalid. */
bool near_tx_answered(struct near_port *port, struct near_peer *peer,
		      const struct near_slot *slot, enum near_kind kind);
/* Handles a COOP for op. False: the slot is invalid. */
bool near_tx_coop_requested(struct near_port *port, struct near_tx_op *op,
			    const struct near_slot *slot);
/*
 * Frees an operation, which must not be in port->sending. Then calls
 * near_sink.sent() with err, if the operation has a cookie.
 */
void near_tx_end(struct near_port *port, struct near_tx_op *op, int err);
/*
 * Returns the operation with this id if it receives from this peer and waits
 * for fragments. Otherwise returns NULL.
 */
struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id);
/*
 * Copies a fragment to op's buffers, and ends op after the last one. The caller
 * must check that len <= op->len - op->done.
 */
void near_rx_frag(struct near_port *port, struct near_rx_op *op,
		  const void *data, size_t len);
/*
 * Calls near_sink.received() with err, or in the state NEAR_RX_ACK with
 * op->err. Frees the operation, which must be in no list.
 */
void near_rx_end(struct near_port *port, struct near_rx_op *op, int err);

/*
 * Ends op's cooperative copy, if there is one. Waits until the sender writes no
 * more, because the application may reuse the buffer afterwards. The wait ends
 * at the time end_ms (duo_now_ms()) at the latest. A sender that a signal has
 * stopped may still write to the buffer after this time.
 */
void near_rx_coop_stop(struct near_rx_op *op, uint64_t end_ms);
/* Implements near_messages.stop(): ends the port's cooperative copies. */
void near_ops_stop(struct near_port *port);

#endif /* NEAR_MSG_LARGE_H */
