/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics. duo_onesided_any() passes an operation to near, or returns
 * DUO_TO_CORE: then the caller must pass it to the core, without a lock. Keys,
 * addresses and descriptors are the core's.
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
/* near_rma_args.verb for several remote buffers, which near cannot handle */
#define DUO_SEVERAL NEAR_VERBS

extern struct fi_ops_rma duo_rma_ops;
extern struct fi_ops_atomic duo_atomic_ops;

/*
 * Checks the address of an operation that near cannot execute. Returns
 * - DUO_TO_CORE: the address is valid
 * - -FI_EINVAL: dest is not in the AV, or the core carries no data
 * - -FI_EOPBADSTATE: the endpoint is not enabled
 */
int duo_onesided_core(struct duo_ep *ep, fi_addr_t dest);
/*
 * Takes the group's lock and passes an operation to near. Returns 0 if near has
 * accepted the operation, DUO_TO_CORE, or an error. flags: flags of the call.
 * quiet: a success has no completion (injects). Changes *op.
 */
int duo_onesided_any(struct duo_ep *ep, fi_addr_t dest,
		     struct near_rma_args *op, uint64_t flags, bool quiet);

/*
 * The fast path for small operations. An operation with NEAR_RMA_COPY is an
 * inject, which has no completion. True: near has the operation. False: nothing
 * has changed; the caller must take the slow path.
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
	/* tests again, with the lock: another peer may have this index now */
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
 * Must follow each operation of the core. Counts the operation if the core's
 * result, ret, is 0. Renews the core poll budget. Returns ret.
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
 * Returns the flags for calls without a flags argument. Omits FI_INJECT if len
 * is above the inject size, because the core would reject the call.
 */
static inline uint64_t duo_onesided_defaults(const struct duo_ep *ep,
					     size_t len)
{
	return ep->tx.op_flags & ~(len > ep->inject_size ? FI_INJECT : 0);
}

#endif /* DUO_ONESIDED_H */
