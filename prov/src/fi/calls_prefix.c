/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Calls that send and receive messages of an endpoint with FI_MSG_PREFIX: the
 * first buffer of each message begins with space for a provider's header, the
 * prefix. Neither the core nor the local transport uses this space. So each
 * function here skips the prefix, and then calls the function for messages
 * without a prefix. If the first buffer is shorter than the prefix, the call
 * returns -FI_EINVAL. Cost: a function call, and a copy of a list of buffers.
 */

#include <rdma/fi_errno.h>

#include "fi/api.h"
#include "obj/ep.h"

/* The buffers of a message, without the prefix */
struct duo_skipped {
	struct iovec iov[DUO_IOV_LIMIT];
	void **desc;
	size_t count;
};

/*
 * Stores the buffers without the prefix in *to. If the first of several buffers
 * has only the prefix, omits this buffer. A call without buffers, such as a
 * peek, has no prefix. Returns false if the first buffer is shorter than the
 * prefix, or if there are more than DUO_IOV_LIMIT buffers.
 */
static bool duo_prefix_skip(struct fid_ep *ep, struct duo_skipped *to,
			    const struct iovec *iov, void **desc, size_t count)
{
	const size_t skip = duo_ep_of(ep)->prefix.size;
	size_t first, i;

	if (count > DUO_IOV_LIMIT ||
	    (count && (!iov || iov->iov_len < skip)))
		return false;
	first = count > 1 && iov->iov_len == skip;
	to->count = count - first;
	to->desc = desc ? desc + first : NULL;
	for (i = 0; i < to->count; i++)
		to->iov[i] = iov[i + first];
	if (count && !first) {
		to->iov[0].iov_base = (char *) to->iov[0].iov_base + skip;
		to->iov[0].iov_len -= skip;
	}
	return true;
}

/*
 * Defines a call with one buffer. args: arguments for ep->prefix.table->call().
 */
#define DUO_PREFIX_ONE(name, call, table, params, args) \
	static ssize_t name params \
	{ \
		const struct duo_ep *duo_ep = duo_ep_of(ep); \
		const size_t skip = duo_ep->prefix.size; \
		\
		if (len < skip) \
			return -FI_EINVAL; \
		len -= skip; \
		buf = (char *) buf + skip; \
		return duo_ep->prefix.table->call args; \
	}

DUO_PREFIX_ONE(duo_prefix_recv, recv, msg,
	       (struct fid_ep *ep, void *buf, size_t len, void *desc,
		fi_addr_t src, void *context),
	       (ep, buf, len, desc, src, context))
DUO_PREFIX_ONE(duo_prefix_send, send, msg,
	       (struct fid_ep *ep, const void *buf, size_t len, void *desc,
		fi_addr_t dest, void *context),
	       (ep, buf, len, desc, dest, context))
DUO_PREFIX_ONE(duo_prefix_inject, inject, msg,
	       (struct fid_ep *ep, const void *buf, size_t len,
		fi_addr_t dest),
	       (ep, buf, len, dest))
DUO_PREFIX_ONE(duo_prefix_senddata, senddata, msg,
	       (struct fid_ep *ep, const void *buf, size_t len, void *desc,
		uint64_t data, fi_addr_t dest, void *context),
	       (ep, buf, len, desc, data, dest, context))
DUO_PREFIX_ONE(duo_prefix_injectdata, injectdata, msg,
	       (struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
		fi_addr_t dest),
	       (ep, buf, len, data, dest))
DUO_PREFIX_ONE(duo_prefix_trecv, recv, tagged,
	       (struct fid_ep *ep, void *buf, size_t len, void *desc,
		fi_addr_t src, uint64_t tag, uint64_t ignore, void *context),
	       (ep, buf, len, desc, src, tag, ignore, context))
DUO_PREFIX_ONE(duo_prefix_tsend, send, tagged,
	       (struct fid_ep *ep, const void *buf, size_t len, void *desc,
		fi_addr_t dest, uint64_t tag, void *context),
	       (ep, buf, len, desc, dest, tag, context))
DUO_PREFIX_ONE(duo_prefix_tinject, inject, tagged,
	       (struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
		uint64_t tag),
	       (ep, buf, len, dest, tag))
