/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Messages that do not fit into a ring. The sender announces one (RTS). The
 * receiver, once it knows where to, reads it out of the sender's memory. If it is
 * long, it has the sender help by writing to its own (SHARE); if it cannot read,
 * it asks for it in pieces through the data ring (CTS). However it came, the
 * receiver says when it has it (ACK). Each takes a step per poll.
 */
#ifndef NEAR_PROTO_LARGE_H
#define NEAR_PROTO_LARGE_H

#include "near/msg/inline.h"
#include "near/msg/coop.h"

#define NEAR_STEP (512u << 10)	/* bytes per poll, each way */
#define NEAR_FRAG (16u << 10)	/* at most in one piece */

enum near_tx_state {
	NEAR_TX_ANNOUNCED,	/* RTS sent */
	NEAR_TX_SENT,		/* all pieces sent: ACK to come */
	NEAR_TX_FRAGS,		/* CTS came: in port->sending */
	NEAR_TX_COOP,		/* SHARE came: in port->sending */
};

/* A large message that we send. */
struct near_tx_op {
	struct near_pooled pooled;
	struct near_link link;	/* of port->sending */
	enum near_tx_state state;
	struct near_peer *peer;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	size_t len;		/* that it has; that are wanted, after CTS */
	size_t done;
	uint64_t answer;	/* the receiver's operation */
	/* SHARE: the receiver's buffer, and in how many steps it is filled */
	uint64_t there;
	size_t shared;		/* bytes that are wanted */
	uint32_t round;
	uint32_t step;
	uint32_t steps;
	uint32_t wrote;		/* of them by us */
	uint32_t too_small;	/* near_tx_too_small() */
	void *copy;
	void *cookie;
};

/* In port->receiving but for NEAR_RX_FRAGS. */
enum near_rx_state {
	NEAR_RX_READ,		/* out of the sender's memory */
	NEAR_RX_COOP_PENDING,		/* SHARE to be sent; or in near_peer.waiting */
	NEAR_RX_COOP,		/* the sender helps */
	NEAR_RX_COOP_RUNNING,		/* all is claimed, the sender still writes */
	NEAR_RX_CTS,		/* to be sent */
	NEAR_RX_ACK,		/* to be sent */
	NEAR_RX_FRAGS,		/* wait for them */
	NEAR_RX_LOST,		/* its sender is about to be found dead */
};

/* One that we receive. */
struct near_rx_op {
	struct near_pooled pooled;
	struct near_link link;	/* of port->receiving */
	enum near_rx_state state;
	struct near_peer *peer;
	struct near_rndv rndv;
	uint32_t iov_count;
	struct iovec iov[NEAR_IOV_MAX];
	size_t len;		/* that are wanted */
	size_t stop;		/* we read so far; the sender wrote the rest */
	size_t done;
	uint32_t step;		/* SHARE: bytes, and how many of them */
	uint32_t steps;
	uint32_t claimed;	/* SHARED: by the sender */
	bool failed;		/* SHARED: we cannot read */
	void *cookie;
};

/* An eighth of the ring, so that both ends copy at once; in whole lines. */
static inline size_t near_frag_max(const struct near_tx *tx)
{
	size_t most = tx->dsize / 8 & ~(size_t)(NEAR_LINE - 1);

	return most < NEAR_FRAG ? most : NEAR_FRAG;
}

/* What the current poll may still read of other's memory. */
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

/* A slot for a control message to peer; NULL: not now, or never again. */
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

/* One step, of *budget bytes at most; true: it is no longer in the list. */
bool near_tx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);
bool near_rx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);

/* large_share.c: the same for what both copy, each side */
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
/* The peer's claims are free: for the next receive that waits for them. */
void near_rx_coop_next(struct near_port *port, struct near_peer *peer);
/* Bytes [done, done + len) of the buffers from those of the sender. */
bool near_rx_pull(struct near_rx_op *op, size_t len);
/* What cannot be read by its address comes in pieces, from the start. */
void near_rx_pull_failed(struct near_rx_op *op);

/* A CTS, SHARE or ACK of the peer's. false: no receiver of that message says so. */
bool near_tx_answered(struct near_port *port, struct near_peer *peer,
		      const struct near_slot *slot, enum near_kind kind);
bool near_tx_coop_offered(struct near_port *port, struct near_tx_op *op,
			  const struct near_slot *slot);
void near_tx_end(struct near_port *port, struct near_tx_op *op, int err);
/* An id that the peer makes up is found out: returns NULL. */
struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id);
void near_rx_frag(struct near_port *port, struct near_rx_op *op,
		  const void *data, size_t len);
void near_rx_end(struct near_port *port, struct near_rx_op *op, int err);

/* large_share.c: near_messages.stop() */
void near_ops_stop(struct near_port *port);

#endif /* NEAR_PROTO_LARGE_H */
