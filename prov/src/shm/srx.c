/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of ofi_duo that shm calls: see fi_peer(3). shm does so while
 * ofi_duo polls shm or sends over shm, so the calling thread holds the domain's
 * lock. If a message is discarded, or is longer than its receive, shm writes it
 * to a bounce buffer: docs/matching.md, "Truncation".
 */

#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "base/enosys.h"
#include "base/log.h"
#include "near/rma/inline.h"
#include "obj/cntr.h"
#include "shm/shm.h"
#include "rx/arrive.h"
#include "rx/recv.h"

/*
 * The descriptors that shm gets for each receive. All are NULL, because the
 * buffers are in host memory.
 */
static void *duo_shm_no_desc[DUO_IOV_LIMIT];

static struct duo_ep *duo_shm_ep_of(struct fid_peer_srx *srx)
{
	return duo_container_of(srx, struct duo_ep, peer_srx);
}

/*
 * Prepares the receive rx for shm, which fills its buffers. The context of
 * shm's completion is then rx.
 */
static void duo_shm_hand_over(struct duo_rx *rx)
{
	duo_rx_become(rx, DUO_RX_LOCAL);
	rx->peer.context = rx;
	rx->peer.flags = duo_rx_cq_flags(rx) | FI_COMPLETION;
	rx->peer.iov = (struct iovec *) duo_rx_iov(rx);
	rx->peer.count = rx->count;
}

/* Sets the fields that shm reads in a new receive entry. */
static void duo_shm_describe(struct duo_rx *rx,
			     const struct fi_peer_match_attr *attr)
{
	rx->tag = attr->tag;
	rx->peer.srx = &rx->ep->peer_srx;
	rx->peer.addr = rx->addr;
	rx->peer.msg_size = attr->msg_size;
	rx->peer.tag = attr->tag;
	rx->peer.cq_data = 0;
	rx->peer.desc = duo_shm_no_desc;
	rx->peer.owner_context = NULL;
	rx->peer.peer_context = NULL;
}

/* Makes shm write the message of rx to the bounce buffer. */
static void duo_shm_aim_bounce(struct duo_rx *rx, void *bounce, size_t size)
{
	duo_rx_set_bounce(rx, bounce);
	rx->bounce_iov = (struct iovec) { bounce, size };
	rx->peer.iov = &rx->bounce_iov;
	rx->peer.count = 1;
}

/*
 * Returns the first posted receive that matches the message. NULL: no receive
 * matches. If the message is longer than the receive, sets a bounce buffer. If
 * there is no memory for the bounce buffer, ends the receive with FI_ENOMEM,
 * and tries the next receive that matches.
 */
static struct duo_rx *duo_shm_match(struct duo_ep *ep, enum duo_rx_kind kind,
				    const struct fi_peer_match_attr *attr,
				    fi_addr_t addr)
{
	struct duo_rx *rx;
	void *bounce;

	while ((rx = duo_arrival_match(ep, kind, addr, attr->tag,
				       attr->msg_size))) {
		duo_shm_hand_over(rx);
		if (attr->msg_size <= duo_rx_size(rx))
			break;
		bounce = malloc(attr->msg_size);
		if (bounce) {
			duo_shm_aim_bounce(rx, bounce, attr->msg_size);
			break;
		}
		duo_cq_push_rx_err(ep->rx_cq, rx, FI_ENOMEM);
		if (rx->multi)
			duo_multi_end(rx->owner);
		duo_rx_release(&ep->pool, rx);
	}
	return rx;
}

/*
 * Stores a new receive entry for a message in *entry. If `unresolved` is true,
 * the message will be unresolved, otherwise unexpected. Returns
 * - -FI_ENOENT: shm keeps the message, and passes *entry to duo_arrival_queue()
 * - -FI_ENOMEM: no entry is free, and shm loses the message
 */
static int duo_shm_unexpected(struct duo_ep *ep, enum duo_rx_kind kind,
			      const struct fi_peer_match_attr *attr,
			      fi_addr_t addr, bool unresolved,
			      struct fi_peer_rx_entry **entry)
{
	struct duo_rx *rx = duo_rx_alloc(&ep->pool);

	if (!rx) { /* impossible, because duo_shm_poll() reserves entries */
		DUO_WARN(EP_DATA, "ep %p: cannot allocate a receive entry in "
			 "addition to %u: a message of shm is lost\n",
			 (void *) ep, ep->pool.live);
		return -FI_ENOMEM;
	}
	ep->stats.unexpected++;
	rx->kind = kind;
	duo_rx_become(rx, DUO_RX_ARRIVING);
	rx->unresolved = unresolved;
	rx->src_index = attr->addr;
	rx->addr = addr;
	rx->peer.flags = duo_rx_cq_flags(rx);
	rx->peer.count = 0;
	duo_shm_describe(rx, attr);
	*entry = &rx->peer;
	return -FI_ENOENT;
}

/*
 * shm has received the start of a message. Returns 0 and stores the matching
 * receive in *entry, or returns the result of duo_shm_unexpected().
 */
