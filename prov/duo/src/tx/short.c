/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The short way of the calls with one buffer: a small message, over near, to a
 * peer whose ring has room, where no lock is to be taken, goes from the call's
 * registers into the ring. All else is left to send.c by a function of the same
 * arguments, which is jumped to, so that the short way saves no register.
 */

#include "av/route.h"
#include "peer/near/near_ep.h"
#include "tx/send.h"

struct duo_short {
	const void *buf;
	size_t len;
	fi_addr_t dest;
	uint64_t tag;
	uint64_t data;
	unsigned int flags;	/* NEAR_TAGGED, NEAR_DATA */
	void *context;
	bool quiet;		/* inject: a success is not reported */
};

/* Who it goes to; NULL: it is another way's. */
static near_inline struct near_peer *duo_short_peer(const struct duo_ep *ep,
						    fi_addr_t dest)
{
	uint64_t word;

	if (near_unlikely(!ep->quick || dest >= ep->route_size))
		return NULL;
	word = duo_route_load(ep->route, dest);
	return duo_route_state(word) == DUO_ROUTE_LOCAL ?
	       ep->quick->peer[duo_route_number(word)] : NULL;
}

/* Who was sent to: near_send_end() is left. NULL: nothing has been done. */
static near_inline struct near_peer *duo_short_sent(struct fid_ep *ep_fid,
						    const struct duo_short call)
{
	const struct near_msg msg = {
		.payload = call.buf, .len = call.len, .tag = call.tag,
		.data = call.data, .flags = call.flags,
	};
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct near_peer *peer;

	if (call.len > (call.quiet ? ep->quick_inject : NEAR_INLINE))
		return NULL;	/* soon told */
	peer = duo_short_peer(ep, call.dest);
	if (near_unlikely(!peer || (!call.quiet && !duo_cq_takes(ep->tx_cq)) ||
			  !near_send_short(ep->quick->port, peer, &msg)))
		return NULL;
	ep->stats.path[FI_DUO_LOCAL].tx_msgs++;
	ep->stats.path[FI_DUO_LOCAL].tx_bytes += call.len;
	if (!call.quiet && ep->quick->tx_reports)
		duo_cq_put_sent(ep->tx_cq, call.context, FI_SEND |
				(call.flags & NEAR_TAGGED ? FI_TAGGED :
							    FI_MSG));
	return peer;
}

ssize_t duo_short_send(struct fid_ep *ep, const void *buf, size_t len,
			   void *desc, fi_addr_t dest, void *context)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest,
		.context = context,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_send(ep, buf, len, desc, dest, context);
}

ssize_t duo_short_inject(struct fid_ep *ep, const void *buf, size_t len,
			     fi_addr_t dest)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest, .quiet = true,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_inject(ep, buf, len, dest);
}

ssize_t duo_short_senddata(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, uint64_t data, fi_addr_t dest,
			       void *context)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest, .data = data,
		.flags = NEAR_DATA, .context = context,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_senddata(ep, buf, len, desc, data, dest, context);
}

ssize_t duo_short_injectdata(struct fid_ep *ep, const void *buf,
				 size_t len, uint64_t data, fi_addr_t dest)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest, .data = data,
		.flags = NEAR_DATA, .quiet = true,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_injectdata(ep, buf, len, data, dest);
}

ssize_t duo_short_tsend(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, uint64_t tag,
			      void *context)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.flags = NEAR_TAGGED, .context = context,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_tsend(ep, buf, len, desc, dest, tag, context);
}

ssize_t duo_short_tinject(struct fid_ep *ep, const void *buf, size_t len,
				fi_addr_t dest, uint64_t tag)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.flags = NEAR_TAGGED, .quiet = true,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_tinject(ep, buf, len, dest, tag);
}

ssize_t duo_short_tsenddata(struct fid_ep *ep, const void *buf,
				  size_t len, void *desc, uint64_t data,
				  fi_addr_t dest, uint64_t tag, void *context)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.data = data, .flags = NEAR_TAGGED | NEAR_DATA,
		.context = context,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_tsenddata(ep, buf, len, desc, data, dest, tag,
				       context);
}

ssize_t duo_short_tinjectdata(struct fid_ep *ep, const void *buf,
				    size_t len, uint64_t data, fi_addr_t dest,
				    uint64_t tag)
{
	struct near_peer *sent = duo_short_sent(ep, (struct duo_short) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.data = data, .flags = NEAR_TAGGED | NEAR_DATA,
			.quiet = true,
	});

	return near_likely(sent != NULL) ? near_send_end(sent) :
	       duo_tinjectdata(ep, buf, len, data, dest, tag);
}
