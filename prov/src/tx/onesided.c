/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The choice between near and the core for each operation; see onesided.h. */

#include <inttypes.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "base/log.h"
#include "device/device.h"
#include "transport/near/onesided.h"
#include "tx/onesided.h"

int duo_onesided_core(struct duo_ep *ep, fi_addr_t dest)
{
	if (!duo_ep_enabled(ep))
		return duo_ep_early(ep);
	if (dest >= ep->route_size || !ep->tx.core ||
	    duo_route_state(duo_route_load(ep->route, dest)) == DUO_ROUTE_NONE)
		return -FI_EINVAL;
	return DUO_TO_CORE;
}

/*
 * near has rejected op with the error ret, and the core executes op. Later
 * messages over near may then overtake op. If the endpoint must keep the order
 * of messages and RMA, logs a warning about this, once; but not if the core
 * rejects op, too, or carries all messages to this peer from now on.
 */
static void duo_onesided_unordered(struct duo_ep *ep,
				   const struct near_rma_args *op, int ret)
{
	if (!ep->opts.mixed_order || ep->near->unordered ||
	    ret == -FI_EACCES || ret == -FI_EINVAL || ret == -FI_EHOSTUNREACH)
		return;
	ep->near->unordered = true;
	DUO_WARN(EP_DATA, "ep %p: the core executes an operation on a local "
		 "peer (key 0x%" PRIx64 ", type %u): later messages and "
		 "fenced operations do not wait for it. Set "
		 "FI_OFI_DUO_LOCAL=off if they must\n", (void *) ep, op->key,
		 op->type);
}

/*
 * Must be called for an operation on several remote buffers, which only the
 * core can execute. Makes the core execute all later RMA and atomics of the
 * endpoint as well, because operations over near could overtake this one.
 */
DUO_NOINLINE void duo_onesided_several(struct duo_ep *ep)
{
	if (ep->near->direct)
		DUO_INFO(EP_DATA, "ep %p: operation on several remote "
			 "buffers: the core carries all RMA and atomics from "
			 "now on. One buffer per operation is faster with "
			 "local peers\n", (void *) ep);
	ep->near->direct = false;
	ep->near->small = 0;
}

/*
 * True if near can execute op. False for
 * - an operation on several remote buffers, and each operation after it
 * - a write to persistent memory (FI_COMMIT_COMPLETE), which near cannot flush.
 *   (True in the provider near, because it has no core that could do so.)
 * - an atomic, if the core does not execute atomics with the target's CPU:
 *   near's atomics would not be atomic with respect to those of the core
 * - an atomic that near does not support
 */
static bool duo_onesided_has(struct duo_ep *ep, const struct near_rma_args *op,
			     uint64_t flags)
{
	if (near_unlikely(op->verb == DUO_SEVERAL))
		duo_onesided_several(ep);
	if (flags & FI_COMMIT_COMPLETE && op->about & FI_WRITE &&
	    !ep->core.carries_nothing)
		return false;
	return ep->near->direct &&
	       (!(op->about & FI_ATOMIC) ||
		(ep->core.cpu_atomics &&
		 near_rma_has_atomic(op->verb, op->op, op->type)));
}

/* True if near supports this number of buffers, and their total size is len. */
static bool duo_onesided_fits(const struct near_rma_bufs *bufs, size_t len)
{
	return bufs->count <= NEAR_IOV_MAX &&
	       near_iov_len(bufs->iov, bufs->count) == len;
}

/*
 * True if each list of local buffers that the operation uses has the length of
 * the remote buffer.
 */
static bool duo_onesided_valid(const struct near_rma_args *op)
{
	return (duo_onesided_fits(&op->local, op->len) ||
		(op->about & FI_ATOMIC && op->op == NEAR_ATOMIC_READ)) &&
	       (op->verb != NEAR_COMPARE ||
		duo_onesided_fits(&op->compare, op->len)) &&
	       (op->verb <= NEAR_ATOMIC ||
		duo_onesided_fits(&op->result, op->len));
}

/*
 * Returns the NEAR_RMA_* flags of an operation. order: the FI_ORDER_* flags of
 * the endpoint for the order of messages and RMA. The order of RMA and atomics
 * needs no flag, because near always executes them in the order of the calls.
 */
