/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * libfabric's RMA and atomic calls, brought into the form of rma/rma.h. Who
 * embeds near puts the tables into an endpoint of his and defines the two
 * functions below; near's own provider and ofi_duo do.
 */
#ifndef NEAR_FI_ONESIDED_H
#define NEAR_FI_ONESIDED_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "rma/rma.h"

struct near_onesided_call {
	struct near_rma_args args;	/* without cookie */
	fi_addr_t dest;
	void *context;
	uint64_t flags;		/* FI_RMA or FI_ATOMIC, FI_READ or FI_WRITE,
				 * and the call's */
	bool inject;		/* a success is not reported */
};

/* What a completion says of it. */
#define NEAR_ONESIDED_FLAGS (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)

static_assert((NEAR_ONESIDED_FLAGS | FI_COMPLETION) <= UINT32_MAX,
	      "they fit into near_rma_args.about");

/* For near_rma_args.about: what near_rma_sink.done() is to make of it. */
static inline uint32_t near_onesided_about(const struct near_onesided_call *call,
					   bool report)
{
	return (uint32_t)((call->flags & NEAR_ONESIDED_FLAGS) |
			  (report ? FI_COMPLETION : 0));
}

/* The embedder's. What fi_rma(3) returns. */
ssize_t near_onesided_issue(struct fid_ep *ep,
			    struct near_onesided_call *call);
/* Flags of calls that have none. */
uint64_t near_onesided_tx_flags(const struct fid_ep *ep);

extern struct fi_ops_rma near_rma_ops;
extern struct fi_ops_atomic near_atomic_ops;

/* Entries of theirs that an embedder may try to do in a shorter way. */
ssize_t near_rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
		      fi_addr_t src, uint64_t addr, uint64_t key,
		      void *context);
ssize_t near_rma_write(struct fid_ep *ep, const void *buf, size_t len,
		       void *desc, fi_addr_t dest, uint64_t addr, uint64_t key,
		       void *context);
ssize_t near_rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			fi_addr_t dest, uint64_t addr, uint64_t key);
ssize_t near_atomic_fetch(struct fid_ep *ep, const void *buf, size_t count,
			  void *desc, void *result, void *result_desc,
			  fi_addr_t dest, uint64_t addr, uint64_t key,
			  enum fi_datatype type, enum fi_op op,
			  void *context);

/* Orders between messages and one-sided operations. */
#define NEAR_ORDER_MIXED \
	(FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW)

/*
 * Checks the numbers of buffers and sets args.flags; msg_order is that of the
 * endpoint. 0 or -FI_EINVAL.
 */
int near_onesided_prepare(struct near_onesided_call *call, uint64_t msg_order);
/* near_rma()'s error is what a target would say: it comes as a completion. */
bool near_onesided_reported(int ret);
/* Does near have the operation? */
bool near_atomic_ok(enum near_verb verb, enum fi_datatype type, enum fi_op op);
int near_query_atomic(struct fid_domain *domain, enum fi_datatype type,
		      enum fi_op op, struct fi_atomic_attr *attr,
		      uint64_t flags);

#endif /* NEAR_FI_ONESIDED_H */
