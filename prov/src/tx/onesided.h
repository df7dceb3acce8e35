/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics. duo_onesided_any() passes an operation to near, which
 * executes operations on local peers. If it returns DUO_TO_CORE, the caller
 * must pass the operation to the core, the wrapped provider, without holding a
 * lock. Applications pass the core's keys, addresses and descriptors for both
 * paths.
 */
#ifndef DUO_ONESIDED_H
#define DUO_ONESIDED_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "av/route.h"
#include "near/rma/inline.h"
#include "obj/ep.h"
#include "transport/near/near_ep.h"
#include "tx/send.h"

/* return value: the caller must pass the operation to the core */
#define DUO_TO_CORE 1
/*
 * near_rma_args.verb of an operation on several remote buffers, which near
 * cannot execute
 */
#define DUO_SEVERAL NEAR_VERBS

extern struct fi_ops_rma duo_rma_ops;
extern struct fi_ops_atomic duo_atomic_ops;

/*
 * Checks the address of an operation that near cannot execute. Returns
 * - DUO_TO_CORE: the address is valid, and the core must get the operation
 * - -FI_EINVAL: dest is not in the AV, or the core carries no data
 * - -FI_EOPBADSTATE: the endpoint is not enabled
 */
int duo_onesided_core(struct duo_ep *ep, fi_addr_t dest);
/*
 * If the path to dest is local, takes the group's lock and passes the operation
 * to near. Changes *op. flags: flags of the call. quiet: the call is an inject,
 * which has no completion if it succeeds. Returns
 * - 0: near has accepted the operation
 * - DUO_TO_CORE: the caller must pass the operation to the core
 * - an error that the call must return
 */
int duo_onesided_any(struct duo_ep *ep, fi_addr_t dest,
		     struct near_rma_args *op, uint64_t flags, bool quiet);

/*
 * The fast path for small operations on a local peer. If op.flags has
 * NEAR_RMA_COPY, the call is an inject, which has no completion. True: near has
 * accepted the operation. False: nothing has changed, and the caller must take
 * the slow path.
 */
static near_inline bool duo_onesided_small(struct fid_ep *ep_fid,
					   fi_addr_t dest,
					   struct near_rma_args op)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_near *near = ep->near;
	struct near_peer *peer;
	bool done = false;
	uint64_t word;

	if (near_unlikely(!near || !near_rma_is_small(&op) ||
			  !duo_send_route(ep, dest)))
		return false;
	duo_group_lock(&ep->group);
	/*
	 * Loads the route again under the lock. Before this thread got the
	 * lock, the peer may have failed, and another peer may have its index.
	 */
	word = duo_send_route(ep, dest);
	peer = word ? near->peer[duo_route_index(word)] : NULL;
	if (near_likely(peer && near->small & duo_near_small(&op))) {
		if (!op.flags && near->tx_reports)
			op.about |= (uint32_t) FI_COMPLETION;
		done = near_rma_small(near->port, peer, &op);
	}
	if (near_likely(done))
		(op.about & FI_ATOMIC ? ep->stats.atomic_ops :
					ep->stats.rma_ops)[FI_DUO_LOCAL]++;
	duo_unlock(&ep->group->lock);
	return done;
}

/*
 * Must be called after an RMA or atomic operation was passed to the core. ret:
 * the core's result. If ret is 0, counts the operation. Makes the next reads of
 * the CQ poll the core. Returns ret.
 */
static inline ssize_t duo_onesided_called(struct duo_ep *ep, uint64_t *ops,
					  ssize_t ret)
{
	if (!ret)
		duo_tx_count(ep, &ops[FI_DUO_CORE]);
	duo_tx_core_called(ep);
	return ret;
}

/*
 * Returns the flags of a call without a flags argument: the default flags of
 * the endpoint. If len is above the inject size, omits FI_INJECT, because the
 * core would reject the call.
 */
static inline uint64_t duo_onesided_defaults(const struct duo_ep *ep,
					     size_t len)
{
	return ep->tx.op_flags & ~(len > ep->inject_size ? FI_INJECT : 0);
}

#endif /* DUO_ONESIDED_H */
