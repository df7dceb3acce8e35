/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* shm's CQs and counters are ours: it says here what it has done, fi_peer(3). */

#include <string.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "near/rma/inline.h"
#include "obj/cntr.h"
#include "shm/shm.h"
#include "rx/arrive.h"

/* Copies to the application's buffers what fits of a bounced message. */
DUO_COLD void duo_shm_unbounce(const struct duo_rx *rx)
{
	near_iov_in(duo_rx_iov(rx), 0, rx->bounce, duo_rx_size(rx));
}

/* shm calls free_entry next. */
DUO_SAME_ARGS ssize_t duo_shm_received(struct fid_peer_cq *peer_cq,
				       void *context, uint64_t flags,
				       size_t len, void *buf, uint64_t data,
				       uint64_t tag, fi_addr_t src)
{
	struct duo_rx *rx = context;

	if (rx->bounced)
		duo_shm_unbounce(rx);
	duo_arrival_done_at(rx, flags, len, buf, data,
			    duo_map_peer(rx->ep->map, src));
	return 0;
}

/* shm writes its completions here. Receives carry our entry. */
static ssize_t duo_shm_cq_write(struct fid_peer_cq *peer_cq, void *context,
				uint64_t flags, size_t len, void *buf,
				uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct duo_cq *cq = duo_container_of(peer_cq, struct duo_cq, peer_cq);
	const struct fi_cq_tagged_entry entry = {
		.op_context = context,
		.flags = flags,
		.len = len,
		.buf = buf,
		.data = data,
		.tag = tag,
	};

	cq->local_events++;
	if (flags & FI_RECV)
		return duo_shm_received(peer_cq, context, flags, len, buf,
					data, tag, src);
	duo_cq_push(cq, &entry, FI_ADDR_NOTAVAIL);
	return 0;
}

static ssize_t duo_shm_cq_writeerr(struct fid_peer_cq *peer_cq,
				    const struct fi_cq_err_entry *entry)
{
	struct duo_cq *cq = duo_container_of(peer_cq, struct duo_cq, peer_cq);
	struct duo_rx *rx = duo_cq_rx(cq, entry->op_context);

	cq->local_events++;
	if (rx)
		duo_arrival_failed(rx, entry);
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

/* shm has completed something, under the domain's lock. */
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

/* Without entries for what arrives in one poll, senders see -FI_EAGAIN. */
uint32_t duo_shm_poll(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		if (!duo_ep_room(ep))
			return 1;	/* what they have is to be done */
	cq->local_events = 0;
	fi_cq_read(cq->path_cq[FI_DUO_LOCAL], NULL, 0);
	return cq->local_events;
}
