/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The part of an endpoint that belongs to near: the endpoint's port, its peers
 * and its pending operations. The caller of the functions must hold the lock of
 * the endpoint's group, ep->group. Cost: 36 KiB per endpoint, and the memory
 * that near allocates. The core is the provider that ofi_duo wraps.
 */
#ifndef DUO_TRANSPORT_NEAR_EP_H
#define DUO_TRANSPORT_NEAR_EP_H

#include "av/map.h"
#include "near/rma/inline.h"
#include "obj/ep.h"
#include "obj/send.h"
#include "queue/block.h"

/*
 * fi_enable creates this struct. In the provider near, fi_endpoint creates it,
 * because the port's address is the endpoint's address.
 */
struct duo_near {
	struct fid_ep fid;		/* path_ep[FI_DUO_LOCAL] points to it */
	struct duo_ep *ep;
	struct near_port *port;
	/* every send writes a completion, unless it is an inject */
	bool tx_all;
	/*
	 * A send, RMA or atomic whose call has no flags (fi_send, not
	 * fi_sendmsg) writes a completion to the CQ, unless it is an inject.
	 * Only fast paths read this field.
	 */
	bool tx_reports;
	struct near_pool sends;
	struct duo_blocks blocks;
	/*
	 * Receives into parts of multi-receive buffers (FI_MULTI_RECV) that
	 * have matched a message but have not completed. The receives of each
	 * peer's messages complete in the order of this list.
	 */
	struct duo_rx_list subs;
	bool onesided;	/* near executes peers' RMA and atomics */
	/* near_rma() can read large messages from or to device memory */
	bool fetches;
	bool direct;	/* near, not the core, executes this endpoint's RMA */
	bool unordered;	/* duo_onesided_unordered() has logged its warning */
	/*
	 * bit mask of the RMA and atomics that may use the fast path; the bits
	 * are those of duo_near_small()
	 */
	uint32_t small;
	bool full;	/* duo_near_peer_up() has logged its warning */
	/* peer index at which peer_up() begins to search for a free index */
	uint32_t next;
	struct near_peer *peer[DUO_LOCAL_MAX];	/* NULL: index not in use */
	/* by peer index: ep->map has a reference to this peer */
	bool bound[DUO_LOCAL_MAX];
};

/* A pending large send. */
struct duo_near_sending {
	struct near_pooled pooled;
	void *context;
	uint64_t flags;
	fi_addr_t to;	/* receiver's address, for an error entry of the CQ */
	bool report;	/* the send writes a completion if it succeeds */
	void *desc;	/* descriptor of the first buffer */
};

/*
 * Returns the bit of an RMA operation or atomic in duo_near.small. All injects
 * have the same bit.
 */
static near_inline uint32_t duo_near_small(const struct near_rma_args *op)
{
	return 1u << (op->flags & NEAR_RMA_COPY ? NEAR_VERBS : op->verb);
}

/* Returns the fi_addr of a peer index; FI_ADDR_NOTAVAIL: none. */
static inline fi_addr_t duo_near_addr(const struct duo_ep *ep,
				      fi_addr_t index)
{
	fi_addr_t addr = ep->map && index != FI_ADDR_NOTAVAIL ?
			 duo_map_peer(ep->map, index) : FI_ADDR_UNSPEC;

	return addr == FI_ADDR_UNSPEC ? FI_ADDR_NOTAVAIL : addr;
}

/* Returns a peer's index; FI_ADDR_NOTAVAIL: none. */
static near_inline fi_addr_t duo_near_index(const struct near_peer *peer)
{
	return (fi_addr_t) (uintptr_t) peer->user - 1;
}

/* Counts `polls` fast-path reads of the CQ as polls of the endpoint's port. */
static inline void duo_near_passed(const struct duo_ep *ep, uint32_t polls)
{
	if (ep->near)
		near_passed(ep->near->port, polls);
}

/*
 * Returns the number of polls before the poll in which the port does its next
 * periodic work (near_port_tick()), but at most `polls`.
 */
static inline uint32_t duo_near_left(const struct duo_ep *ep, uint32_t polls)
{
	uint32_t left = ep->near ? near_polls_left(ep->near->port) : polls;

	return left < polls ? left : polls;
}

/* Implements duo_transport.unbind(). */
void duo_near_unbind(struct duo_ep *ep, fi_addr_t index);
/* Sends to a peer. Returns 0, -FI_EAGAIN, or another error of fi_send(). */
ssize_t duo_near_send(struct duo_near *near, const struct duo_send *send,
		      fi_addr_t index);
/*
 * Starts to fetch the message that has matched rx: to read it by near_rma().
 * op: the operation that near_recv_begin() has returned for rx. rx may end
 * during this call.
 */
void duo_near_fetch(struct duo_rx *rx, struct near_rx_op *op);
/*
 * Must be called when the fetch for rx has ended. err: 0, or a positive errno
 * value if the fetch failed. If err is 0 or FI_ECONNRESET (the peer has
 * failed), ends rx. Otherwise requests the message in fragments, the last of
 * which ends rx. If there is no memory for the fragments, ends rx with
 * FI_ENOMEM.
 */
void duo_near_fetched(struct duo_rx *rx, int err);

/* The callbacks that near calls. Their argument ctx is the struct duo_ep. */
extern const struct near_sink duo_near_sink;
/* Those functions of duo_near_sink that are not in sink.c. */
void duo_near_sent(void *ctx, void *cookie, int err);
int duo_near_unload(void *ctx, void *cookie, const void *from, void *host,
		    size_t len);
void duo_near_peer_up(void *ctx, struct near_peer *peer);
void duo_near_peer_down(void *ctx, struct near_peer *peer);
void duo_near_peer_release(void *ctx, struct near_peer *peer);

/* Polls the ports of the CQ's endpoints. Returns the number of events. */
uint32_t duo_near_poll(struct duo_cq *cq);
/* For fi_close: frees the payloads of messages that no receive has matched. */
void duo_near_drop_all(struct duo_near *near);
/* Implements duo_transport.start(). */
int duo_near_start(struct duo_rx *rx, const struct duo_recv *recv);

#endif /* DUO_TRANSPORT_NEAR_EP_H */
