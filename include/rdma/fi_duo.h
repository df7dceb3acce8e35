/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Public extension of the ofi_duo provider: statistics of an endpoint by path,
 * and the path of an address with its reason.
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

/* Why an address has its path. */
enum fi_duo_reason {
	FI_DUO_OK,		/* local: the peer has a record and is alive */
	FI_DUO_UNDECIDED,	/* nothing was sent to it; still local if its
				 * record appears before the first send */
	FI_DUO_NOT_REGISTERED,	/* core: no record at the first send */
	FI_DUO_DEAD,		/* core: the record's process has exited */
	FI_DUO_NAMESPACE,	/* core: another namespace, /dev/shm mount or
				 * libfabric version */
	FI_DUO_NO_PEER_SLOT,	/* core: one of the endpoints has reached its
				 * limit of peers */
	FI_DUO_LOCAL_OFF,	/* core: this endpoint has no local path */
	FI_DUO_BAD_RECORD,	/* core: invalid record, or one of another
				 * user */
	FI_DUO_RECORD_UNREADABLE, /* core: no file descriptor or memory to open
				   * the record */
	FI_DUO_NOT_MAPPED,	/* core: one of the processes cannot map the
				 * other's shared memory */
	FI_DUO_TRANSPORT_MISMATCH, /* core: FI_OFI_DUO_LOCAL differs */
	FI_DUO_ORDER_UNSUPPORTED, /* core: the peer supports no RMA over the
				   * local path, and an order between messages
				   * and RMA is in force */
	FI_DUO_REASON_COUNT
};

/* Messages are operations of FI_MSG and FI_TAGGED; bytes are payload. */
struct fi_duo_path_stats {
	uint64_t tx_msgs;	/* sends that the path has accepted */
	uint64_t tx_bytes;
	uint64_t rx_msgs;	/* receives completed without an error, not
				 * counting discarded messages */
	uint64_t rx_bytes;
};

struct fi_duo_stats {
	struct fi_duo_path_stats path[FI_DUO_PATH_COUNT];
	uint64_t recall_ok;	/* receives taken back from the core, for a
				 * local message or fi_cancel */
	uint64_t recall_lost;	/* recalls that came after the core's match */
	uint64_t unexpected;	/* local messages without a posted receive */
	uint64_t core_posted;	/* receives posted to the core */
	uint64_t deferred_posted; /* of these: after deferral for local
				   * messages */
	uint64_t core_polls;	/* reads of the core's CQ */
	/* operations of FI_RMA and FI_ATOMIC that the path has accepted */
	uint64_t rma_ops[FI_DUO_PATH_COUNT];
	uint64_t atomic_ops[FI_DUO_PATH_COUNT];
	/* local ones of device memory, which are copied through host memory */
	uint64_t device_tx_msgs;
	uint64_t device_rx_msgs; /* copied, whether with success or not */
	uint64_t device_rma_ops; /* at either end */
};

/*
 * Every function returns 0 or a negative fabric errno. ep is the endpoint
 * that fi_open_ops was called on.
 */
struct fi_ops_duo {
	size_t size;
	/*
	 * Copies min(len, sizeof(struct fi_duo_stats)) bytes, so that a
	 * program that was built with an older header keeps working.
	 */
	int (*stats)(struct fid_ep *ep, struct fi_duo_stats *stats, size_t len);
	/*
	 * Returns the path of sends to addr, without deciding it.
	 * -FI_EINVAL: addr is not in the endpoint's AV; -FI_ENOAV: no AV.
	 */
	int (*path)(struct fid_ep *ep, fi_addr_t addr, enum fi_duo_path *path,
		    enum fi_duo_reason *reason);
	/* Returns a description of the reason, never NULL. */
	const char *(*reason_str)(enum fi_duo_reason reason);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_DUO_H */
