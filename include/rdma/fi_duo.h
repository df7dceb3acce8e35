/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Public extension of the ofi_duo provider: which path the traffic of an
 * endpoint took, which path an address takes, and why.
 *
 *	struct fi_ops_duo *ops;
 *	ret = fi_open_ops(&ep->fid, FI_DUO_OPS, 0, (void **) &ops, NULL);
 *	if (!ret)
 *		ret = ops->stats(ep, &stats, sizeof(stats));
 */
#ifndef FI_DUO_H
#define FI_DUO_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_DUO_OPS "ofi_duo_ops_1"

enum fi_duo_path {
	FI_DUO_CORE,		/* the wrapped provider, e.g. efa */
	FI_DUO_LOCAL,		/* shared memory: near, or libfabric's shm */
	FI_DUO_PATH_COUNT
};

/* Why an address takes its path. */
enum fi_duo_reason {
	FI_DUO_REGISTERED,	/* local: a live record in the registry */
	FI_DUO_UNDECIDED,	/* no send yet: local if it appears before */
	FI_DUO_NOT_REGISTERED,	/* core: no record at the first send */
	FI_DUO_DEAD,		/* core: the record's owner has died */
	FI_DUO_NAMESPACE,	/* core: other namespace, /dev/shm mount or
				 * libfabric version */
	FI_DUO_PEER_FULL,	/* core: one of the two holds no more peers */
	FI_DUO_LOCAL_OFF,	/* core: this endpoint has no local path */
	FI_DUO_BAD_RECORD,	/* core: malformed or foreign record */
	FI_DUO_NOT_READ,	/* core: the record could not be opened, for
				 * want of file descriptors or memory */
	FI_DUO_NOT_MAPPED,	/* core: its shared memory cannot be mapped,
				 * or ours there */
	FI_DUO_OTHER_PEER,	/* core: FI_OFI_DUO_LOCAL is another there */
	FI_DUO_NO_ORDER,	/* core: it takes no RMA over the local path,
				 * and messages must keep an order with RMA */
	FI_DUO_REASON_COUNT
};

/* Messages are operations of FI_MSG and FI_TAGGED; bytes are payload. */
struct fi_duo_path_stats {
	uint64_t tx_msgs;	/* sends that the path has accepted */
	uint64_t tx_bytes;
	uint64_t rx_msgs;	/* receives completed, without errors and
				 * without what was discarded */
	uint64_t rx_bytes;
};

struct fi_duo_stats {
	struct fi_duo_path_stats path[FI_DUO_PATH_COUNT];
	uint64_t arb_won;	/* a local message took a receive back from
				 * the core */
	uint64_t arb_lost;	/* the core had matched it already */
	uint64_t unexpected;	/* local messages that found no receive */
	uint64_t core_posted;	/* receives posted to the core */
	uint64_t lazy_posted;	/* of these: late, when no local one came */
	uint64_t core_polls;	/* reads of the core's CQ */
	/* operations of FI_RMA and FI_ATOMIC that the path has accepted */
	uint64_t rma_ops[FI_DUO_PATH_COUNT];
	uint64_t atomic_ops[FI_DUO_PATH_COUNT];
};

/*
 * Every function returns 0 or a negative fabric errno. ep is the endpoint
 * that fi_open_ops was called on.
 */
struct fi_ops_duo {
	size_t size;
	/*
	 * Copies min(len, sizeof(struct fi_duo_stats)) bytes, so a program
	 * built against an older header goes on working.
	 */
	int (*stats)(struct fid_ep *ep, struct fi_duo_stats *stats, size_t len);
	/*
	 * The path that sends to addr take. Asking decides nothing.
	 * -FI_EINVAL: addr is not in the endpoint's AV; -FI_ENOAV: no AV.
	 */
	int (*path)(struct fid_ep *ep, fi_addr_t addr, enum fi_duo_path *path,
		    enum fi_duo_reason *reason);
	/* A few words for people; never NULL. */
	const char *(*reason_str)(enum fi_duo_reason reason);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_DUO_H */
