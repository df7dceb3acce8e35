/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The calls for messages. Those with one buffer begin with their fast path,
 * inline; all else is left to a function of the same arguments, which is
 * jumped to.
 *
 * Compiled twice: calls_locked.c is for domains whose lock is on.
 */

#include "fi/api.h"
#include "rx/recv.h"
#include "tx/send.h"

#ifndef DUO_LOCKED
#define DUO_LOCKED false
#define DUO_NAME(name) name
#endif

static ssize_t duo_call_recv(struct fid_ep *ep, void *buf, size_t len,
			     void *desc, fi_addr_t src, void *context)
{
	const struct duo_want want = { .addr = src, .ignore = ~0ULL };

	return duo_recv_local(ep, DUO_MSG, buf, len, desc, want, context,
			      DUO_LOCKED) ? duo_recv_end(ep, DUO_LOCKED) :
	       duo_recv(ep, buf, len, desc, src, context);
}

static ssize_t duo_call_trecv(struct fid_ep *ep, void *buf, size_t len,
			      void *desc, fi_addr_t src, uint64_t tag,
			      uint64_t ignore, void *context)
{
	const struct duo_want want = { src, tag, ignore };

	return duo_recv_local(ep, DUO_TAGGED, buf, len, desc, want, context,
			      DUO_LOCKED) ? duo_recv_end(ep, DUO_LOCKED) :
	       duo_trecv(ep, buf, len, desc, src, tag, ignore, context);
}

static ssize_t duo_call_send(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, fi_addr_t dest, void *context)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .context = context,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_send(ep, buf, len, desc, dest, context);
}

static ssize_t duo_call_inject(struct fid_ep *ep, const void *buf, size_t len,
			       fi_addr_t dest)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .quiet = true,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_inject(ep, buf, len, dest);
}

static ssize_t duo_call_senddata(struct fid_ep *ep, const void *buf,
				 size_t len, void *desc, uint64_t data,
				 fi_addr_t dest, void *context)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .data = data,
		.flags = NEAR_DATA, .context = context,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_senddata(ep, buf, len, desc, data, dest, context);
}

static ssize_t duo_call_injectdata(struct fid_ep *ep, const void *buf,
				   size_t len, uint64_t data, fi_addr_t dest)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .data = data,
		.flags = NEAR_DATA, .quiet = true,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_injectdata(ep, buf, len, data, dest);
}

static ssize_t duo_call_tsend(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, uint64_t tag,
			      void *context)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.flags = NEAR_TAGGED, .context = context,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_tsend(ep, buf, len, desc, dest, tag, context);
}

static ssize_t duo_call_tinject(struct fid_ep *ep, const void *buf, size_t len,
				fi_addr_t dest, uint64_t tag)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.flags = NEAR_TAGGED, .quiet = true,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_tinject(ep, buf, len, dest, tag);
}

static ssize_t duo_call_tsenddata(struct fid_ep *ep, const void *buf,
				  size_t len, void *desc, uint64_t data,
				  fi_addr_t dest, uint64_t tag, void *context)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.data = data, .flags = NEAR_TAGGED | NEAR_DATA,
		.context = context,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_tsenddata(ep, buf, len, desc, data, dest, tag, context);
}

static ssize_t duo_call_tinjectdata(struct fid_ep *ep, const void *buf,
				    size_t len, uint64_t data, fi_addr_t dest,
				    uint64_t tag)
{
	struct near_peer *sent = duo_send_small(ep, (struct duo_send) {
		.buf = buf, .len = len, .dest = dest, .tag = tag,
		.data = data, .flags = NEAR_TAGGED | NEAR_DATA,
		.quiet = true,
	}, DUO_LOCKED);

	return near_likely(sent != NULL) ? duo_send_end(ep, sent, DUO_LOCKED) :
	       duo_tinjectdata(ep, buf, len, data, dest, tag);
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
