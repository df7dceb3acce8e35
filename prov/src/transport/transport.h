/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local transports, which carry messages within a host: near (transport/near)
 * and libfabric's shm (shm/). The layers above call a transport by struct
 * duo_transport, except for near's fast paths. The registry record of an
 * endpoint has the kind of its transport and its address at this transport. Two
 * endpoints use the transport only if both have the same kind.
 *
 * The part of an endpoint that belongs to the transport is its *local side*. A
 * send names the peer by the peer index that connect() has returned. Messages
 * and completions arrive in polls.
 *
 * Cost: an indirect call per poll and send. Locks that the caller must hold:
 * - open(), enable(), count(), close(): all locks of the domain; fi_endpoint
 *   calls open() without a lock, because no other thread has the endpoint yet
 * - fabric_open(), domain_open(), cq_open(), cntr_open(), reap(), sweep(): none
 * - other functions: the lock of the group of the endpoint or CQ
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

/* Limits. fi_getinfo returns the smaller of each limit and the core's limit. */
struct duo_transport_limits {
	size_t inject_size;	/* longest injected message, bytes */
	size_t iov_limit;
	size_t queue;		/* pending operations, in each direction */
	size_t cq_data_size;	/* bytes of remote CQ data */
};

struct duo_transport {
	/* value of FI_OFI_DUO_LOCAL for this transport */
	const char *name;
	struct duo_transport_limits limits;
	/* Resources that a local side requires, as text for a warning. */
	const char *takes;
	/* Both ends must use the same version of libfabric. */
	bool same_libfabric;
	/*
	 * A user's endpoints must start one after another: each first tests
	 * whether there is space, and then allocates the space, which no other
	 * endpoint must take in between.
	 */
	bool exclusive_start;
	/* Carries messages in device memory, see device/device.h. */
	bool device;
	/*
	 * Open the transport's objects, and store them in
	 * path_*[FI_DUO_LOCAL]. A function is NULL if the transport has no such
	 * object. If fabric_open() or domain_open() fails, it logs a warning,
	 * and the core carries all messages.
	 */
	int (*fabric_open)(struct duo_fabric *fabric);
	int (*domain_open)(struct duo_domain *domain);
	int (*cq_open)(struct duo_cq *cq, size_t size);
	int (*cntr_open)(struct duo_cntr *cntr);
	/* Opens the local side. Sets its part of the record ep->publication. */
	int (*open)(struct duo_ep *ep);
	/*
	 * Enables the local side and stores it in path_ep[FI_DUO_LOCAL]. The
	 * caller has created the endpoint's record and map before.
	 */
	int (*enable)(struct duo_ep *ep);
	/* Binds a counter to an endpoint that is already enabled. */
	int (*count)(const struct duo_cntr_bind *bind);
	/* Polls all endpoints of the CQ. Returns 0 if there was no progress. */
	uint32_t (*poll)(struct duo_cq *cq);
	/*
	 * True if this process and the endpoint's peers oversubscribe the CPUs
	 * of this thread. endpoints: number of registry records on this host,
	 * those of other processes included.
	 */
	bool (*oversubscribed)(const struct duo_ep *ep, size_t endpoints);
	/*
	 * Sleeping, see cq/wait.c. arm() returns
	 * - 0: the next event makes the CQ's wait object readable
	 * - -FI_EAGAIN: there is an event; the caller must poll instead
	 *
	 * woken() ends a sleep. True: the transport has signaled an event, and
	 * is not armed any more. The caller must then wake the other sleeping
	 * threads; each must call arm() again before it sleeps.
	 *
	 * Both are NULL if the transport cannot wake threads.
	 */
	int (*arm)(struct duo_ep *ep);
	bool (*woken)(struct duo_ep *ep);
	/* Sends queued messages. fi_close calls drain() first. */
	void (*drain)(struct duo_ep *ep);
	/* Closes the local side. Permitted after an error of open(), too. */
	void (*close)(struct duo_ep *ep);
	/*
	 * Starts to receive rx, a message that has arrived, into the buffers of
	 * recv. Returns 0 or -errno. An error changes nothing.
	 */
	int (*start)(struct duo_rx *rx, const struct duo_recv *recv);
	/*
	 * Connects to a peer. name: peer_name of the peer's record. addr: for
	 * log messages. Returns the peer index, the same at each call, or
	 * FI_ADDR_NOTAVAIL: not reachable. *reason must be FI_DUO_OK before the
	 * call. After the call, if the function has returned an index:
	 * - FI_DUO_OK: sends to the peer may use this transport
	 * - another value: the peer may send over this transport, but sends to
	 *   the peer must use the core
	 */
	fi_addr_t (*connect)(struct duo_ep *ep, const char *name,
			     fi_addr_t addr, enum fi_duo_reason *reason);
	/* True if the peer's process is known to exist. */
	bool (*exists)(const struct duo_ep *ep, fi_addr_t index);
	/*
	 * Monitors a peer: if the peer fails, posted receives that name the
	 * peer end in an error. NULL: not supported.
	 */
	void (*monitor)(struct duo_ep *ep, fi_addr_t index);
	/*
	 * Remove files that failed processes have left; NULL: there are none.
	 * reap() removes the file with this name, the peer_name of a record.
	 * sweep() finds and removes further files: near's sockets in the
	 * directory dir, or shm's regions with pid_ns in their names.
	 */
	void (*reap)(const char *name);
	void (*sweep)(int dir, uint64_t pid_ns);
};

extern const struct duo_transport duo_transport_shm, duo_transport_near;
extern const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS];

#endif /* DUO_TRANSPORT_H */
