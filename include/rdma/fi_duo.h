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
	FI_DUO_CORE, /* the core provider: efa, tcp, ... */
	FI_DUO_LOCAL,		/* shared memory: near, or libfabric's shm */
	FI_DUO_PATH_COUNT
};

/*
 * Reason why an address has its path. Each comment begins with the path: core,
 * local, none (sends fail) or any (the path is undecided). A record is the file
 * by which processes of a host find an endpoint.
 */
enum fi_duo_reason {
	FI_DUO_OK, /* local: the peer has a record and is alive */
	/*
	 * any: nothing was sent to the address yet, or the endpoint that had
	 * the address was closed. The next send takes the local path if the
	 * address has a record, else the core.
	 */
	FI_DUO_UNDECIDED,
	FI_DUO_NOT_REGISTERED,	/* core: no record at the first send */
	FI_DUO_EXITED,		/* none: the address's process has exited */
	/*
	 * core: the peer has another namespace (pid, network, ...), another
	 * mount on /dev/shm, or another version of ofi_duo or libfabric. With
	 * the local transport shm, a further cause: the peer is in this process
	 */
	FI_DUO_NAMESPACE,
	/* core: this endpoint has no space for another peer */
	FI_DUO_NO_PEER_SLOT,
	FI_DUO_LOCAL_OFF,	/* core: this endpoint has no local path */
	/* core: the record is invalid, or belongs to another user */
	FI_DUO_BAD_RECORD,
	/*
	 * core: this process lacks a file descriptor or memory to open the
	 * record
	 */
	FI_DUO_RECORD_UNREADABLE,
	/*
	 * core: one of the two processes cannot map the other's memory, or the
	 * peer has no free ring
	 */
	FI_DUO_NOT_MAPPED,
	/* core: the peer has another value of the parameter FI_OFI_DUO_LOCAL */
	FI_DUO_TRANSPORT_MISMATCH,
	/*
	 * core: this endpoint uses FI_FENCE or an order between messages and
	 * RMA, and the peer supports no RMA over the local path
	 */
	FI_DUO_ORDER_UNSUPPORTED,
	FI_DUO_REASON_COUNT
};

/* Messages are operations of FI_MSG and FI_TAGGED. Bytes are payload only. */
struct fi_duo_path_stats {
	uint64_t tx_msgs;	/* sends that the path has accepted */
	uint64_t tx_bytes;
	/* successful receives that do not discard a message (FI_DISCARD) */
	uint64_t rx_msgs;
	uint64_t rx_bytes;
};

struct fi_duo_stats {
	struct fi_duo_path_stats path[FI_DUO_PATH_COUNT];
	/* receives that ofi_duo has taken back from the core, by fi_cancel */
	uint64_t recall_ok;
	/* receives not taken back, because the core had matched them */
	uint64_t recall_lost;
	uint64_t unexpected;	/* unexpected messages of the local path */
	uint64_t core_posted;	/* receives posted to the core */
	/*
	 * receives in core_posted that had been deferred, because a local
	 * message might have matched them
	 */
	uint64_t deferred_posted;
	uint64_t core_polls;	/* reads of the core's CQ */
	/* operations of FI_RMA and FI_ATOMIC that each path has accepted */
	uint64_t rma_ops[FI_DUO_PATH_COUNT];
	uint64_t atomic_ops[FI_DUO_PATH_COUNT];
	/*
	 * The device_ counters: messages and RMA over the local path, from or
	 * to device memory.
	 */
	uint64_t device_tx_msgs;
	uint64_t device_rx_msgs; /* including failed receives */
	/*
	 * RMA operations that this endpoint has initiated, with device memory
	 * at either end. Includes the reads by which this endpoint receives
	 * large messages from or to device memory.
	 */
	uint64_t device_rma_ops;
	/*
	 * the part of device_rma_ops with data that a device has copied
	 * directly, because one process has mapped the other's memory; the data
	 * of the other operations went through host memory
	 */
	uint64_t device_rma_mapped;
};

/*
 * stats() and path() return 0 or a negative fabric errno. ep must be the
 * endpoint whose fi_open_ops() has returned these operations.
 */
struct fi_ops_duo {
	size_t size;
	/*
	 * Copies min(len, sizeof(struct fi_duo_stats)) bytes to *stats:
	 * programs built with an older header continue to work.
	 */
	int (*stats)(struct fid_ep *ep, struct fi_duo_stats *stats, size_t len);
	/*
	 * Stores the path of sends to addr, and the reason. If the path is
	 * undecided, stores FI_DUO_CORE and FI_DUO_UNDECIDED, and the path
	 * stays undecided. -FI_EINVAL: addr is not in the endpoint's AV.
	 * -FI_ENOAV: the endpoint has no AV.
	 */
	int (*path)(struct fid_ep *ep, fi_addr_t addr, enum fi_duo_path *path,
		    enum fi_duo_reason *reason);
	/* Returns a static text for the reason; never NULL. */
	const char *(*reason_str)(enum fi_duo_reason reason);
	/*
	 * Returns a static text: the method that copied the data of the last
	 * RMA operation with this peer and device memory, and the reason for
	 * this method. NULL: there was no such operation, or the path to the
	 * peer is not local.
	 */
	const char *(*device_path)(struct fid_ep *ep, fi_addr_t addr);
	/*
	 * Stores the number of operations with device memory that have used a
	 * method of copying. number: the method, counted from 0. Returns the
	 * method's text, as device_path() does; NULL: there is no method with
	 * this number. device_rma_ops is the sum of the counts of all methods
	 * except the method whose text begins with "core:".
	 */
	const char *(*device_count)(struct fid_ep *ep, unsigned int number,
				    uint64_t *count);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_DUO_H */
