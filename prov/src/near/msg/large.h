/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Large messages, which do not fit into a ring: the rendezvous protocol. The
 * sender announces the message (RTS). Once its receive is posted, the receiver
 * chooses how to copy:
 *
 * - Single copy: the receiver reads the message from the sender's memory.
 * - Cooperative copy, for long messages: the receiver requests (COOP) that the
 *   sender writes a part of the message while the receiver reads the other
 *   part; msg/coop.h.
 * - Fragments, if the receiver cannot read the sender's memory: the receiver
 *   requests (CTS) that the sender sends the message through the data ring.
 *
 * The receiver acknowledges the complete message (ACK). Each end copies in its
 * polls, a limited number of bytes per poll.
 */
#ifndef NEAR_PROTO_LARGE_H
#define NEAR_PROTO_LARGE_H

#include "near/msg/inline.h"
#include "near/msg/coop.h"

#define NEAR_STEP (512u << 10)	/* limit of bytes per poll and direction */
#define NEAR_FRAG (16u << 10)	/* limit of a fragment, bytes */

enum near_tx_state {
	NEAR_TX_ANNOUNCED,	/* RTS was sent */
	NEAR_TX_SENT,		/* all fragments were sent; waits for the ACK */
	NEAR_TX_FRAGS,		/* CTS was received; op is in port->sending */
	NEAR_TX_COOP,		/* COOP was received; op is in port->sending */
};

/* The sender's operation for a large message. */
struct near_tx_op {
	struct near_pooled pooled;
	struct near_link link;	/* in port->sending */
	enum near_tx_state state;
	struct near_peer *peer;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	/* bytes of the message; after a CTS: bytes requested */
	size_t len;
	size_t done;
	/* id of the receiver's operation, after a CTS */
	uint64_t answer;
	/*
	 * After a COOP: address of the receiver's buffer, bytes requested,
	 * number of the copy, bytes of a step, steps.
	 */
	uint64_t there;
	size_t shared;
	uint32_t round;
	uint32_t step;
	uint32_t steps;
	uint32_t wrote;		/* steps that the sender has written */
	/* length to request from a larger ring; 0: none */
	uint32_t too_small;
	/* copy of the message, or owned memory, to be freed; or NULL */
	void *copy;
	void *cookie;
};

/*
 * State of a receive. In all states but NEAR_RX_FRAGS the operation is in
 * port->receiving, or in peer->waiting.
 */
enum near_rx_state {
	NEAR_RX_READ,		/* single copy by the receiver */
	NEAR_RX_COOP_PENDING,	/* must send COOP, or waits in peer->waiting */
	NEAR_RX_COOP,		/* both ends copy */
	/* the sender writes the last steps that it took */
	NEAR_RX_COOP_RUNNING,
	NEAR_RX_CTS,		/* must send CTS */
	NEAR_RX_ACK,		/* must send ACK */
	NEAR_RX_FRAGS,		/* waits for fragments */
	NEAR_RX_LOST,		/* the sender has failed: near_rx_lost() */
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
	size_t stop;		/* end of the part to read, bytes */
	size_t done;
	uint32_t step;	/* cooperative copy: bytes of a step; number of steps */
	uint32_t steps;
	/* steps the sender took, after near_coop_end() */
	uint32_t claimed;
	bool failed;		/* the receiver could not read a step */
	void *cookie;
};

/*
 * Returns the largest fragment in bytes: an eighth of the data ring, so that
 * the receiver can copy a fragment while the sender writes the next.
 */
static inline size_t near_frag_max(const struct near_tx *tx)
{
	size_t most = tx->dsize / 8 & ~(size_t)(NEAR_LINE - 1);

	return most < NEAR_FRAG ? most : NEAR_FRAG;
}

/* Returns a pointer to the number of bytes that this poll may still read. */
static inline size_t *near_read_left(struct near_port *port)
{
	if (port->read_poll != port->polls) {
		port->read_poll = port->polls;
		port->read_left = NEAR_STEP;
	}
	return &port->read_left;
}

/*
 * The slow path of near_control_slot(): loads the head, connects to the peer.
 */
struct near_slot *near_control_slot_other(struct near_port *port,
					  struct near_peer *peer);

/*
 * Returns a slot for a control message (an ACK, for example), also while
 * operations are queued. May connect to the peer. NULL: no slot is free now, or
 * the peer has failed.
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
 * Publishes a control message, which does not count as a message for the order
 * of operations: see near_tx_taken().
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
 * Continue the operation with this link: copy at most *budget bytes and
 * subtract them from *budget. True: the operation has left its list.
 */
bool near_tx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);
bool near_rx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);

/* large_coop.c: continues a cooperative copy, at the sender. */
void near_tx_coop(struct near_port *port, struct near_tx_op *op,
		  size_t *budget);
/* Ends the sender's part of a cooperative copy, if there is one. */
static inline void near_tx_coop_over(struct near_tx_op *op)
{
	if (near_likely(op->state != NEAR_TX_COOP))
		return;
	near_list_remove(&op->link);
	op->state = NEAR_TX_ANNOUNCED;
}
/* Continues a cooperative copy, at the receiver. */
void near_rx_coop(struct near_port *port, struct near_rx_op *op,
		  size_t *budget);
/*
 * Ends the cooperative copy with a peer, if there is one, and starts the next
 * operation of peer->waiting.
 */
void near_rx_coop_next(struct near_port *port, struct near_peer *peer);
/*
 * Reads the next len bytes of a message, up to op->stop, from the sender's
 * memory. False: failed.
 */
bool near_rx_pull(struct near_rx_op *op, size_t len);
/*
 * Makes the receiver request the whole message in fragments, because a read
 * failed.
 */
void near_rx_pull_failed(struct near_rx_op *op);

/* Handles a CTS, COOP or ACK from the peer. False: the slot is invalid. */
bool near_tx_answered(struct near_port *port, struct near_peer *peer,
		      const struct near_slot *slot, enum near_kind kind);
/* Handles a COOP for this operation. False: the slot is invalid. */
bool near_tx_coop_offered(struct near_port *port, struct near_tx_op *op,
			  const struct near_slot *slot);
/* Frees an operation, which must not be in port->sending, and calls sent(). */
void near_tx_end(struct near_port *port, struct near_tx_op *op, int err);
/*
 * Returns the operation of this peer that waits for fragments and has this id;
 * NULL: none.
 */
struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id);
/*
 * Copies a fragment, the next len bytes. len must not exceed the bytes missing.
 */
void near_rx_frag(struct near_port *port, struct near_rx_op *op,
		  const void *data, size_t len);
/*
 * Frees an operation, which must be in no list. Calls received() if that was
 * not done before.
 */
void near_rx_end(struct near_port *port, struct near_rx_op *op, int err);

/* large_coop.c: waits until no peer writes to buffers; near_messages.stop(). */
void near_ops_stop(struct near_port *port);

#endif /* NEAR_PROTO_LARGE_H */
