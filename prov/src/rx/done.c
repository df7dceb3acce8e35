/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* How receives end that shared memory has taken: into our CQ. */

#include <rdma/fi_errno.h>

#include "rx/arrive.h"

static void duo_arrival_truncated(struct duo_rx *rx,
				  const struct fi_cq_tagged_entry *entry,
				  fi_addr_t src)
{
	size_t size = duo_rx_size(rx);
	struct fi_cq_err_entry err = {
		.op_context = rx->context,
		.flags = entry->flags,
		.len = size,
		.buf = size ? rx->iov.iov_base : NULL,
		.data = entry->data,
		.tag = entry->tag,
		.olen = entry->len - size,
		.err = FI_ETRUNC,
		.prov_errno = FI_ETRUNC,
		DUO_CQ_ERR_SRC(src)
	};

	rx->ep->rx.failed++;
	duo_cq_push_err(rx->ep->rx_cq, &err, -1);
	if (rx->multi)
		duo_multi_end(rx);
}

void duo_arrival_done_rare(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			   fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;

	if (entry->len > duo_rx_size(rx) && !(rx->flags & FI_DISCARD)) {
		duo_arrival_truncated(rx, entry, src);
		return;
	}
	if (rx->flags & FI_DISCARD) {
		entry->buf = NULL;
	} else {
		ep->stats.path[FI_DUO_LOCAL].rx_msgs++;
		ep->stats.path[FI_DUO_LOCAL].rx_bytes += entry->len;
	}
	if (rx->wanted)
		duo_cq_push(ep->rx_cq, entry, src);
	else if (rx->multi)
		duo_multi_done(rx, entry, src);
}

void duo_arrival_failed(struct duo_rx *rx, const struct fi_cq_err_entry *entry)
{
	struct fi_cq_err_entry out = *entry;

	out.op_context = rx->context;
	rx->ep->rx.failed++;
	duo_cq_push_err(rx->ep->rx_cq, &out, FI_DUO_LOCAL);
	if (rx->multi)
		duo_multi_end(rx);
}