static int duo_shm_get(struct fid_peer_srx *srx, enum duo_rx_kind kind,
		       const struct fi_peer_match_attr *attr,
		       struct fi_peer_rx_entry **entry)
{
	struct duo_ep *ep = duo_shm_ep_of(srx);
	fi_addr_t addr = duo_map_peer(ep->map, attr->addr);
	struct duo_rx *rx;

	ep->rx_cq->local_events++;
	if (addr != FI_ADDR_UNSPEC)
		duo_arrival_confirm(ep, attr->addr);
	/*
	 * The message becomes unresolved (docs/matching.md) in three cases:
	 * - Another unresolved message waits.
	 * - fi_close() is running.
	 * - The map has no fi_addr for the sender, but the AV is not empty: a
	 *   new lookup may show that the AV has the sender's address.
	 */
	if (!TAILQ_EMPTY(&ep->rx.unresolved) || ep->closing ||
	    (addr == FI_ADDR_UNSPEC && ep->av->high))
		return duo_shm_unexpected(ep, kind, attr, addr, true, entry);

	rx = duo_shm_match(ep, kind, attr, addr);
	if (!rx)
		return duo_shm_unexpected(ep, kind, attr, addr, false, entry);
	rx->addr = addr;
	duo_shm_describe(rx, attr);
	*entry = &rx->peer;
	return 0;
}

static int duo_shm_get_msg(struct fid_peer_srx *srx,
			   struct fi_peer_match_attr *attr,
			   struct fi_peer_rx_entry **entry)
{
	struct fi_peer_match_attr untagged = *attr;

	untagged.tag = 0;
	return duo_shm_get(srx, DUO_MSG, &untagged, entry);
}

static int duo_shm_get_tag(struct fid_peer_srx *srx,
			   struct fi_peer_match_attr *attr,
			   struct fi_peer_rx_entry **entry)
{
	return duo_shm_get(srx, DUO_TAGGED, attr, entry);
}

/*
 * Frees the receive entry of a message. shm calls this function when the
 * message is complete, or when the endpoint closes.
 */
static void duo_shm_free_entry(struct fi_peer_rx_entry *entry)
{
	struct duo_rx *rx = duo_rx_of_peer(entry);

	if (rx->state == DUO_RX_FREE)
		return;		/* shm 2.1 frees some entries twice */
	if (rx->state != DUO_RX_LOCAL)
		duo_arrival_unlink(rx);
	duo_rx_release(&rx->ep->pool, rx);
}

/*
 * shm calls this function after it has inserted a peer into its AV. Messages
 * from this peer that already wait have no peer index yet. Updates the peer
 * indexes of all unresolved messages, and of unexpected ones without a fi_addr.
 */
static void duo_shm_foreach_unspec(struct fid_peer_srx *srx,
				   fi_addr_t (*get_addr)(
					   struct fi_peer_rx_entry *))
{
	struct duo_ep *ep = duo_shm_ep_of(srx);
	struct duo_rx *rx;
	int kind;

	for (kind = 0; kind < DUO_KIND_COUNT; kind++) {
		TAILQ_FOREACH(rx, &ep->match[kind].unexp, link) {
			if (rx->addr == FI_ADDR_UNSPEC)
				rx->src_index = get_addr(&rx->peer);
		}
	}
	TAILQ_FOREACH(rx, &ep->rx.unresolved, link)
		rx->src_index = get_addr(&rx->peer);
}

static struct fi_ops_srx_owner duo_shm_srx_owner_ops = {
	.size = sizeof(struct fi_ops_srx_owner),
	.get_msg = duo_shm_get_msg,
	.get_tag = duo_shm_get_tag,
	.queue_msg = duo_arrival_queue,
	.queue_tag = duo_arrival_queue,
	.foreach_unspec_addr = duo_shm_foreach_unspec,
	.free_entry = duo_shm_free_entry,
};

int duo_shm_start(struct duo_rx *rx, const struct duo_recv *recv)
{
	const struct fi_ops_srx_peer *ops = rx->ep->peer_srx.peer_ops;
	size_t size = rx->peer.msg_size;
	void *bounce = NULL;
	int ret;

	if (size > near_iov_len(recv->iov, recv->count)) {
		bounce = malloc(size);
		if (!bounce)
			return -FI_ENOMEM;
	}
	duo_arrival_unlink(rx);
	duo_recv_fill(rx, recv);
	duo_shm_hand_over(rx);
	if (bounce)
		duo_shm_aim_bounce(rx, bounce, size);
	ret = rx->kind == DUO_TAGGED ? ops->start_tag(&rx->peer) :
				       ops->start_msg(&rx->peer);
	if (ret)
		DUO_WARN(EP_DATA, "ep %p: shm: cannot start a message of %zu "
			 "bytes: %s\n", (void *) rx->ep, size,
			 fi_strerror(-ret));
	return 0;
}

static int duo_shm_srx_close(struct fid *fid)
{
	return 0;	/* nothing to free: peer_srx is part of struct duo_ep */
}

