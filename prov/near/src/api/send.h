/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Sends of an endpoint: every call that is not short ends in near_ep_send(). */
#ifndef NEAR_API_SEND_H
#define NEAR_API_SEND_H

#include "api/cq.h"
#include "proto/hot.h"

struct near_send_args {
	struct near_msg msg;	/* with the only buffer, if there is but one */
	fi_addr_t dest;
	void *context;
	uint64_t flags;		/* FI_TAGGED or FI_MSG, and the call's */
};

/*
 * send.c: one buffer, by the calls that report; inject says that the buffer is
 * the caller's again and that nothing is reported.
 */
ssize_t near_ep_send(struct near_ep *ep, const struct near_send_args *args,
		     bool inject);
ssize_t near_ep_send_large(struct near_ep *ep, struct near_peer *peer,
			   const struct near_send_args *args, bool inject,
			   const struct iovec *iov, size_t count);
ssize_t near_ep_sendv(struct near_ep *ep, struct near_send_args *args,
		      const struct iovec *iov, size_t count);

/* Whether such a call is to be reported when it succeeds. */
static near_inline bool near_send_reports(const struct near_ep *ep,
					  uint64_t flags)
{
	return ep->tx_all || flags & FI_COMPLETION;
}

static near_inline ssize_t near_ep_peer(struct near_ep *ep, fi_addr_t dest,
					struct near_peer **peer)
{
	if (near_unlikely(dest >= ep->peer_count || !ep->peer[dest]))
		return near_ep_resolve(ep, dest, peer);
	*peer = ep->peer[dest];
	return 0;
}

static near_inline void near_send_report(struct near_ep *ep, void *context,
					 uint64_t flags)
{
	near_cq_put_later(ep->tx_cq, context,
			  FI_SEND | (flags & (FI_TAGGED | FI_MSG)));
}

#endif /* NEAR_API_SEND_H */
