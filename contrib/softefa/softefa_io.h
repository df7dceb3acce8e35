/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * SRD: operations, flows, packets, and the interface of a wire.
 *
 * A wire moves packets and may lose, duplicate or reorder them. srd.c makes
 * reliable, unordered datagrams of them. A flow (this QP, peer GID, peer QPN)
 * numbers its packets. The receiver delivers and acknowledges each number once.
 * An operation is complete when all its packets are acknowledged.
 */
#ifndef SOFTEFA_IO_H
#define SOFTEFA_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <infiniband/verbs.h>

/* limit of packets in flight per flow; ack_map has a bit for each */
#define SE_WINDOW 64
#define SE_FLOW_HASH 256  /* buckets of the hash table */
#define SE_MAX_SQ_SGE 2
#define SE_MAX_RDMA_SGE 1
#define SE_MAX_RQ_SGE 3
#define SE_MAX_INLINE 32  /* largest inline data, bytes */
#define SE_MAX_IOV 4

struct se_qp;

/* completion status of the device (vendor_err), as in efa_io_defs.h */
enum se_status {
	SE_OK = 0,
	SE_FLUSHED = 1,
	SE_QP_INTERNAL_ERROR = 2,
	SE_UNSUPPORTED_OP = 3,
	SE_INVALID_AH = 4,
	SE_INVALID_LKEY = 5,
	SE_BAD_LENGTH = 6,
	SE_REMOTE_BAD_ADDRESS = 7,
	SE_REMOTE_ABORT = 8,
	SE_REMOTE_BAD_DEST_QPN = 9,
	SE_REMOTE_RNR = 10,
	SE_REMOTE_BAD_LENGTH = 11,
	SE_REMOTE_BAD_STATUS = 12,
	SE_UNRESP_REMOTE = 13,
	SE_REMOTE_UNKNOWN_PEER = 14,
	SE_UNREACH_REMOTE = 15,
	/* only in NAKs: the sender repeats the packet, and counts no retry */
	SE_BUSY = 255,
};

enum se_pkt_type {
	SE_PKT_SEND = 1,
	SE_PKT_WRITE,
	SE_PKT_READ,	  /* RDMA read: request */
	SE_PKT_READ_DATA, /* RDMA read: a part of the response */
	SE_PKT_VOID,	  /* no data; takes the number of a canceled packet */
	SE_PKT_DGRAM,	  /* UD: without number and ACK */
	SE_PKT_ACK,
	SE_PKT_NAK,
	SE_PKT_PING,	  /* requests an ACK */
	SE_PKT_READ_ASK,  /* asks whether a response to op_id is pending */
	SE_PKT_READ_GONE, /* reply to READ_ASK: no response is pending */
	SE_PKT_TYPES
};

/* bits of se_pkt.flags */
/* The packet has immediate data, and causes a completion at the receiver. */
#define SE_PKT_IMM 1
/* READ_DATA: ends the response early, because the region is deregistered. */
#define SE_PKT_ABORT 2
/*
 * The sender has received no ACK for packet 0 of the stream. So the stream may
 * be new to the receiver, which then starts it. If the flag is not set and the
 * receiver does not have the stream, the receiver has freed the stream's flow,
 * and rejects the packet.
 */
#define SE_PKT_START 4
#define SE_PKT_MAGIC 0x53454642u

struct se_pkt {
	uint32_t magic;
	uint8_t type, flags;
	uint16_t status; /* NAK: its status; other packets: number of retries */
	uint32_t len;		/* bytes of payload behind the header */
	uint32_t src_qpn, dst_qpn;
	uint32_t seq, qkey;
	/*
	 * number of the stream. A sender that restarts its packet numbers at 0
	 * begins a stream with a larger number.
	 */
	uint32_t stream;
	/*
	 * time at which the sending QP was created, ms: distinguishes QPs that
	 * have the same number one after the other
	 */
	uint32_t epoch;
	uint32_t dst_epoch; /* epoch of the destination QP; 0: unknown */
	/* all packets of ack_stream with numbers below ack_cum were received */
	uint32_t ack_stream, ack_cum;
	uint64_t ack_map;	/* bit n: packet ack_cum + n was received */
	uint64_t raddr;
	uint32_t rkey, op_id, op_len;
	__be32 imm;
	uint8_t sgid[16];
};
_Static_assert(sizeof(struct se_pkt) == 96, "the wire format has no holes");

