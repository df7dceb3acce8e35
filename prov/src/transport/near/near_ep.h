/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The local side of an endpoint over near: its port, its peers by index, and
 * pending operations. ep.c opens and connects, send.c sends, sink.c receives,
 * death.c ends operations with a failed peer, onesided.h is for RMA and
 * atomics. near: docs/near/design.md.
 *
 * Cost: 36 KiB an endpoint, and near's own memory. near's code for a message is
 * inlined here. Protected by the domain's lock.
 */
#ifndef DUO_TRANSPORT_NEAR_EP_H
#define DUO_TRANSPORT_NEAR_EP_H

#include "av/map.h"
#include "near/rma/inline.h"
#include "obj/ep.h"
#include "obj/send.h"
#include "queue/block.h"

#define DUO_NEAR_INJECT 4096	/* bytes */
#define DUO_NEAR_QUEUE 1024	/* operations in flight, each way */

/*
 * If the core's addresses are near's, the port opens with the endpoint, as
 * ep->near_named. fi_enable sets ep->near: no thread polls the port earlier.
 */
struct duo_near {
	struct fid_ep fid;		/* path_ep[FI_DUO_LOCAL] */
	struct duo_ep *ep;
	struct near_port *port;
	bool tx_all;			/* all sends have completions */
	bool tx_reports;		/* calls without flags report, to a
					 * visible CQ */
	uint64_t msg_order;		/* order of the endpoint's sends */
	struct near_pool sends;
	struct duo_blocks blocks;
	/* pending sub-receives; a peer's complete in order */
	struct duo_rx_list frags;
	bool onesided;			/* the port has RMA and atomics */
	bool direct;			/* near executes RMA, not the core */
	bool unordered;			/* the warning on order was logged */
	uint32_t small;			/* duo_near_small() of the fast path's
					 * operations */
	uint32_t next;			/* peer index to try next */
	struct near_peer *peer[DUO_LOCAL_MAX];
	bool bound[DUO_LOCAL_MAX];	/* the map has a reference */
};

/* A pending large send. */
struct duo_near_sending {
	struct near_pooled pooled;
	void *context;
	uint64_t flags;
	fi_addr_t to;			/* for an error entry */
	bool report;
};

/* Returns the bit of an operation's verb, or the bit of all injected ones. */
static near_inline uint32_t duo_near_small(const struct near_rma_args *op)
{
	return 1u << (op->flags & NEAR_RMA_COPY ? NEAR_VERBS : op->verb);
}

/* Returns the fi_addr of a peer index; FI_ADDR_NOTAVAIL: none. */
static inline fi_addr_t duo_near_addr(const struct duo_ep *ep,
				      fi_addr_t number)
{
	fi_addr_t addr = ep->map && number != FI_ADDR_NOTAVAIL ?
			 duo_map_peer(ep->map, number) : FI_ADDR_UNSPEC;

	return addr == FI_ADDR_UNSPEC ? FI_ADDR_NOTAVAIL : addr;
}

/* Returns a peer's index; FI_ADDR_NOTAVAIL: none was free. */
static near_inline fi_addr_t duo_near_number(const struct near_peer *peer)
{
	return (fi_addr_t) (uintptr_t) peer->user - 1;
}

/* Counts reads that found the port's rings empty. */
static inline void duo_near_passed(const struct duo_ep *ep, uint32_t polls)
{
	if (ep->near)
		near_passed(ep->near->port, polls);
}

/* Returns the smaller of polls and the number before the next timer tick. */
static inline uint32_t duo_near_left(const struct duo_ep *ep, uint32_t polls)
{
	uint32_t left = ep->near ? near_polls_left(ep->near->port) : polls;

	return left < polls ? left : polls;
}

/* send.c */
/* Sends to the peer with this index. Returns as fi_msg(3). */
ssize_t duo_near_send(struct duo_near *near, const struct duo_send *send,
		      fi_addr_t number);
/* Completes near_send_large(). */
void duo_near_sent(void *ctx, void *cookie, int err);

/* sink.c: ctx is the struct duo_ep. */
extern const struct near_sink duo_near_sink;
/* Frees the payload of all unexpected messages. */
void duo_near_drop_all(struct duo_near *near);

/* ep.c */
void duo_near_peer_up(void *ctx, struct near_peer *peer);
void duo_near_peer_release(void *ctx, struct near_peer *peer);

/* Polls all endpoints of the CQ; returns the amount of progress. */
uint32_t duo_near_poll(struct duo_cq *cq);
/* 0: an arrival at the endpoint wakes the sleeping threads; or -FI_EAGAIN. */
int duo_near_arm(struct duo_ep *ep);
bool duo_near_woken(struct duo_ep *ep);
struct duo_recv;
/* duo_recv_start() for near. -FI_EAGAIN: nothing has changed. */
int duo_near_start(struct duo_rx *rx, const struct duo_recv *recv);

/* death.c */
void duo_near_peer_down(void *ctx, struct near_peer *peer);

#endif /* DUO_TRANSPORT_NEAR_EP_H */
