/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sends over near. An inline or eager send completes when its message is in the
 * peer's ring. A large send (rendezvous) completes when the peer has received
 * the message. With FI_DELIVERY_COMPLETE all sends are large ones.
 */

#include <rdma/fi_errno.h>

#include <stdlib.h>

#include "av/map.h"
#include "device/device.h"
#include "transport/near/near_ep.h"
#include "transport/near/onesided.h"

/* longest message that is copied to a buffer on the stack, bytes */
#define DUO_NEAR_GATHER 8192
/* sends with one of these flags take the slow path, duo_near_send_any() */
#define DUO_NEAR_FLAGGED (FI_DELIVERY_COMPLETE | FI_FENCE)

/* True if the send has a completion. */
static near_inline bool duo_near_reports(const struct duo_near *near,
					 const struct duo_send *send)
{
	return send->variant != DUO_SEND_INJECT &&
	       (near->tx_all || send->flags & FI_COMPLETION);
}

static near_inline uint64_t duo_near_tx_flags(const struct duo_send *send)
{
	return FI_SEND | (send->msg.flags & NEAR_TAGGED ? FI_TAGGED : FI_MSG);
}

static near_inline void duo_near_report(struct duo_near *near,
					const struct duo_send *send)
{
	if (duo_near_reports(near, send))
		duo_cq_push_sent(near->ep->tx_cq, send->context,
				 duo_near_tx_flags(send));
}

static near_inline bool duo_near_of_device(const struct duo_near *near,
				      const struct duo_send *send)
{
	const struct duo_domain *domain = near->ep->domain;

	return domain->device && send->desc &&
	       duo_device_handles(domain, send->desc, send->count, NULL);
}

/*
 * Implements near_sink.sent(): writes the completion or the error of a large
 * send.
 */
void duo_near_sent(void *ctx, void *cookie, int err)
{
	struct duo_near_sending *op = cookie;
	struct duo_ep *ep = ctx;
	const struct fi_cq_tagged_entry entry = {
		.op_context = op->context, .flags = op->flags,
	};

	ep->tx.pending--;
	if (err) {
		ep->tx.failed++;
		duo_cq_push_own_err(ep->tx_cq, op->context, op->flags, 0,
				    op->to, err);
	} else if (op->report) {
		duo_cq_push(ep->tx_cq, &entry, FI_ADDR_NOTAVAIL);
	}
	near_pool_put(&ep->near->sends, op);
}

/*
 * Handles `ret`, the error of a send. Returns `ret` if it is -FI_EINVAL, or if
 * there is no core (in the provider near). Otherwise returns -FI_EAGAIN, so
 * that the application retries. The next attempt uses
 * - near, if the ring was full or the fd exchange is not finished
 * - the core, if near cannot connect to the peer
 * - the path that a new lookup finds, if the peer has failed
 */
static ssize_t duo_near_send_failed(struct duo_near *near, fi_addr_t index,
				    int ret)
{
	const struct near_peer *peer = near->peer[index];

	if (ret == -FI_EINVAL || near->ep->core.carries_nothing)
		return ret;
	if (peer && !near_peer_rings(peer) && ret != -FI_ECONNRESET)
		duo_map_use_core(near->ep, index);
	return -FI_EAGAIN;
}

/*
 * Starts a large send. owned: NULL, or the message in malloc() memory. Returns
 * 0 or an error of near_send_large(). After 0, near frees `owned` when the send
 * has ended, and then calls duo_near_sent() unless the send is an inject. After
 * an error, `owned` still belongs to the caller.
 */
static int duo_near_large(struct duo_near *near, const struct duo_send *send,
			  fi_addr_t index, void *owned)
{
	const bool quiet = send->variant == DUO_SEND_INJECT;
	struct near_large large = {
		.iov = send->iov,
		.count = send->count,
		.copy = !owned && (quiet || send->flags & FI_INJECT),
		.owned = owned,
	};
	struct duo_near_sending *op = NULL;
	int ret;

	if (!quiet) {
		op = near_pool_get(&near->sends);
		if (!op)
			return -FI_EAGAIN;
		op->context = send->context;
		op->flags = duo_near_tx_flags(send);
		op->to = duo_near_addr(near->ep, index);
		op->report = duo_near_reports(near, send);
		op->desc = send->desc ? send->desc[0] : NULL;
		large.cookie = op;
	}
	ret = near_send_large(near->port, near->peer[index], &send->msg,
			      &large);
	if (ret && op)
		near_pool_put(&near->sends, op);
	near->ep->tx.pending += !ret && op;
	return ret;
}

/* Continues a send for which near_send() has returned `ret`, which is not 0. */
static __attribute__((noinline)) ssize_t
duo_near_send_slow(struct duo_near *near, const struct duo_send *send,
		   fi_addr_t index, int ret)
{
	if (ret == NEAR_LARGE)
		ret = duo_near_large(near, send, index, NULL);
	return ret ? duo_near_send_failed(near, index, ret) : 0;
}

/*
 * Sends a message through the ring. If the message has several buffers, first
 * copies them to one buffer on the stack. Returns the result of near_send();
 * NEAR_LARGE: not sent, and the caller must call duo_near_large().
 */