enum se_op_kind { SE_OP_SEND, SE_OP_WRITE, SE_OP_READ, SE_OP_RESPONSE };

struct se_op {
	struct se_op *next;	/* in the flow's queue, or in a free list */
	struct se_flow *flow;	/* NULL: this operation is free */
	uint64_t wr_id, raddr;
	uint64_t done;		/* number of bytes put into packets so far */
	uint64_t got;		/* RDMA read: bytes that have arrived */
	uint64_t len;
	uint32_t rkey, qkey, qpn, id, remote_id, rnr_tries, unacked;
	__be32 imm;
	const struct se_ah *ah;
	uint8_t kind, status, sge_count;
	bool has_imm, is_inline, queued, segmented;
	struct ibv_sge sge[SE_MAX_SQ_SGE];
	uint8_t inline_data[SE_MAX_INLINE];
};

enum se_slot_state { SE_SLOT_FREE, SE_SLOT_WAIT, SE_SLOT_SENT };

struct se_slot {
	struct se_op *op;	/* NULL: a VOID packet */
	/*
	 * in state WAIT, time at which to send the packet; in state SENT, time
	 * at which the packet was last sent; ns
	 */
	uint64_t time;
	uint64_t off, cookie;	/* cookie: the wire's id of the packet */
	uint32_t len;
	uint16_t tries;
	uint8_t state, type, flags;
	/* fault injection has decided whether to delay this packet */
	bool held;
};

#define SE_COOKIE_LOST UINT64_MAX

struct se_flow {
	struct se_flow *next, *ack_next, *active_next;
	union ibv_gid gid;
	uint32_t qpn, qkey;
	/* number of the flow in its QP, by which faults are selected */
	uint32_t number;
	uint32_t ack_serial;
	bool ack_due, ack_listed, is_active, blocked, responsive;
	bool has_qkey; /* a message with qkey was sent */
	uint16_t ahn;
	uint32_t ah_gen;
	/* sending */
	struct se_op *queue, **queue_tail;
	uint32_t stream, next_seq, una, window, peer_epoch, waiting_reads;
	uint64_t heard, checked, asked, rnr_until, due;
	/* index: packet number modulo the window */
	struct se_slot slot[SE_WINDOW];
	/* receiving */
	uint32_t rx_stream, rx_cum;
	uint64_t rx_map;
	/* bit n: a NAK is due for the packet with number n modulo SE_WINDOW */
	uint64_t nak_map;
	uint8_t nak_status[SE_WINDOW];
	/* time at which the peer became silent, ns; 0: not silent */
	uint64_t quiet_since;
	void *wire_flow;
};

/* value of quiet_since: the peer's socket is closed */
#define SE_FLOW_REFUSED UINT64_MAX

struct se_wire {
	const char *name;
	uint32_t rto_us;   /* time until the first retransmission */
	uint32_t window;   /* initial limit of packets in flight */
	/* alive() detects every failure: no timeout is needed */
	bool reports_death;
	int (*open)(struct se_qp *qp);
	void (*close)(struct se_qp *qp);
	/* Removes the QP's files. Called at exit of the process. */
	void (*leave)(struct se_qp *qp);
	/*
	 * Sends a packet. Returns 0, -EAGAIN (no space), or a positive
	 * se_status, with which the caller must fail the flow.
	 */
	int (*tx)(struct se_qp *qp, struct se_flow *flow,
		  const struct se_pkt *pkt, const struct iovec *iov,
		  int iov_count, uint64_t *cookie);
	/* Passes up to "budget" packets to se_srd_rx(). Returns the number. */
	int (*rx)(struct se_qp *qp, int budget);
	bool (*rx_pending)(struct se_qp *qp);
	/* Frees remains of failed peers after an empty poll. May be NULL. */
	void (*tidy)(struct se_qp *qp);
	/*
	 * True if a retransmission is useless: the peer has not read the
	 * packet, or this QP has not read the peer's reply.
	 */
	bool (*unread)(struct se_qp *qp, struct se_flow *flow, uint64_t cookie);
	enum se_status (*alive)(struct se_qp *qp, struct se_flow *flow);
	void (*flow_close)(struct se_qp *qp, struct se_flow *flow);
	/*
	 * Returns a descriptor that becomes readable when a packet arrives
	 * after arm(); -1: the QP has none.
	 */
	int (*event_fd)(struct se_qp *qp);
	void (*arm)(struct se_qp *qp);
};

