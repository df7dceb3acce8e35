/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Large messages do not fit into a ring. The sender announces one (RTS). Once
 * the receiver has the buffer, it reads the message from the sender's memory.
 * For a long one it requests a cooperative copy (COOP); if it cannot read, it
 * requests fragments through the data ring (CTS). The receiver acknowledges the
 * complete message (ACK). Each poll takes a step.
 */
#ifndef NEAR_PROTO_LARGE_H
#define NEAR_PROTO_LARGE_H

#include "near/msg/inline.h"
#include "near/msg/coop.h"

#define NEAR_STEP (512u << 10)	/* bytes per poll, each way */
#define NEAR_FRAG (16u << 10)	/* bytes of a fragment, at most */

enum near_tx_state {
	NEAR_TX_ANNOUNCED,	/* RTS sent */
	NEAR_TX_SENT,		/* all fragments sent: ACK to come */
	NEAR_TX_FRAGS,		/* CTS received: in port->sending */
	NEAR_TX_COOP,		/* COOP received: in port->sending */
};

/* A large message to send. */
struct near_tx_op {
	struct near_pooled pooled;
	struct near_link link;	/* of port->sending */
	enum near_tx_state state;
	struct near_peer *peer;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	size_t len;		/* bytes; after CTS: bytes requested */
	size_t done;
	uint64_t answer;	/* the receiver's operation */
	/* COOP: address of the receiver's buffer, and the round */
	uint64_t there;
	size_t shared;		/* bytes requested */
	uint32_t round;
	uint32_t step;
	uint32_t steps;
	uint32_t wrote;		/* steps that this end has written */
	uint32_t too_small;	/* near_tx_too_small() */
	void *copy;
	void *cookie;
};

/* The operation is in port->receiving but for NEAR_RX_FRAGS. */
enum near_rx_state {
	NEAR_RX_READ,		/* single copy */
	NEAR_RX_COOP_PENDING,		/* COOP to send; or in peer->waiting */
	NEAR_RX_COOP,		/* the sender copies, too */
	NEAR_RX_COOP_RUNNING,		/* the sender writes its last steps */
	NEAR_RX_CTS,		/* CTS to send */
	NEAR_RX_ACK,		/* ACK to send */
	NEAR_RX_FRAGS,		/* waiting for fragments */
	NEAR_RX_LOST,		/* its sender has failed, not detected yet */
};

/* A large message to receive. */
struct near_rx_op {
	struct near_pooled pooled;
	struct near_link link;	/* of port->receiving */
	enum near_rx_state state;
	struct near_peer *peer;
	struct near_rndv rndv;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	size_t len;		/* bytes requested */
	size_t stop;		/* end of the part that the receiver reads */
	size_t done;
	uint32_t step;		/* COOP: bytes of a step, number of steps */
	uint32_t steps;
	uint32_t claimed;	/* COOP_RUNNING: steps that the sender took */
	bool failed;		/* COOP_RUNNING: reading failed */
	void *cookie;
};

/* Returns an eighth of the ring in full lines: both ends then copy at once. */
static inline size_t near_frag_max(const struct near_tx *tx)
{
	size_t most = tx->dsize / 8 & ~(size_t)(NEAR_LINE - 1);

	return most < NEAR_FRAG ? most : NEAR_FRAG;
}

/* Returns the number of bytes that the current poll may still read. */
static inline size_t *near_read_left(struct near_port *port)
{
	if (port->read_poll != port->polls) {
		port->read_poll = port->polls;
		port->read_left = NEAR_STEP;
	}
	return &port->read_left;
}

struct near_slot *near_control_slot_other(struct near_port *port,
					  struct near_peer *peer);

/* Returns a slot for a control message; NULL: none now, or never again. */
static inline struct near_slot *near_control_slot(struct near_port *port,
						  struct near_peer *peer)
{
	const struct near_tx *tx = &peer->tx;

	if (near_likely(tx->tail - tx->head <= tx->mask))
		return &tx->slots[tx->tail & tx->mask];
	return near_control_slot_other(port, peer);
}

static near_inline void near_control_send(struct near_port *port,
					  struct near_peer *peer,
					  struct near_slot *slot,
					  enum near_kind kind,
					  unsigned int flags)
{
	near_tx_publish_quiet(&peer->tx, slot, near_word(kind, flags, 0, 0));
	near_sent(port, peer);
}

/* Copies at most *budget bytes; true: the operation has left its list. */
bool near_tx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);
bool near_rx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);

/* large_coop.c: the same for cooperative copies */
void near_tx_coop(struct near_port *port, struct near_tx_op *op,
		  size_t *budget);
static inline void near_tx_coop_over(struct near_tx_op *op)
{
	if (near_likely(op->state != NEAR_TX_COOP))
		return;
	near_list_remove(&op->link);
	op->state = NEAR_TX_ANNOUNCED;
}
void near_rx_coop(struct near_port *port, struct near_rx_op *op,
		  size_t *budget);
/* Ends a cooperative copy with the peer, and starts the next that waits. */
void near_rx_coop_next(struct near_port *port, struct near_peer *peer);
/* Reads bytes [done, done + len) from the sender's memory. */
bool near_rx_pull(struct near_rx_op *op, size_t len);
/* Requests the whole message in fragments, as it cannot be read. */
void near_rx_pull_failed(struct near_rx_op *op);

/* Handles a CTS, COOP or ACK of the peer; false: invalid. */
bool near_tx_answered(struct near_port *port, struct near_peer *peer,
		      const struct near_slot *slot, enum near_kind kind);
bool near_tx_coop_offered(struct near_port *port, struct near_tx_op *op,
			  const struct near_slot *slot);
void near_tx_end(struct near_port *port, struct near_tx_op *op, int err);
/* Returns NULL if the id is not of an operation of that peer. */
struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id);
void near_rx_frag(struct near_port *port, struct near_rx_op *op,
		  const void *data, size_t len);
void near_rx_end(struct near_port *port, struct near_rx_op *op, int err);

/* large_coop.c: near_messages.stop() */
void near_ops_stop(struct near_port *port);

#endif /* NEAR_PROTO_LARGE_H */
