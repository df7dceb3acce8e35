/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* How the receives end that shm has matched: into our CQ. */

#include <string.h>
#include <rdma/fi_errno.h>

#include "multi.h"

/* Copies to the application's buffers what fits of a bounced message. */
static void duo_srx_unbounce(const struct duo_rx *rx)
{
	size_t i, len, done = 0;

	for (i = 0; i < DUO_IOV_LIMIT && done < rx->size; i++) {
		len = rx->iov[i].iov_len;
		if (len > rx->size - done)
			len = rx->size - done;
		memcpy(rx->iov[i].iov_base, (char *) rx->bounce + done, len);
		done += len;
	}
}

static void duo_srx_truncated(struct duo_rx *rx,
			      const struct fi_cq_tagged_entry *entry,
			      fi_addr_t src)
{
	const struct fi_cq_err_entry err = {
		.op_context = rx->context,
		.flags = entry->flags,
		.len = rx->size,
		.buf = rx->size ? rx->iov[0].iov_base : NULL,
		.data = entry->data,
		.tag = entry->tag,
		.olen = entry->len - rx->size,
		.err = FI_ETRUNC,
		.prov_errno = FI_ETRUNC,
		.src_addr = src,
	};

	duo_srx_unbounce(rx);
	duo_cq_push_err(rx->ep->rx_cq, &err, -1);
	if (rx->multi)
		duo_multi_end(rx);
}

/* It is too large, discarded, of a multi-receive buffer, or not reported. */
static void duo_srx_done_rare(struct duo_rx *rx,
			      struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;

	if (rx->bounce && !(rx->flags & FI_DISCARD)) {
		duo_srx_truncated(rx, entry, src);
		return;
	}
	if (rx->flags & FI_DISCARD) {
		entry->buf = NULL;
	} else {
		ep->stats.path[FI_DUO_SHM].rx_msgs++;
		ep->stats.path[FI_DUO_SHM].rx_bytes += entry->len;
	}
	if (rx->wanted)
		duo_cq_push(ep->rx_cq, entry, src);
	else if (rx->multi)
		duo_multi_done(rx, entry, src);
}

/*
 * shm calls free_entry next. The entry is made of registers: one that has
 * just been written in words is slow to copy.
 */
void duo_srx_done(struct duo_rx *rx, uint64_t flags, size_t len, void *buf,
		  uint64_t data, fi_addr_t shm_src)
{
	struct duo_ep *ep = rx->ep;
	fi_addr_t src = duo_av_peer(ep->av, shm_src);
	const struct fi_cq_tagged_entry entry = {
		.op_context = rx->context,
		.flags = flags,
		.len = len,
		.buf = buf,
		.data = data,
		.tag = rx->peer.tag,
	};
	struct fi_cq_tagged_entry rare;

	if (rx->wanted && !rx->bounce) {
		ep->stats.path[FI_DUO_SHM].rx_msgs++;
		ep->stats.path[FI_DUO_SHM].rx_bytes += len;
		duo_cq_push(ep->rx_cq, &entry, src);
		return;
	}
	rare = entry;
	duo_srx_done_rare(rx, &rare, src);
}

void duo_srx_failed(struct duo_rx *rx, const struct fi_cq_err_entry *entry)
{
	struct fi_cq_err_entry out = *entry;

	out.op_context = rx->context;
	duo_cq_push_err(rx->ep->rx_cq, &out, FI_DUO_SHM);
	if (rx->multi)
		duo_multi_end(rx);
}
