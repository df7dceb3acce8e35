/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The port of an endpoint, and its peers. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/params.h"
#include "obj/cntr.h"
#include "transport/near/near_ep.h"
#include "transport/near/onesided.h"

#define DUO_NEAR_DRAIN 64	/* number of polls by duo_near_drain() */
/*
 * If a peer does not reply to an fd exchange within this time, ms, the core
 * provider carries the messages to this peer. The provider near has no core,
 * and therefore waits without limit.
 */
#define DUO_NEAR_TIMEOUT_MS 2000

static_assert(sizeof(struct near_addr) <= DUO_TRANSPORT_NAME_MAX,
	      "in a record");

static void duo_near_log(int level, const char *text)
{
	if (level)
		DUO_INFO(EP_DATA, "near: %s\n", text);
	else
		DUO_WARN(EP_DATA, "near: %s\n", text);
}

static struct duo_near *duo_near_alloc(struct duo_ep *ep)
{
	struct duo_near *near = duo_alloc(sizeof(*near));

	if (!near)
		return NULL;
	near->ep = ep;
	near_pool_init(&near->sends, sizeof(struct duo_near_sending),
		       NEAR_POOL_UNLIMITED);
	TAILQ_INIT(&near->subs);
	duo_blocks_init(&near->blocks, DUO_BLOCKS_KEEP);
	near->fid.fid.fclass = FI_CLASS_EP;
	return near;
}

/*
 * Implements duo_transport.open(). Leaves ep->near NULL, so that no thread
 * polls the port before duo_near_enable().
 */
static int duo_near_open(struct duo_ep *ep)
{
	struct near_attr attr = {
		.sink = &duo_near_sink,
		.ctx = ep,
		.log = duo_near_log,
		.memory = duo_params.ring_memory,
		.no_cma = !duo_params.cma,
		.no_ptracer = !duo_params.ptracer,
		.timeout_ms =
			ep->core.carries_nothing ? 0 : DUO_NEAR_TIMEOUT_MS,
	};
	struct duo_near *near = duo_near_alloc(ep);
	struct near_addr addr;
	int ret;

	if (!near)
		return -FI_ENOMEM;
	ret = near_open(&near->port, &attr);
	if (ret) {
		free(near);
		return ret;
	}
	ep->near_opened = near;
	ret = duo_near_onesided_open(near);
	if (ret)
		return ret;
	near_address(near->port, &addr);
	memset(ep->publication.peer_name, 0, DUO_TRANSPORT_NAME_MAX);
	memcpy(ep->publication.peer_name, &addr, sizeof(addr));
	ep->publication.peer = DUO_TRANSPORT_NEAR;
	ep->publication.any_pid_ns = true;
	/* in the provider near, peers may connect before fi_enable */
	if (ep->core.carries_nothing)
		near_listen(near->port, -1);
	return 0;
}

/*
 * Adds the port's file descriptor to the wait object `waiter`. Does nothing if
 * waiter has no file descriptor itself.
 */
static int duo_near_wait(struct duo_ep *ep, struct duo_waiter *waiter)
{
	return waiter->fd < 0 ? 0 :
	       duo_waiter_add(waiter, near_wait_fd(ep->near->port));
}

static int duo_near_count(const struct duo_cntr_bind *bind)
{
	duo_near_onesided_events(bind->ep);
	return 0;
}

static int duo_near_enable(struct duo_ep *ep)
{
	struct duo_near *near = ep->near_opened;
	int ret;

	ep->near = near;
	ret = duo_near_wait(ep, &ep->tx_cq->waiter);
	if (!ret)
		ret = duo_near_wait(ep, &ep->rx_cq->waiter);
	if (ret) {
		ep->near = NULL;
		return ret;
	}
	/* ignores an error: it affects only peers that need an fd exchange */
	if (!ep->core.carries_nothing)
		near_listen(near->port, ep->publication.dir);
	near->tx_all = !(ep->tx.bind_flags & FI_SELECTIVE_COMPLETION);
	near->tx_reports = !ep->tx_cq->hidden &&
			   (near->tx_all || ep->tx.op_flags & FI_COMPLETION);
	duo_near_onesided_start(ep);
	ep->path_ep[FI_DUO_LOCAL] = &near->fid;
	/* threads that sleep on the CQs must arm the new port */
	duo_ep_wake_sleepers(ep);
	return 0;
}

static int duo_near_arm(struct duo_ep *ep)
{
	return ep->near ? near_arm(ep->near->port) : 0;
}

static bool duo_near_woken(struct duo_ep *ep)
{
	return ep->near && near_woken(ep->near->port);
}

static bool duo_near_oversubscribed(const struct duo_ep *ep, size_t endpoints)
{
	return near_oversubscribed(ep->near->port, endpoints);
}

/* Polls for replies to pending large messages. */
static void duo_near_drain(struct duo_ep *ep)
{
	int i;

	for (i = 0; ep->near && i < DUO_NEAR_DRAIN; i++)
		near_poll(ep->near->port, &duo_near_sink);
}

static void duo_near_close(struct duo_ep *ep)
{
	struct duo_near *near = ep->near_opened;

	if (!near)
		return;
	ep->near = near;	/* near_close() may call duo_near_sink */
	duo_near_drop_all(near);
	near_close(near->port);
	duo_blocks_fini(&near->blocks);
	near_pool_fini(&near->sends);
	ep->path_ep[FI_DUO_LOCAL] = NULL;
	ep->near = ep->near_opened = NULL;
	free(near);
}

/*
 * Implements near_sink.peer_up(): assigns a peer index to the peer. Assigns a
 * freed index again as late as possible: a send that still uses the old meaning
 * of the index would reach a wrong peer after the index is assigned again.
 */
