/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local transports, which carry messages within a host: near (transport/near)
 * and libfabric's shm (shm/). Only fi/ distinguishes them. Both ends must use
 * the same transport. The record of an endpoint has the transport's kind and
 * the endpoint's address there.
 *
 * A send calls path_ep[FI_DUO_LOCAL] with the peer index that connect() has
 * returned. Messages and completions arrive in polls.
 *
 * Cost: an indirect call per poll and send. Lock: the group's, and all locks of
 * the domain for open(), enable(), count() and close(). None for fabric_open(),
 * domain_open(), reap() and sweep().
 */
#ifndef DUO_TRANSPORT_H
#define DUO_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_duo.h>

struct duo_cntr;
struct duo_cntr_bind;
struct duo_cq;
struct duo_domain;
struct duo_ep;
struct duo_fabric;
struct duo_recv;
struct duo_rx;

/* Values in registry records. They must not change. */
enum duo_transport_kind {
	DUO_TRANSPORT_SHM,
	DUO_TRANSPORT_NEAR,
	DUO_TRANSPORT_KINDS
};

/* Limits. fi_getinfo returns the smaller of a limit here and the core's. */
struct duo_transport_limits {
	size_t inject_size;	/* bytes of an injected message */
	size_t iov_limit;
	size_t queue;		/* pending operations, in each direction */
	size_t cq_data_size;	/* bytes of remote CQ data */
};

struct duo_transport {
	/* value of FI_OFI_DUO_LOCAL */
	const char *name;
	struct duo_transport_limits limits;
	/* Resources that a local side requires, as text for a warning. */
	const char *takes;
	/* Both ends must use the same version of libfabric. */
	bool same_libfabric;
	/*
	 * A user's endpoints must start one after another, because each of them
	 * tests for free space before it allocates the space.
	 */
	bool exclusive_start;
	/* Carries messages in device memory, see device/device.h. */
	bool device;
	/*
	 * Open the transport's objects at path_*[FI_DUO_LOCAL]; NULL: the
	 * transport has no such object. fabric_open() and domain_open() log a
	 * warning before they return an error; then the core carries all
	 * messages.
	 */
	int (*fabric_open)(struct duo_fabric *fabric);
	int (*domain_open)(struct duo_domain *domain);
	int (*cq_open)(struct duo_cq *cq, size_t size);
	int (*cntr_open)(struct duo_cntr *cntr);
	/* Opens the local side, and fills in its part of ep->publication. */
	int (*open)(struct duo_ep *ep);
	/* Sets path_ep[FI_DUO_LOCAL], when record and map exist. */
	int (*enable)(struct duo_ep *ep);
	/* Binds a counter to an endpoint that is already enabled. */
	int (*count)(const struct duo_cntr_bind *bind);
	/* Polls all endpoints of the CQ. Returns 0 if there was no progress. */
	uint32_t (*poll)(struct duo_cq *cq);
	/*
	 * True if this process and the endpoint's peers oversubscribe the CPUs
	 * of this thread. endpoints: number of records on this host, of peers
	 * and of other processes.
	 */
	bool (*oversubscribed)(const struct duo_ep *ep, size_t endpoints);
	/*
	 * Sleeping, see cq/wait.c. After arm() has returned 0, an arrival makes
	 * the CQ's wait object readable; -FI_EAGAIN: the caller must poll
	 * instead. woken() ends a sleep. True: the transport has signaled an
	 * event, and is not armed any more. The caller must then wake the other
	 * threads, which must arm again. NULL: the transport cannot wake
	 * threads.
	 */
	int (*arm)(struct duo_ep *ep);
	bool (*woken)(struct duo_ep *ep);
	/* Sends messages that are queued, before fi_close. */
	void (*drain)(struct duo_ep *ep);
	/* Closes the local side, also if it was opened in part. */
	void (*close)(struct duo_ep *ep);
	/* Receives an unexpected message. Errors change nothing. */
	int (*start)(struct duo_rx *rx, const struct duo_recv *recv);
	/*
	 * Connects to the peer with this name, which its record has. Returns
	 * the peer index, the same at each call. FI_ADDR_NOTAVAIL: not
	 * reachable; *reason is set. If there is an index and *reason is not
	 * FI_DUO_OK, the peer may send over this transport, but the core
	 * carries sends to the peer. addr: for log messages.
	 */
	fi_addr_t (*connect)(struct duo_ep *ep, const char *name,
			     fi_addr_t addr, enum fi_duo_reason *reason);
	/* True if the peer's process is known to exist. */
	bool (*exists)(const struct duo_ep *ep, fi_addr_t index);
	/* Monitors a peer; if the peer fails, receives from it end. Or NULL. */
	void (*monitor)(struct duo_ep *ep, fi_addr_t index);
	/*
	 * Remove files that failed processes have left; NULL: there are none.
	 * reap() removes the file with this name, the peer_name of a record.
	 * sweep() removes files without a record: near's sockets, which are in
	 * the directory dir, or shm's regions, whose names contain pid_ns.
	 */
	void (*reap)(const char *name);
	void (*sweep)(int dir, uint64_t pid_ns);
};

extern const struct duo_transport duo_transport_shm, duo_transport_near;
extern const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS];

#endif /* DUO_TRANSPORT_H */
