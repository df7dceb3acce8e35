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
	FI_DUO_CORE, /* the core provider, which ofi_duo wraps: efa, tcp, ... */
	FI_DUO_LOCAL,		/* shared memory: near, or libfabric's shm */
	FI_DUO_PATH_COUNT
};

/*
 * The reason why an address has its path. Each comment begins with the path,
 * unless the path is undecided; "none": sends fail. "Record": the file by which
 * ofi_duo finds an endpoint on the same host.
 */
enum fi_duo_reason {
	FI_DUO_OK, /* local: the peer has a record, and its process exists */
	/*
	 * no message was sent to the address yet; the first send takes the
	 * local path if it finds a record, else the core
	 */
	FI_DUO_UNDECIDED,
	FI_DUO_NOT_REGISTERED,	/* core: the address had no record at the first
				 * send */
	FI_DUO_EXITED,		/* none: the address's process has exited */
	FI_DUO_NAMESPACE,	/* core: the peer has another namespace, mount
				 * of /dev/shm or version of libfabric */
	FI_DUO_NO_PEER_SLOT,	/* core: one of the two endpoints has reached
				 * its limit of peers */
	FI_DUO_LOCAL_OFF,	/* core: this endpoint has no local path */
	FI_DUO_BAD_RECORD, /* core: the record is invalid, or another user's */
	FI_DUO_RECORD_UNREADABLE, /* core: there was no file descriptor or
				   * memory to open the record */
	FI_DUO_NOT_MAPPED,	/* core: one of the two processes cannot map the
				 * other's shared memory */
	FI_DUO_TRANSPORT_MISMATCH, /* core: the peer has another
				    * FI_OFI_DUO_LOCAL */
	/*
	 * core: FI_FENCE or an order between messages and RMA is in force, and
	 * the peer supports no RMA over the local path
	 */
	FI_DUO_ORDER_UNSUPPORTED,
	FI_DUO_REASON_COUNT
};

/* Messages are operations of FI_MSG and FI_TAGGED. Bytes are payload only. */
struct fi_duo_path_stats {
	uint64_t tx_msgs;	/* sends that the path has accepted */
	uint64_t tx_bytes;
	uint64_t rx_msgs;	/* receives that have completed without error,
				 * except discarded messages */
	uint64_t rx_bytes;
};

struct fi_duo_stats {
	struct fi_duo_path_stats path[FI_DUO_PATH_COUNT];
	/*
	 * receives that ofi_duo has recalled from the core, for a local message
	 * or because of fi_cancel()
	 */
	uint64_t recall_ok;
	uint64_t recall_lost;	/* recalls that failed, because the core had
				 * matched the receive */
	uint64_t unexpected;	/* local messages that arrived before a matching
				 * receive */
	uint64_t core_posted;	/* receives posted to the core */
	/*
	 * receives in core_posted that were deferred because a local message
	 * might have matched them
	 */
	uint64_t deferred_posted;
	uint64_t core_polls;	/* reads of the core's CQ */
	/* operations of FI_RMA and FI_ATOMIC that each path has accepted */
	uint64_t rma_ops[FI_DUO_PATH_COUNT];
	uint64_t atomic_ops[FI_DUO_PATH_COUNT];
	/*
	 * Messages and RMA over the local path, from or to device memory
	 */
	uint64_t device_tx_msgs;
	uint64_t device_rx_msgs; /* received messages, with or without
				  * success */
	/*
	 * RMA operations that this endpoint has initiated, with device memory
	 * at the initiator, the target, or both; and large messages from or to
	 * device memory that this endpoint has read
	 */
	uint64_t device_rma_ops;
	/*
	 * operations in device_rma_ops that a device has copied directly,
	 * because one of the two processes has mapped the other's memory; the
	 * others went through host memory
	 */
	uint64_t device_rma_mapped;
};

/*
 * stats() and path() return 0 or a negative fabric errno; the other functions
 * return static text. ep must be the endpoint for which fi_open_ops() has
 * returned these operations.
 */
struct fi_ops_duo {
	size_t size;
	/*
	 * Copies min(len, sizeof(struct fi_duo_stats)) bytes to *stats, so that
	 * programs built with an older header continue to work.
	 */
	int (*stats)(struct fid_ep *ep, struct fi_duo_stats *stats, size_t len);
	/*
	 * Stores the path of sends to addr, and the reason. Does not decide an
	 * undecided path: stores FI_DUO_CORE and FI_DUO_UNDECIDED. -FI_EINVAL:
	 * addr is not in the endpoint's AV. -FI_ENOAV: the endpoint has no AV.
	 */
	int (*path)(struct fid_ep *ep, fi_addr_t addr, enum fi_duo_path *path,
		    enum fi_duo_reason *reason);
	/* Returns a text for the reason; never NULL. */
	const char *(*reason_str)(enum fi_duo_reason reason);
	/*
	 * Returns a text that describes how ofi_duo copied the last RMA
	 * operation with device memory to this local peer, and why. NULL: there
	 * was none, or addr is not a local peer.
	 */
	const char *(*device_path)(struct fid_ep *ep, fi_addr_t addr);
	/*
	 * Stores the number of operations with device memory that were copied
	 * by the method `number`: 0, 1 and so on. One of the methods is the
	 * core, whose operations device_rma_ops does not count. Returns the
	 * text of this method, as device_path() does. NULL: there is no method
	 * with this number.
	 */
	const char *(*device_count)(struct fid_ep *ep, unsigned int number,
				    uint64_t *count);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_DUO_H */
