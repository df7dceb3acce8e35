/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Large messages from or to device memory. The receiver fetches such a message
 * by near_rma() (docs/near/rma.md). If the fetch fails, the receiver requests
 * fragments. The sender copies device memory to host memory before it sends
 * fragments.
 */

#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "device/device.h"
#include "transport/near/near_ep.h"
#include "transport/near/onesided.h"

static size_t duo_near_fetch_len(const struct duo_rx *rx)
{
	return duo_min(rx->peer.msg_size, duo_rx_size(rx));
}

void duo_near_fetch(struct duo_rx *rx, struct near_rx_op *op)
{
	const struct duo_near *near = rx->ep->near;
	void *device[NEAR_IOV_MAX];
	const struct near_rndv *rndv = &rx->arrival.rndv;
	bool in_host = !rx->arrival.device;
	struct near_rma_args args = {
		.verb = NEAR_READ,
		.flags = NEAR_RMA_MESSAGE | (in_host ? NEAR_RMA_BY_ID : 0),
		.addr = in_host ? rndv->id : rndv->addr,
		.key = rndv->key,
		.local = { duo_rx_iov(rx), rx->count, NULL },
		.len = duo_near_fetch_len(rx),
		.about = DUO_NEAR_FETCH,
		.cookie = rx,
	};
	int ret = -FI_EOPNOTSUPP;

	rx->fetch = op;
	if (duo_device_handles(rx->ep->domain, duo_rx_desc(rx), rx->count,
			       device))
		args.local.device = device;
	if (near->fetches)
		ret = near_rma(near->port, rx->arrival.peer, &args);
	/*
	 * If ret is 0, near_rma() may already have called duo_near_fetched(),
	 * which may have freed rx.
	 */
	if (ret)
		duo_near_fetched(rx, -ret);
}

void duo_near_fetched(struct duo_rx *rx, int err)
{
	struct near_port *port = rx->ep->near->port;
	struct near_rx_op *op = rx->fetch;
	void *bounce = NULL;

	if (err && err != FI_ECONNRESET) {
		bounce = malloc(duo_near_fetch_len(rx));
		err = FI_ENOMEM;
	}
	if (bounce) {
		duo_rx_set_bounce(rx, bounce);
		near_recv_frags(port, op, bounce, duo_near_fetch_len(rx));
		return;
	}
	if (!err && duo_device_handles(rx->ep->domain, duo_rx_desc(rx),
				       rx->count, NULL))
		rx->ep->stats.device_rx_msgs++;
	near_recv_end(port, op, err);
}
