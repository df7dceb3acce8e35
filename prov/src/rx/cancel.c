/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_cancel of a receive. */

#include "core/lazy.h"
#include "rx/multi.h"
#include "rx/recv.h"

/* Under the domain's lock. */
static ssize_t duo_cancel_rx(struct duo_ep *ep, struct duo_rx *rx)
{
	if (rx->multi)
		return duo_multi_cancel(rx);
	duo_match_unpost(&ep->match[rx->kind], rx);
	duo_lazy_drop(rx);
	if (rx->on_core && !duo_lazy_recall(rx))
		return 0;	/* matched: it completes as any other */
	duo_cq_push_rx_err(ep->rx_cq, rx, FI_ECANCELED);
	duo_rx_release(&ep->pool, rx);
	return 0;
}

ssize_t duo_ep_cancel(fid_t fid, void *context)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);
	struct duo_rx *rx = NULL;
	ssize_t ret;
	int kind;

	duo_lock(&ep->domain->lock);
	for (kind = 0; kind < DUO_KIND_COUNT && !rx; kind++)
		rx = duo_match_context(&ep->match[kind], context);
	ret = rx ? duo_cancel_rx(ep, rx) :
		   duo_multi_cancel_context(ep, context);
	duo_unlock(&ep->domain->lock);
	return ret;
}