static struct fi_ops duo_shm_srx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_shm_srx_close,
	.bind = duo_no_bind,
	.control = duo_no_control,
	.ops_open = duo_no_ops_open,
};

void duo_shm_srx_init(struct duo_ep *ep)
{
	ep->peer_srx.ep_fid.fid.fclass = FI_CLASS_SRX_CTX;
	ep->peer_srx.ep_fid.fid.ops = &duo_shm_srx_fi_ops;
	ep->peer_srx.owner_ops = &duo_shm_srx_owner_ops;
}

/*
 * Writes a completion of shm to the CQ. If the completion is that of a receive,
 * context is the receive entry (duo_shm_hand_over()). shm frees this entry by
 * duo_shm_free_entry() after this call.
 */
static ssize_t duo_shm_cq_write(struct fid_peer_cq *peer_cq, void *context,
				uint64_t flags, size_t len, void *buf,
				uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct duo_cq *cq = duo_container_of(peer_cq, struct duo_cq, peer_cq);
	struct duo_rx *rx = context;
	const struct fi_cq_tagged_entry entry = {
		.op_context = context,
		.flags = flags,
		.len = len,
		.buf = buf,
		.data = data,
		.tag = tag,
	};

	cq->local_events++;
	if (!(flags & FI_RECV)) {
		duo_cq_push(cq, &entry, FI_ADDR_NOTAVAIL);
		return 0;
	}
	if (rx->bounced)	/* copies the message's first bytes */
		near_iov_in(duo_rx_iov(rx), 0, rx->bounce, duo_rx_size(rx));
	duo_arrival_done_at(rx, flags, len, buf, data,
			    duo_map_peer(rx->ep->map, src));
	return 0;
}

static ssize_t duo_shm_cq_writeerr(struct fid_peer_cq *peer_cq,
				    const struct fi_cq_err_entry *entry)
{
	struct duo_cq *cq = duo_container_of(peer_cq, struct duo_cq, peer_cq);
	struct duo_rx *rx = duo_cq_rx(cq, entry->op_context);

	cq->local_events++;
	if (rx)
		duo_arrival_failed(rx, entry->err, entry->prov_errno);
	else
		duo_cq_push_err(cq, entry, FI_DUO_LOCAL);
	return 0;
}

static struct fi_ops_cq_owner duo_shm_cq_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = duo_shm_cq_write,
	.writeerr = duo_shm_cq_writeerr,
};

int duo_shm_cq_open(struct duo_cq *cq, size_t size)
{
	struct fi_cq_attr attr = {
		.size = size,
		.flags = FI_PEER,
		.format = FI_CQ_FORMAT_TAGGED,
	};
	struct fi_peer_cq_context peer = {
		.size = sizeof(peer),
		.cq = &cq->peer_cq,
	};

	cq->peer_cq.fid.fclass = FI_CLASS_PEER_CQ;
	cq->peer_cq.owner_ops = &duo_shm_cq_ops;
	return fi_cq_open(cq->domain->path_domain[FI_DUO_LOCAL], &attr,
			  &cq->path_cq[FI_DUO_LOCAL], &peer);
}

static void duo_shm_cntr_inc(struct fid_peer_cntr *peer_cntr)
{
	duo_container_of(peer_cntr, struct duo_cntr, peer_cntr)->own[0]++;
}

static void duo_shm_cntr_incerr(struct fid_peer_cntr *peer_cntr)
{
	duo_container_of(peer_cntr, struct duo_cntr, peer_cntr)->own[1]++;
}

static struct fi_ops_cntr_owner duo_shm_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr_owner),
	.inc = duo_shm_cntr_inc,
	.incerr = duo_shm_cntr_incerr,
};

int duo_shm_cntr_open(struct duo_cntr *cntr)
{
	struct fi_cntr_attr attr = {
		.wait_obj = FI_WAIT_NONE,
		.flags = FI_PEER,
	};
	struct fi_peer_cntr_context peer = {
		.size = sizeof(peer),
		.cntr = &cntr->peer_cntr,
	};

	cntr->peer_cntr.fid.fclass = FI_CLASS_PEER_CNTR;
	cntr->peer_cntr.owner_ops = &duo_shm_cntr_ops;
	return fi_cntr_open(cntr->domain->path_domain[FI_DUO_LOCAL], &attr,
			    &cntr->path_cntr[FI_DUO_LOCAL], &peer);
}

/*
 * Polls shm for all endpoints of the CQ, and returns the number of events. If
 * too few receive entries are free, and there is no memory for more, does not
 * poll, because shm would lose messages. Local senders then get -FI_EAGAIN.
 */
uint32_t duo_shm_poll(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		if (!duo_rx_pool_reserve(&ep->pool, DUO_LOCAL_BATCH))
			return 1;	/* not 0: shm must not appear idle */
	cq->local_events = 0;
	fi_cq_read(cq->path_cq[FI_DUO_LOCAL], NULL, 0);
	return cq->local_events;
}