void duo_near_peer_up(void *ctx, struct near_peer *peer)
{
	const struct duo_ep *ep = ctx;
	struct duo_near *near = ep->near;
	uint32_t i, index;

	for (i = 0; i < DUO_LOCAL_MAX; i++) {
		index = (near->next + i) % DUO_LOCAL_MAX;
		if (near->peer[index])
			continue;
		near->peer[index] = peer;
		near->next = (index + 1) % DUO_LOCAL_MAX;
		near_peer_set_user(peer, (void *) (uintptr_t) (index + 1));
		return;
	}
	if (!near->full)
		DUO_WARN(EP_DATA, "ep %p: limit of %u local peers reached; "
			 "%s\n", ctx, DUO_LOCAL_MAX,
			 ep->core.carries_nothing ?
			 "further ones are not reachable" :
			 "the core carries messages to further ones");
	near->full = true;
}

/* Implements near_sink.peer_release(): frees the peer index. */
void duo_near_peer_release(void *ctx, struct near_peer *peer)
{
	fi_addr_t index = duo_near_index(peer);
	struct duo_ep *ep = ctx;

	if (index == FI_ADDR_NOTAVAIL)
		return;
	ep->near->peer[index] = NULL;
	ep->confirmed[index / 64] &= ~(1ULL << index % 64);
}

/*
 * True if messages and RMA to this peer keep the order that the application
 * requires. If the peer has no region table, RMA to the peer goes over the
 * core, which does not wait for messages over near.
 */
static bool duo_near_keeps_order(const struct duo_ep *ep,
				 const struct near_addr *at)
{
	return !ep->opts.mixed_order || !ep->near->onesided ||
	       at->flags & NEAR_ADDR_RMA;
}

/*
 * Implements duo_transport.connect(). Does not open the peer's segment: the
 * first send to the peer does that. If this send will need an fd exchange,
 * starts the exchange now (near_peer_prepare()).
 */
static fi_addr_t duo_near_connect(struct duo_ep *ep, const char *name,
				  fi_addr_t addr, enum fi_duo_reason *reason)
{
	struct duo_near *near = ep->near;
	struct near_peer *peer;
	struct near_addr at;
	fi_addr_t index;

	memcpy(&at, name, sizeof(at));
	*reason = FI_DUO_NAMESPACE;
	if (near_addr_check(near->port, &at))
		return FI_ADDR_NOTAVAIL;
	/* no memory: without a core, a later call must try again */
	*reason = ep->core.carries_nothing ?
		  FI_DUO_UNDECIDED : FI_DUO_NOT_MAPPED;
	if (near_peer_get(near->port, &at, &peer))
		return FI_ADDR_NOTAVAIL;
	*reason = FI_DUO_NOT_MAPPED;
	near_peer_prepare(near->port, peer);
	index = duo_near_index(peer);
	if (index == FI_ADDR_NOTAVAIL)
		*reason = FI_DUO_NO_PEER_SLOT;
	else if (!near_peer_usable(peer))
		index = FI_ADDR_NOTAVAIL;
	if (index == FI_ADDR_NOTAVAIL || near->bound[index])
		/*
		 * Drops the reference of near_peer_get(). If there is no index,
		 * ep->map needs no reference. If bound[index] is set, ep->map
		 * has a reference already.
		 */
		near_peer_put(near->port, peer);
	else
		near->bound[index] = true;
	if (index != FI_ADDR_NOTAVAIL)
		*reason = duo_near_keeps_order(ep, &at) ?
			  FI_DUO_OK : FI_DUO_ORDER_UNSUPPORTED;
	return index;
}

/*
 * Drops ep->map's reference to the peer. When near drops the last reference, it
 * frees the peer and, by duo_near_peer_release(), the index.
 */
void duo_near_unbind(struct duo_ep *ep, fi_addr_t index)
{
	struct duo_near *near = ep->near;

	if (!near->bound[index])
		return;
	near->bound[index] = false;
	near_peer_put(near->port, near->peer[index]);
}

/*
 * Implements duo_transport.exists(): true if near monitors the peer and has
 * found no failure.
 */
static bool duo_near_exists(const struct duo_ep *ep, fi_addr_t index)
{
	const struct near_peer *peer = ep->near->peer[index];

	return peer && near_peer_exists(peer);
}

static void duo_near_monitor(struct duo_ep *ep, fi_addr_t index)
{
	struct near_peer *peer = ep->near->peer[index];

	if (!peer)
		return;
	near_peer_monitor(ep->near->port, peer);
	/*
	 * Without a core, all messages of the peer come over near, so the peer
	 * is a confirmed source even before its first message.
	 */
	if (ep->core.carries_nothing)
		ep->confirmed[index / 64] |= 1ULL << index % 64;
}

static void duo_near_sweep(int dir, uint64_t pid_ns)
{
	near_sweep(dir);
}

const struct duo_transport duo_transport_near = {
	.name = "near",
	.takes = "the memory of FI_OFI_DUO_RING_MEMORY",
	.device = true,
	.open = duo_near_open,
	.enable = duo_near_enable,
	.count = duo_near_count,
	.poll = duo_near_poll,
	.oversubscribed = duo_near_oversubscribed,
	.arm = duo_near_arm,
	.woken = duo_near_woken,
	.drain = duo_near_drain,
	.close = duo_near_close,
	.start = duo_near_start,
	.connect = duo_near_connect,
	.unbind = duo_near_unbind,
	.exists = duo_near_exists,
	.monitor = duo_near_monitor,
	.sweep = duo_near_sweep,
};
