/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics. Each call of libfabric writes down once what it asks for, as
 * a struct near_rma_args; duo_onesided() finds out who carries it, and gives it
 * to near, or says that the call is to be forwarded to the core. Keys,
 * addresses in memory and descriptors are the core's; near knows regions under
 * the core's keys, and needs the descriptors of device memory only: the bufs of
 * an op have descriptors as device, until duo_onesided_any() has looked them up.
 * Over the core no lock is taken:
 * what the core's threading level asks for, the application keeps.
 *
 * Cost: a small write, read or fetch-and-add goes into the peer's ring inline,
 * some 280 instructions; others take a call or two more.
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

/* duo_onesided(): the core is to be called. */
#define DUO_TO_CORE 1
/* near_rma_args.verb: any verb with several remote buffers; near has none. */
#define DUO_SEVERAL NEAR_VERBS

extern struct fi_ops_rma duo_rma_ops;
extern struct fi_ops_atomic duo_atomic_ops;

/* What fi_rma(3) returns, or DUO_TO_CORE; *dest is the core's address then. */
int duo_onesided_core(struct duo_ep *ep, fi_addr_t *dest);
/*
 * Likewise; the operation is near's, begun or over, where it is neither. flags:
 * the call's. quiet: only an error is reported. It completes op.
 */
int duo_onesided_any(struct duo_ep *ep, fi_addr_t *dest,
		     struct near_rma_args *op, uint64_t flags, bool quiet);

/*
 * By near, if it is small, and if no flag or order asks for more. false: nothing
 * has been done. What is injected, by NEAR_RMA_COPY, is not reported.
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
			  !(word = duo_send_route(ep, dest))))
		return false;
	duo_lock(&ep->domain->lock);
	peer = near->peer[duo_route_number(word)];
	if (near_likely(peer && near->small & duo_near_small(&op))) {
		if (!op.flags && near->tx_reports)
			op.about |= (uint32_t) FI_COMPLETION;
		done = near_rma_small(near->port, peer, &op);
	}
	if (near_likely(done))
		(op.about & FI_ATOMIC ? ep->stats.atomic_ops :
					ep->stats.rma_ops)[FI_DUO_LOCAL]++;
	duo_unlock(&ep->domain->lock);
	return done;
}

/* After a call of the core's that returned ret, which it passes on. */
static inline ssize_t duo_onesided_called(struct duo_ep *ep, uint64_t *ops,
					  ssize_t ret)
{
	ops += FI_DUO_CORE;
	if (!ret && !ep->domain->lock.on)
		++*ops;
	else if (!ret)
		__atomic_fetch_add(ops, 1, __ATOMIC_RELAXED);
	duo_tx_core_called(ep);
	return ret;
}

/*
 * The flags of a call that has none. The core gets them as those of a *msg call,
 * which takes FI_INJECT at its word: not for more than may be injected.
 */
static inline uint64_t duo_onesided_defaults(const struct duo_ep *ep, size_t len)
{
	return ep->tx.op_flags & ~(len > ep->inject_size ? FI_INJECT : 0);
}

#endif /* DUO_ONESIDED_H */