static uint32_t duo_onesided_flags(const struct near_rma_args *op,
				   uint64_t flags, uint64_t order)
{
	bool read = op->about & FI_READ;
	uint32_t set = 0;

	if (flags & FI_REMOTE_CQ_DATA && op->verb == NEAR_WRITE)
		set |= NEAR_RMA_DATA;
	if (flags & FI_INJECT && op->verb != NEAR_READ)
		set |= NEAR_RMA_COPY;
	if (flags & FI_FENCE)
		set |= NEAR_RMA_FENCE | NEAR_RMA_BEHIND;
	if (order & (read ? FI_ORDER_RAS : FI_ORDER_WAS))
		set |= NEAR_RMA_BEHIND;
	if (read && order & FI_ORDER_SAR)
		set |= NEAR_RMA_HOLD;
	return set;
}

/*
 * Handles an operation that near has rejected with the error ret. Returns
 * DUO_TO_CORE if the core may execute the operation. Returns -FI_EAGAIN if the
 * application must retry, because
 * - near has returned -FI_EAGAIN
 * - the peer may have failed (ret is -FI_ECONNRESET)
 * - near has pending operations, which the operation would overtake at the core
 * - the operation is fenced, and a large message to the peer is pending
 */
static int duo_onesided_rejected(struct duo_ep *ep, fi_addr_t index,
				 const struct near_rma_args *op, int ret)
{
	struct near_peer *peer = ep->near->peer[index];

	/*
	 * If near cannot send to this peer, the core must carry all messages to
	 * the peer from now on.
	 */
	if (ret == -FI_EHOSTUNREACH ||
	    (ret == -FI_EAGAIN && !near_peer_rings(peer)))
		duo_map_use_core(ep, index);
	if (ret == -FI_EAGAIN || ret == -FI_ECONNRESET || near_rma_busy(peer) ||
	    (op->flags & NEAR_RMA_FENCE && near_rma_fenced(peer)) ||
	    (ep->opts.mixed_order && near_rma_quiet(ep->near->port, peer)))
		return -FI_EAGAIN;
	duo_onesided_unordered(ep, op, ret);
	return DUO_TO_CORE;
}

/*
 * ret is the result of near for an operation. True if the call must return 0,
 * and a completion must report the error ret. This is so if
 * - ret is -FI_EFAULT: a buffer is not mapped
 * - the target has rejected the operation, and no core can execute it instead
 */
static bool duo_onesided_reported(const struct duo_ep *ep, int ret)
{
	return ret == -FI_EFAULT ||
	       (ep->core.carries_nothing &&
		(ret == -FI_EKEYREJECTED || ret == -FI_EACCES ||
		 ret == -FI_EINVAL));
}

/*
 * Checks an operation of the provider near, which has no core that could
 * execute or reject the operation. Returns 0 or an error.
 */
static int duo_onesided_check(const struct duo_ep *ep,
			      const struct near_rma_args *op, bool quiet)
{
	if (op->verb == DUO_SEVERAL || (quiet && op->len > ep->inject_size))
		return -FI_EINVAL;
	return op->about & FI_ATOMIC &&
	       !near_rma_has_atomic(op->verb, op->op, op->type) ?
	       -FI_EOPNOTSUPP : 0;
}

/*
 * bufs->device has the application's descriptors of the buffers. If one of the
 * buffers is device memory, stores near's handles of the buffers in device[],
 * makes bufs->device refer to them, and returns true. If no buffer is device
 * memory, or there are more buffers than near supports, sets bufs->device to
 * NULL and returns false.
 */
static bool duo_onesided_device(const struct duo_domain *domain,
				struct near_rma_bufs *bufs, void **device)
{
	bool any = bufs->count <= NEAR_IOV_MAX &&
		   duo_device_handles(domain, bufs->device, bufs->count,
				      device);

	bufs->device = any ? device : NULL;
	return any;
}

/*
 * Injects a write from device memory. Copies the data to the stack first,
 * because NEAR_RMA_COPY requires host memory. Returns
 * - -FI_EINVAL: the data is too long
 * - -FI_EIO: the copy has failed
 * - -FI_ENOMEM: no memory for the copy; -FI_EAGAIN would show here that near
 *   cannot connect to the peer, so that the core would carry its messages
 * - otherwise the result of near_rma()
 */
