/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What rma.c and atomic.c share: who carries an operation. Keys, addresses in
 * memory and descriptors are the core's; near knows regions under the core's
 * keys and needs no descriptors. Over the core no lock is taken: what the
 * core's threading level asks for, the application keeps.
 */
#ifndef DUO_ONESIDED_H
#define DUO_ONESIDED_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "av/route.h"
#include "obj/ep.h"
#include "peer/near/near_ep.h"
#include "peer/near/onesided.h"
#include "tx/send.h"

extern struct fi_ops_rma duo_rma_ops;
extern struct fi_ops_atomic duo_atomic_ops;

/* rma.c, atomic.c: what short_rma.c leaves to them */
ssize_t duo_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
		 fi_addr_t peer, uint64_t raddr, uint64_t key, void *context);
ssize_t duo_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
		  fi_addr_t peer, uint64_t raddr, uint64_t key, void *context);
ssize_t duo_inject_write(struct fid_ep *ep, const void *buf, size_t len,
			 fi_addr_t peer, uint64_t raddr, uint64_t key);
ssize_t duo_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count,
			 void *desc, void *result, void *result_desc,
			 fi_addr_t peer, uint64_t raddr, uint64_t key,
			 enum fi_datatype datatype, enum fi_op op,
			 void *context);
/* short_rma.c */
ssize_t duo_short_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
		       fi_addr_t src, uint64_t raddr, uint64_t key,
		       void *context);
ssize_t duo_short_write(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest, uint64_t raddr,
			uint64_t key, void *context);
ssize_t duo_short_inject_write(struct fid_ep *ep, const void *buf, size_t len,
			       fi_addr_t dest, uint64_t raddr, uint64_t key);
ssize_t duo_short_fetch(struct fid_ep *ep, const void *buf, size_t count,
			void *desc, void *result, void *result_desc,
			fi_addr_t dest, uint64_t raddr, uint64_t key,
			enum fi_datatype type, enum fi_op op, void *context);

static inline int duo_onesided_core(struct duo_ep *ep, fi_addr_t dest,
				    struct duo_onesided *to)
{
	to->ep = ep->path_ep[FI_DUO_CORE];
	to->path = FI_DUO_CORE;
	return duo_route_onesided(ep, dest, &to->addr);
}

/*
 * Chooses the path; for near, takes the domain's lock. args: what near needs
 * to know of the operation to say whether it does it: all but buffers.
 */
static inline int duo_onesided_begin(struct duo_ep *ep, fi_addr_t dest,
				     const struct near_rma_args *args,
				     struct duo_onesided *to)
{
	if (ep->near && ep->near->onesided)
		return duo_near_onesided_begin(ep, dest, args, to);
	return duo_onesided_core(ep, dest, to);
}

/*
 * Releases what duo_onesided_begin() took; counts, by path; has the core
 * polled for the completion; passes ret on.
 */
static inline ssize_t duo_onesided_end(struct duo_ep *ep,
				       const struct duo_onesided *to,
				       uint64_t *ops, ssize_t ret)
{
	ops += to->path;
	if (!ret && (to->path == FI_DUO_LOCAL || !ep->domain->lock.on))
		++*ops;
	else if (!ret)
		__atomic_fetch_add(ops, 1, __ATOMIC_RELAXED);
	if (to->path == FI_DUO_LOCAL) {
		duo_unlock(&ep->domain->lock);
		return ret;
	}
	duo_tx_core_called(ep);
	return ret;
}

#endif /* DUO_ONESIDED_H */
