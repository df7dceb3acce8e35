/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Calls that send and receive messages. A call with one buffer first tries the
 * inline fast path. If that is not possible, the call takes the slow path
 * (tx/send.c, rx/recv.c). This file is compiled four times, because other files
 * include it: here for the lock mode DUO_LOCK_OFF, in calls_locked.c and
 * calls_single.c for the other modes, and in calls_prefix.c for FI_MSG_PREFIX.
 */

#include "fi/api.h"
#include "rx/recv.h"
#include "tx/send.h"

#ifndef DUO_LOCKED
#define DUO_LOCKED DUO_LOCK_OFF
#define DUO_NAME(name) name
#endif
#ifndef DUO_PREFIX
#define DUO_PREFIX false
#endif

static ssize_t duo_call_recv(struct fid_ep *ep, void *buf, size_t len,
			     void *desc, fi_addr_t src, void *context)
{
	const struct duo_want want = { .addr = src, .ignore = ~0ULL };

	if (DUO_PREFIX)
		return duo_recvv(ep, &(struct iovec) { buf, len }, &desc, 1,
				 src, context);
	return duo_recv_local(ep, DUO_MSG, buf, len, desc, want, context,
			      DUO_LOCKED) ? duo_recv_end(ep, DUO_LOCKED) :
	       duo_recv(ep, buf, len, desc, src, context);
}

static ssize_t duo_call_trecv(struct fid_ep *ep, void *buf, size_t len,
			      void *desc, fi_addr_t src, uint64_t tag,
			      uint64_t ignore, void *context)
{
	const struct duo_want want = { src, tag, ignore };

	if (DUO_PREFIX)
		return duo_trecvv(ep, &(struct iovec) { buf, len }, &desc, 1,
				  src, tag, ignore, context);
	return duo_recv_local(ep, DUO_TAGGED, buf, len, desc, want, context,
			      DUO_LOCKED) ? duo_recv_end(ep, DUO_LOCKED) :
	       duo_trecv(ep, buf, len, desc, src, tag, ignore, context);
}

/*
 * The callers must pass constants as variant and flags. The compiler then
 * removes the code of all other variants and flags from each inlined copy.
 */
DUO_INLINE ssize_t duo_call_send_one(struct fid_ep *ep, const void *buf,
				     size_t len, void *desc, fi_addr_t dest,
				     uint64_t tag, void *context,
				     uint64_t data,
				     const enum duo_send_variant variant,
				     const unsigned int flags)
{
	const size_t skip = DUO_PREFIX ? duo_ep_of(ep)->prefix : 0;
	const struct duo_send call = {
		.variant = variant,
		.msg = { .payload = buf, .len = len, .tag = tag, .data = data,
			 .flags = flags },
		.dest = dest, .context = context,
	};
	struct near_peer *sent;

	if (DUO_PREFIX)
		return len < skip ? -FI_EINVAL :
		       duo_send_one(ep, (const char *) buf + skip, len - skip,
				    desc, dest, tag, context, data, variant,
				    flags);
	sent = duo_send_small(ep, call, DUO_LOCKED);
	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_send_one(ep, buf, len, desc, dest, tag, context, data,
			    variant, flags);
}

static ssize_t duo_call_send(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, fi_addr_t dest, void *context)
{
	return duo_call_send_one(ep, buf, len, desc, dest, 0, context, 0,
				 DUO_SEND, 0);
}

static ssize_t duo_call_inject(struct fid_ep *ep, const void *buf, size_t len,
			       fi_addr_t dest)
{
	return duo_call_send_one(ep, buf, len, NULL, dest, 0, NULL, 0,
				 DUO_SEND_INJECT, 0);
}

static ssize_t duo_call_senddata(struct fid_ep *ep, const void *buf, size_t len,
				 void *desc, uint64_t data, fi_addr_t dest,
				 void *context)
{
	return duo_call_send_one(ep, buf, len, desc, dest, 0, context, data,
				 DUO_SEND, NEAR_DATA);
}

static ssize_t duo_call_injectdata(struct fid_ep *ep, const void *buf,
				   size_t len, uint64_t data, fi_addr_t dest)
{
	return duo_call_send_one(ep, buf, len, NULL, dest, 0, NULL, data,
				 DUO_SEND_INJECT, NEAR_DATA);
}

static ssize_t duo_call_tsend(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, uint64_t tag,
			      void *context)
{
	return duo_call_send_one(ep, buf, len, desc, dest, tag, context, 0,
				 DUO_SEND, NEAR_TAGGED);
}

static ssize_t duo_call_tinject(struct fid_ep *ep, const void *buf, size_t len,
				fi_addr_t dest, uint64_t tag)
{
	return duo_call_send_one(ep, buf, len, NULL, dest, tag, NULL, 0,
				 DUO_SEND_INJECT, NEAR_TAGGED);
}

static ssize_t duo_call_tsenddata(struct fid_ep *ep, const void *buf,
				  size_t len, void *desc, uint64_t data,
				  fi_addr_t dest, uint64_t tag, void *context)
{
	return duo_call_send_one(ep, buf, len, desc, dest, tag, context, data,
				 DUO_SEND, NEAR_TAGGED | NEAR_DATA);
}

static ssize_t duo_call_tinjectdata(struct fid_ep *ep, const void *buf,
				    size_t len, uint64_t data, fi_addr_t dest,
				    uint64_t tag)
{
	return duo_call_send_one(ep, buf, len, NULL, dest, tag, NULL, data,
				 DUO_SEND_INJECT, NEAR_TAGGED | NEAR_DATA);
}

struct fi_ops_msg DUO_NAME(duo_msg_ops) = {
	.size = sizeof(struct fi_ops_msg),
	.recv = duo_call_recv,
	.recvv = duo_recvv,
	.recvmsg = duo_recvmsg,
	.send = duo_call_send,
	.sendv = duo_sendv,
	.sendmsg = duo_sendmsg,
	.inject = duo_call_inject,
	.senddata = duo_call_senddata,
	.injectdata = duo_call_injectdata,
};

struct fi_ops_tagged DUO_NAME(duo_tagged_ops) = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = duo_call_trecv,
	.recvv = duo_trecvv,
	.recvmsg = duo_trecvmsg,
	.send = duo_call_tsend,
	.sendv = duo_tsendv,
	.sendmsg = duo_tsendmsg,
	.inject = duo_call_tinject,
	.senddata = duo_call_tsenddata,
	.injectdata = duo_call_tinjectdata,
};