extern const struct se_wire se_wire_shm, se_wire_udp;

/* srd.c: the caller of each function holds qp->lock */
void se_srd_submit(struct se_qp *qp, struct se_op *op);
void se_srd_progress(struct se_qp *qp);
bool se_srd_busy(struct se_qp *qp);
void se_flow_tell(struct se_qp *qp, struct se_flow *flow,
		  enum se_pkt_type type, uint32_t op_id);

/* srd_end.c */
void se_srd_flush(struct se_qp *qp);
void se_srd_close(struct se_qp *qp);
void se_srd_drain(struct se_qp *qp); /* takes qp->lock itself */

/* srd_rx.c */
void se_srd_rx(struct se_qp *qp, const struct se_pkt *pkt, const void *data);
void se_srd_send_acks(struct se_qp *qp);
void se_ack_later(struct se_qp *qp, struct se_flow *flow);

/* srd_reap.c: frees the flows of failed peers */
void se_srd_tidy(struct se_qp *qp);
void se_flow_reap_some(struct se_qp *qp);
/*
 * Checks all flows, frees those of failed peers, and returns true. If "often"
 * is not set and the last check was recent (SE_FULL_SHARE), only returns false.
 */
bool se_flow_reap_all(struct se_qp *qp, bool often);
void se_flow_free(struct se_qp *qp, struct se_flow *flow);

/* srd_flow.c. se_flow_get() creates a flow if there is none; NULL: no space. */
struct se_flow *se_flow_get(struct se_qp *qp, const union ibv_gid *gid,
			    uint32_t qpn);
struct se_flow *se_flow_find(struct se_qp *qp, const union ibv_gid *gid,
			     uint32_t qpn);
void se_flow_activate(struct se_qp *qp, struct se_flow *flow);
void se_flow_fail(struct se_qp *qp, struct se_flow *flow,
		  enum se_status status);
void se_flow_acked(struct se_qp *qp, struct se_flow *flow,
		   const struct se_pkt *pkt);
void se_flow_nak(struct se_qp *qp, struct se_flow *flow,
		 const struct se_pkt *pkt);
void se_flow_header(struct se_qp *qp, struct se_flow *flow,
		    struct se_pkt *pkt);
bool se_flow_idle(const struct se_flow *flow);
/*
 * Ends the operation of the slot's packet with "status". The packet becomes
 * VOID, without data but with its number, because the peer must receive all
 * numbers.
 */
void se_slot_void(struct se_qp *qp, struct se_flow *flow, struct se_slot *slot,
		  enum se_status status);
void se_op_finish(struct se_qp *qp, struct se_op *op);
/* Ends the operation if it is complete. */
void se_op_check(struct se_qp *qp, struct se_op *op);

/* srd_read.c: reads, and the loss of their responses */
void se_read_data(struct se_qp *qp, const struct se_pkt *pkt,
		  const void *data);
void se_read_ask(struct se_qp *qp, struct se_flow *flow);
void se_read_asked(struct se_qp *qp, struct se_flow *flow,
		   const struct se_pkt *pkt);
void se_read_gone(struct se_qp *qp, struct se_flow *flow,
		  const struct se_pkt *pkt);

#endif