static int duo_near_send_now(struct duo_near *near, const struct duo_send *send,
			     fi_addr_t index)
{
	uint8_t gathered[DUO_NEAR_GATHER];
	struct near_msg msg = send->msg;

	if (send->flags & FI_DELIVERY_COMPLETE ||
	    (send->count > 1 && msg.len > sizeof(gathered)))
		return NEAR_LARGE;
	if (send->count > 1) {
		near_iov_out(gathered, send->iov, 0, msg.len);
		msg.payload = gathered;
	}
	return near_send(near->port, near->peer[index], &msg);
}

/*
 * Sends a message in host memory. owned: NULL, or the message in malloc()
 * memory. This function frees `owned`, or near frees it when the send has
 * ended.
 */
static ssize_t duo_near_send_host(struct duo_near *near,
				  const struct duo_send *send,
				  fi_addr_t index, void *owned)
{
	int ret = duo_near_send_now(near, send, index);

	if (!ret)
		duo_near_report(near, send);
	if (ret == NEAR_LARGE) {
		ret = duo_near_large(near, send, index, owned);
		owned = ret ? owned : NULL;
	}
	free(owned);
	return ret ? duo_near_send_failed(near, index, ret) : 0;
}

/*
 * Handles a message in device memory. If the receiver can fetch the message,
 * sends only the RTS, stores the result in *ret, and returns true. False: the
 * receiver cannot fetch the message, and nothing was sent.
 */
static bool duo_near_announce(struct duo_near *near,
			      const struct duo_send *send, fi_addr_t index,
			      int *ret)
{
	struct duo_send announced = *send;
	const struct duo_mr *mr;

	if (!send->msg.len || send->count != 1 ||
	    send->variant == DUO_SEND_INJECT || send->flags & FI_INJECT ||
	    !(near->peer[index]->addr.flags & NEAR_ADDR_DEVICE))
		return false;
	mr = duo_device_find(near->ep->domain, send->desc[0]);
	if (!duo_near_region_fetchable(mr, send->iov->iov_base, send->msg.len,
				       &announced.msg.rndv))
		return false;
	announced.msg.flags |= NEAR_DEVICE;
	*ret = duo_near_large(near, &announced, index, NULL);
	return true;
}

/*
 * Implements near_sink.unload(): copies device memory to host memory. Fails if
 * the application has closed the region since the send.
 */
int duo_near_unload(void *ctx, void *cookie, const void *from, void *host,
		    size_t len)
{
	struct duo_near_sending *op = cookie;
	const struct iovec iov = { (void *) from, len };
	struct duo_domain *domain = ((struct duo_ep *) ctx)->domain;
	const struct duo_mr *mr = duo_device_find(domain, op->desc);
	struct near_rndv unused;

	if (!mr || !duo_near_region_fetchable(mr, from, len, &unused))
		return FI_EIO;
	return -duo_device_out(domain, host, &iov, &op->desc, len);
}

/*
 * Sends a message in device memory. If the receiver can fetch the message,
 * sends only the RTS. Otherwise copies the message to host memory, and sends
 * the copy. Returns -FI_EIO if the device cannot copy it; -FI_EAGAIN also if
 * there is no memory for the copy.
 */
DUO_NOINLINE ssize_t duo_near_send_device(struct duo_near *near,
					  const struct duo_send *send,
					  fi_addr_t index)
{
	uint8_t small[DUO_NEAR_GATHER];
	size_t len = send->msg.len;
	struct duo_send copy = *send;
	struct iovec host;
	void *owned;
	ssize_t ret;
	int err;

	if (duo_near_announce(near, send, index, &err)) {
		near->ep->stats.device_tx_msgs += !err;
		return err ? duo_near_send_failed(near, index, err) : 0;
	}
	owned = len > sizeof(small) ? malloc(len) : NULL;
	if (len > sizeof(small) && !owned)
		return -FI_EAGAIN;
	host = (struct iovec) { owned ? owned : small, len };
	err = duo_device_out(near->ep->domain, host.iov_base, send->iov,
			     send->desc, len);
	if (err) {
		free(owned);
		return err == -FI_ENOMEM ? -FI_EAGAIN : err;
	}
	copy.msg.payload = host.iov_base;
	copy.iov = &host;
	copy.count = 1;
	/*
	 * With FI_INJECT, near copies a large message during the call. This is
	 * necessary if the message is in `small`, on this function's stack.
	 */
	copy.flags |= FI_INJECT;
	ret = duo_near_send_host(near, &copy, index, owned);
	near->ep->stats.device_tx_msgs += !ret;
	return ret;
}

/* Slow path of duo_near_send(), for any message. */
static __attribute__((noinline)) ssize_t
duo_near_send_any(struct duo_near *near, const struct duo_send *send,
		  fi_addr_t index)
{
	const struct near_peer *peer = near->peer[index];

	if (!peer || (send->flags & FI_FENCE && near_rma_fenced(peer)))
		return -FI_EAGAIN;
	return duo_near_of_device(near, send) ?
	       duo_near_send_device(near, send, index) :
	       duo_near_send_host(near, send, index, NULL);
}

ssize_t duo_near_send(struct duo_near *near, const struct duo_send *send,
		      fi_addr_t index)
{
	struct near_peer *peer = near->peer[index];
	int ret;

	if (near_unlikely(!peer || send->count != 1 ||
			  send->flags & DUO_NEAR_FLAGGED ||
			  duo_near_of_device(near, send)))
		return duo_near_send_any(near, send, index);
	ret = near_send(near->port, peer, &send->msg);
	if (near_unlikely(ret))
		return duo_near_send_slow(near, send, index, ret);
	duo_near_report(near, send);
	return 0;
}