DUO_NOINLINE int duo_onesided_inject(struct duo_ep *ep, struct near_peer *peer,
				     struct near_rma_args op, void *const *desc)
{
	uint8_t copy[DUO_LOCAL_INJECT];
	const struct iovec iov = { copy, op.len };
	int ret;

	if (op.len > sizeof(copy))
		return -FI_EINVAL;
	ret = duo_device_out(ep->domain, copy, op.local.iov, desc, op.len);
	if (ret)
		return ret;
	op.local = (struct near_rma_bufs) { &iov, 1, NULL };
	return near_rma(ep->near->port, peer, &op);
}

/*
 * Replaces the application's descriptors in op by near's handles of device
 * memory, and passes op to near. Returns -FI_EOPNOTSUPP for an atomic on device
 * memory, otherwise the result of near_rma() or duo_onesided_inject().
 */
static int duo_onesided_try(struct duo_ep *ep, struct near_peer *peer,
			    struct near_rma_args *op)
{
	const struct duo_domain *domain = ep->domain;
	void *device[NEAR_IOV_MAX], *unused[NEAR_IOV_MAX];
	void *const *desc = op->local.device;
	bool any = duo_onesided_device(domain, &op->local, device);

	if (op->about & FI_ATOMIC) {
		any |= duo_onesided_device(domain, &op->result, unused);
		any |= duo_onesided_device(domain, &op->compare, unused);
		if (any)
			return -FI_EOPNOTSUPP;
	}
	return any && op->flags & NEAR_RMA_COPY ?
	       duo_onesided_inject(ep, peer, *op, desc) :
	       near_rma(ep->near->port, peer, op);
}

/*
 * Passes an operation on the local peer with this index to near. The caller
 * must hold the group's lock. Returns the result of duo_onesided_any().
 */
static int duo_onesided_near(struct duo_ep *ep, fi_addr_t index,
			     struct near_rma_args *op, uint64_t flags,
			     bool quiet)
{
	struct duo_near *near = ep->near;
	struct near_peer *peer = near->peer[index];
	int ret = -FI_EOPNOTSUPP;

	if (!peer)
		return -FI_EAGAIN;	/* the peer has just failed */
	if (ep->core.carries_nothing) {
		ret = duo_onesided_check(ep, op, quiet);
		if (ret)
			return ret;
	}
	op->flags = duo_onesided_flags(op, flags, ep->tx.order) |
		    (ep->core.carries_nothing ? NEAR_RMA_TRY : 0);
	if (duo_onesided_has(ep, op, flags)) {
		if (!duo_onesided_valid(op))
			return -FI_EINVAL;
		if (!quiet && (near->tx_all || flags & FI_COMPLETION))
			op->about |= FI_COMPLETION;
		ret = duo_onesided_try(ep, peer, op);
	}
	if (ret == NEAR_RMA_DONE || duo_onesided_reported(ep, ret))
		duo_near_onesided_done(ep, peer, op->cookie, op->about,
				       ret < 0 ? -ret : 0);
	else if (ret && !ep->core.carries_nothing)
		return duo_onesided_rejected(ep, index, op, ret);
	else if (ret)
		return ret == -FI_ENOMEM ? -FI_EAGAIN : ret;
	(op->about & FI_ATOMIC ? ep->stats.atomic_ops :
				 ep->stats.rma_ops)[FI_DUO_LOCAL]++;
	return 0;
}

int duo_onesided_any(struct duo_ep *ep, fi_addr_t dest,
		     struct near_rma_args *op, uint64_t flags, bool quiet)
{
	struct duo_route route;
	int ret;

	if (!ep->near || !ep->near->onesided)
		return duo_onesided_core(ep, dest);
	route = duo_route(ep, dest);
	if (!route.ep)
		return duo_route_error(ep, dest);
	if (route.path == FI_DUO_CORE)
		return DUO_TO_CORE;
	duo_group_lock(&ep->group);
	/*
	 * If the route has changed before this thread got the lock, the peer
	 * has failed, and another peer may have its index. The application
	 * must then retry.
	 */
	ret = duo_route_still_local(ep, dest, &route) ?
	      duo_onesided_near(ep, route.addr, op, flags, quiet) : -FI_EAGAIN;
	duo_unlock(&ep->group->lock);
	return ret;
}