DUO_PREFIX_ONE(duo_prefix_tsenddata, senddata, tagged,
	       (struct fid_ep *ep, const void *buf, size_t len, void *desc,
		uint64_t data, fi_addr_t dest, uint64_t tag, void *context),
	       (ep, buf, len, desc, data, dest, tag, context))
DUO_PREFIX_ONE(duo_prefix_tinjectdata, injectdata, tagged,
	       (struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
		fi_addr_t dest, uint64_t tag),
	       (ep, buf, len, data, dest, tag))

/*
 * Defines a call with a list of buffers. ...: the arguments of
 * ep->prefix.table->call() that follow `count`.
 */
#define DUO_PREFIX_VECTOR(name, call, table, params, ...) \
	static ssize_t name params \
	{ \
		struct duo_skipped to; \
		\
		return duo_prefix_skip(ep, &to, iov, desc, count) ? \
		       duo_ep_of(ep)->prefix.table->call(ep, to.iov, to.desc, \
							 to.count, \
							 __VA_ARGS__) : \
		       -FI_EINVAL; \
	}

DUO_PREFIX_VECTOR(duo_prefix_recvv, recvv, msg,
		  (struct fid_ep *ep, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t src, void *context),
		  src, context)
DUO_PREFIX_VECTOR(duo_prefix_sendv, sendv, msg,
		  (struct fid_ep *ep, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t dest, void *context),
		  dest, context)
DUO_PREFIX_VECTOR(duo_prefix_trecvv, recvv, tagged,
		  (struct fid_ep *ep, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
		   void *context),
		  src, tag, ignore, context)
DUO_PREFIX_VECTOR(duo_prefix_tsendv, sendv, tagged,
		  (struct fid_ep *ep, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t dest, uint64_t tag, void *context),
		  dest, tag, context)

/* Defines a call whose arguments are in a struct, such as fi_msg. */
#define DUO_PREFIX_MSG(name, call, table, type) \
	static ssize_t name(struct fid_ep *ep, const struct type *from, \
			    uint64_t flags) \
	{ \
		struct duo_skipped to; \
		struct type msg = *from; \
		\
		if (!duo_prefix_skip(ep, &to, from->msg_iov, from->desc, \
				     from->iov_count)) \
			return -FI_EINVAL; \
		msg.msg_iov = to.iov; \
		msg.desc = to.desc; \
		msg.iov_count = to.count; \
		return duo_ep_of(ep)->prefix.table->call(ep, &msg, flags); \
	}

DUO_PREFIX_MSG(duo_prefix_recvmsg, recvmsg, msg, fi_msg)
DUO_PREFIX_MSG(duo_prefix_sendmsg, sendmsg, msg, fi_msg)
DUO_PREFIX_MSG(duo_prefix_trecvmsg, recvmsg, tagged, fi_msg_tagged)
DUO_PREFIX_MSG(duo_prefix_tsendmsg, sendmsg, tagged, fi_msg_tagged)

static struct fi_ops_msg duo_prefix_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = duo_prefix_recv,
	.recvv = duo_prefix_recvv,
	.recvmsg = duo_prefix_recvmsg,
	.send = duo_prefix_send,
	.sendv = duo_prefix_sendv,
	.sendmsg = duo_prefix_sendmsg,
	.inject = duo_prefix_inject,
	.senddata = duo_prefix_senddata,
	.injectdata = duo_prefix_injectdata,
};

static struct fi_ops_tagged duo_prefix_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = duo_prefix_trecv,
	.recvv = duo_prefix_trecvv,
	.recvmsg = duo_prefix_trecvmsg,
	.send = duo_prefix_tsend,
	.sendv = duo_prefix_tsendv,
	.sendmsg = duo_prefix_tsendmsg,
	.inject = duo_prefix_tinject,
	.senddata = duo_prefix_tsenddata,
	.injectdata = duo_prefix_tinjectdata,
};

void duo_ep_calls_prefix(struct duo_ep *ep, const struct fi_info *info)
{
	if (!duo_info_prefix(info) || !info->ep_attr->msg_prefix_size)
		return;
	ep->prefix.size = info->ep_attr->msg_prefix_size;
	ep->prefix.msg = ep->ep_fid.msg;
	ep->prefix.tagged = ep->ep_fid.tagged;
	ep->ep_fid.msg = &duo_prefix_msg_ops;
	ep->ep_fid.tagged = &duo_prefix_tagged_ops;
}
