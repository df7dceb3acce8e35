/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The local side of an endpoint over near: a port of it, the peers that it
 * knows by number, and what is under way. ep.c opens and connects, send.c
 * sends, sink.c receives, death.c ends what a peer leaves, onesided.h is for
 * RMA and atomics. docs/near/design.md describes near itself.
 *
 * Cost: 36 KiB an endpoint, and near's own memory; a message, sent or received,
 * is near's code inlined into ours. Protected by the domain's lock.
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
 * Where an address is the peer's name, it is opened with the endpoint, as
 * near_named, and becomes ep->near in fi_enable: until then nobody polls it.
 */
struct duo_near {
	struct fid_ep fid;		/* path_ep[FI_DUO_LOCAL] */
	struct duo_ep *ep;
	struct near_port *port;
	bool tx_all;			/* every send is reported */
	bool tx_reports;		/* those of calls without flags are,
					 * and somebody reads it */
	uint64_t msg_order;		/* the endpoint's, of what it sends */
	struct near_pool sends;
	struct duo_blocks blocks;
	/* of multi-receive buffers, on their way in; a peer's end in order */
	struct duo_rx_list frags;
	bool onesided;			/* RMA and atomics too: onesided.h */
	bool direct;			/* ours as well: tx/onesided.c */
	bool unordered;			/* it was told that one is the core's */
	uint32_t small;			/* duo_near_small() of those that need
					 * nothing but a slot */
	uint32_t next;			/* number to be given away next */
	struct near_peer *peer[DUO_LOCAL_MAX];
	bool bound[DUO_LOCAL_MAX];	/* the map's reference */
};

/* What a large send is remembered by. */
struct duo_near_sending {
	struct near_pooled pooled;
	void *context;
	uint64_t flags;
	fi_addr_t to;			/* for an error entry */
	bool report;
};

/* A bit for each verb, and one for what is injected. */
static near_inline uint32_t duo_near_small(const struct near_rma_args *op)
{
	return 1u << (op->flags & NEAR_RMA_COPY ? NEAR_VERBS : op->verb);
}

/* The fi_addr of a peer's number; FI_ADDR_NOTAVAIL: it has none. */
static inline fi_addr_t duo_near_addr(const struct duo_ep *ep,
				      fi_addr_t number)
{
	fi_addr_t addr = ep->map && number != FI_ADDR_NOTAVAIL ?
			 duo_map_peer(ep->map, number) : FI_ADDR_UNSPEC;

	return addr == FI_ADDR_UNSPEC ? FI_ADDR_NOTAVAIL : addr;
}

/* A peer's number; FI_ADDR_NOTAVAIL: there was none left. */
static near_inline fi_addr_t duo_near_number(const struct near_peer *peer)
{
	return (fi_addr_t) (uintptr_t) peer->user - 1;
}

/* So many reads have looked at the port's rings, and found nothing. */
static inline void duo_near_passed(const struct duo_ep *ep, uint32_t polls)
{
	if (ep->near)
		near_passed(ep->near->port, polls);
}

/* The smaller of polls and those until the one that looks at the clock. */
static inline uint32_t duo_near_left(const struct duo_ep *ep, uint32_t polls)
{
	uint32_t left = ep->near ? near_polls_left(ep->near->port) : polls;

	return left < polls ? left : polls;
}

/* send.c */
/* To the peer of this number. What fi_msg(3) returns. */
ssize_t duo_near_send(struct duo_near *near, const struct duo_send *send,
		      fi_addr_t number);
/* near_send_large() has ended. */
void duo_near_sent(void *ctx, void *cookie, int err);

/* sink.c: ctx is the struct duo_ep. */
extern const struct near_sink duo_near_sink;
/* Gives back the payload of all unexpected messages. */
void duo_near_drop_all(struct duo_near *near);

/* ep.c */
void duo_near_met(void *ctx, struct near_peer *peer);
void duo_near_forgotten(void *ctx, struct near_peer *peer);

/* All endpoints of the CQ; returns how much has come. */
uint32_t duo_near_poll(struct duo_cq *cq);
/* 0: an arrival at the endpoint wakes the sleeping threads; -FI_EAGAIN. */
int duo_near_arm(struct duo_ep *ep);
bool duo_near_woken(struct duo_ep *ep);
struct duo_recv;
/* duo_recv_start() for a message of near. -FI_EAGAIN: nothing has changed. */
int duo_near_start(struct duo_rx *rx, const struct duo_recv *recv);

/* death.c */
void duo_near_gone(void *ctx, struct near_peer *peer);

#endif /* DUO_TRANSPORT_NEAR_EP_H */
