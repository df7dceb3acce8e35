/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rendezvous: the sender announces a large message by a slot RTS. When a
 * receive for the message is posted, the receiver chooses one of four schemes:
 *
 * - Single copy: the receiver reads the sender's memory.
 * - Cooperative copy, for long messages: the receiver sends COOP, and both ends
 *   copy (msg/coop.h).
 * - Fragments, if the receiver cannot read the sender's memory: the receiver
 *   sends CTS, and the sender sends the message in slots FRAG, through the data
 *   ring.
 * - Fetch, for device memory: the embedder reads the message by near_rma(), see
 *   near_recv_begin().
 *
 * At the end the receiver sends an ACK. Each poll copies a limited number of
 * bytes.
 */
#ifndef NEAR_PROTO_LARGE_H
#define NEAR_PROTO_LARGE_H

#include "near/msg/inline.h"
#include "near/msg/coop.h"

/* limit of the time that a closing port waits for a peer's copy, ms */
#define NEAR_STOP_MS 1000

/* limit of bytes that a poll sends, and of bytes that a poll receives */
#define NEAR_STEP (512u << 10)
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
	/*
	 * bytes of the message; after a CTS: bytes that the CTS has requested
	 */
	size_t len;
	size_t done;		/* bytes sent in fragments */
	/* id of the receiver's operation; valid after a CTS */
	uint64_t answer;
	/* Fields of a cooperative copy, valid after COOP was received. */
	uint64_t there;		/* address of the receiver's buffer */
	size_t shared;		/* bytes to copy by both ends together */
	uint32_t round;		/* number of the copy, from the slot COOP */
	uint32_t step;		/* bytes of a step */
	uint32_t steps;		/* number of steps */
	uint32_t wrote;		/* steps that the sender has written */
	bool device;	/* NEAR_DEVICE, and iov is still device memory */
	int failed;	/* positive error of near_sink.unload(); 0: none */
	/*
	 * 0; or the length of a message that would be eager in a larger ring,
	 * which near_tx_end() requests
	 */
	uint32_t too_small;
	/*
	 * memory to free at the end: a copy of the message, or
	 * near_large.owned; or NULL
	 */
	void *copy;
	void *cookie;
};

/*
 * Operations in state NEAR_RX_FRAGS or NEAR_RX_FETCHING are in no list. All
 * others are in port->receiving or peer->waiting.
 */
enum near_rx_state {
	NEAR_RX_READ,		/* single copy by the receiver */
	NEAR_RX_COOP_PENDING,	/* must send COOP, or waits in peer->waiting */
	NEAR_RX_COOP,		/* both ends copy */
	/* all steps are taken; the sender still writes some of them */
	NEAR_RX_COOP_RUNNING,
	NEAR_RX_CTS,		/* must send CTS */
	NEAR_RX_ACK,		/* must send ACK */
	NEAR_RX_FRAGS,		/* waits for fragments */
	NEAR_RX_FETCHING,	/* the embedder fetches the message */
	NEAR_RX_FAILED,		/* the sender has failed; must end */
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
	size_t stop;	/* the receiver must read the bytes before this one */
	size_t done;		/* bytes copied to iov by the receiver */
	uint32_t step;		/* cooperative copy: bytes of a step */
	uint32_t steps;		/* cooperative copy: number of steps */
	/* steps that the sender has taken; valid after near_coop_end() */
	uint32_t sender_steps;
	bool failed;	/* in a cooperative copy, a read has failed */
	void *cookie;
};

/*
 * Returns the length of the longest fragment in bytes: an eighth of the data
 * ring, but at most NEAR_FRAG. So the data ring has space for several
 * fragments, and the receiver copies one while the sender writes the next.
 */
static inline size_t near_frag_max(const struct near_tx *tx)
{
	size_t most = tx->dsize / 8 & ~(size_t)(NEAR_LINE - 1);

	return most < NEAR_FRAG ? most : NEAR_FRAG;
}

/*
 * Returns a pointer to near_port.read_left, the number of bytes that the
 * present poll may still read. A new poll begins with NEAR_STEP.
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
 * Subtracts len from near_port.read_left. False: that is less than len, and the
 * caller must not read.
 */
static inline bool near_read_take(struct near_port *port, size_t len)
{
	size_t *left = near_read_left(port);

	if (len > *left)
		return false;
	*left -= len;
	return true;
}

/*
 * near_control_slot() calls it if tx->head shows no free slot. (msg/control.c)
 */
struct near_slot *near_control_slot_other(struct near_port *port,
					  struct near_peer *peer);

/*
 * Returns a slot for a control message such as an ACK. Such messages need not
 * wait for queued RMA operations (NEAR_GATE_QUEUE). Connects to the peer if
 * necessary. NULL: no slot is free, or the peer has failed or cannot be
 * connected.
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
 * Publishes the slot of a control message, which near_tx_consumed() does not
 * count, and rings the doorbell if required.
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
 * Continue an operation until it has copied *budget bytes; its last fragment or
 * step may exceed this number. Subtract the bytes copied from *budget, but not
 * below 0. True: the operation has left its list, port->sending or
 * port->receiving.
 */
bool near_tx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);
bool near_rx_step(struct near_port *port, struct near_link *link,
		  size_t *budget);

/*
 * large_coop.c: continues a cooperative copy, at the sender. *budget: as above.
 */
void near_tx_coop(struct near_port *port, struct near_tx_op *op,
		  size_t *budget);
/*
 * If op has a cooperative copy, ends the sender's part of it: removes op from
 * port->sending, and restores the state NEAR_TX_ANNOUNCED.
 */
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
/*
 * Clears peer->coop_op, whose cooperative copy has ended. Then starts the
 * cooperative copy of the first receive in peer->waiting.
 */
void near_rx_coop_next(struct near_port *port, struct near_peer *peer);
/*
 * Reads bytes of the message from the sender: the next len bytes, but none at
 * or after op->stop. False: failed.
 */
bool near_rx_pull(struct near_rx_op *op, size_t len);
/*
 * Must be called after a failed read: changes to state NEAR_RX_CTS, so that the
 * receiver requests the whole message in fragments.
 */
void near_rx_pull_failed(struct near_rx_op *op);

/* Handles a CTS, COOP or ACK from the peer. False: the slot is invalid. */
bool near_tx_answered(struct near_port *port, struct near_peer *peer,
		      const struct near_slot *slot, enum near_kind kind);
/* Handles a COOP for this operation. False: the slot is invalid. */
bool near_tx_coop_requested(struct near_port *port, struct near_tx_op *op,
			    const struct near_slot *slot);
/* Frees an operation, which must not be in port->sending, and calls sent(). */
void near_tx_end(struct near_port *port, struct near_tx_op *op, int err);
/* Returns the operation with this id that waits for fragments; NULL: none. */
struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id);
/*
 * Copies a fragment, the next len bytes. The caller must check that the message
 * has len more bytes.
 */
void near_rx_frag(struct near_port *port, struct near_rx_op *op,
		  const void *data, size_t len);
/*
 * Frees an operation that is in no list. Reports its end to the embedder,
 * unless near_rx_done() has already done so.
 */
void near_rx_end(struct near_port *port, struct near_rx_op *op, int err);

/*
 * large_coop.c: near_messages.stop(): waits until no peer writes to local
 * buffers.
 */
void near_ops_stop(struct near_port *port);

#endif /* NEAR_PROTO_LARGE_H */
