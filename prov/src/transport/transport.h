/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local transports: near (transport/near) and libfabric's shm (shm/). Upper
 * layers call them through duo_transport; only near's fast paths are called
 * directly. Two endpoints use a transport only if the records of both contain
 * its enum duo_transport_kind.
 *
 * Locks that the caller must hold:
 * - open(), enable(), count(), close(): all locks of the domain. Exception:
 *   fi_endpoint calls open() without a lock, as no other thread has the
 *   endpoint yet.
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

/* The values must not change: registry records contain them. */
enum duo_transport_kind {
	DUO_TRANSPORT_SHM,
	DUO_TRANSPORT_NEAR,
	DUO_TRANSPORT_KINDS
};

/* Limits. fi_getinfo returns the minimum of these and the core's limits. */
struct duo_transport_limits {
	size_t inject_size;	/* longest injected message, bytes */
	size_t iov_limit;
	size_t queue;		/* pending operations in each direction */
	size_t cq_data_size;	/* bytes of remote CQ data */
};

struct duo_transport {
	/* value of the parameter FI_OFI_DUO_LOCAL for this transport */
	const char *name;
	struct duo_transport_limits limits;
	/* resources that a local side requires, as text for a warning */
	const char *takes;
	/*
	 * true: endpoints of one user must not start at the same time, because
	 * each tests for free space before it allocates the space
	 */
	bool exclusive_start;
	/* true: carries messages from and to device memory (device/device.h) */
	bool device;
	/*
	 * The next four functions open an object of the transport, and store it
	 * in path_*[FI_DUO_LOCAL]. A function is NULL if the transport has no
	 * such object. If fabric_open() or domain_open() fails, the function
	 * logs a warning, and the core carries all messages.
	 */
	int (*fabric_open)(struct duo_fabric *fabric);
	int (*domain_open)(struct duo_domain *domain);
	int (*cq_open)(struct duo_cq *cq, size_t size);
	int (*cntr_open)(struct duo_cntr *cntr);
	/*
	 * Opens the endpoint's local side. Stores its peer_name in
	 * ep->publication. An error requires close(), too.
	 */
	int (*open)(struct duo_ep *ep);
	/*
	 * Enables the local side and stores it in path_ep[FI_DUO_LOCAL]. The
	 * endpoint must have its map, and its record if it uses the registry.
	 */
	int (*enable)(struct duo_ep *ep);
	/* Binds a counter to an enabled endpoint. */
	int (*count)(const struct duo_cntr_bind *bind);
	/* Polls all endpoints of the CQ. Returns 0 if there was no progress. */
	uint32_t (*poll)(struct duo_cq *cq);
	/*
	 * True if local processes oversubscribe the CPUs of this thread.
	 * endpoints: number of records in the user's registry directory.
	 */
	bool (*oversubscribed)(const struct duo_ep *ep, size_t endpoints);
	/*
	 * Prepares a sleep (cq/wait.c). NULL: the transport cannot wake
	 * threads. Returns
	 * - 0: the next event makes the CQ's wait object readable
	 * - -FI_EAGAIN: there is an event; the caller must poll instead
	 */
	int (*arm)(struct duo_ep *ep);
	/*
	 * Ends a sleep. True: the transport has signaled an event and is not
	 * armed any more. The caller must then wake the other sleeping threads.
	 * Each of these threads must call arm() again before it sleeps. NULL if
	 * arm() is NULL.
	 */
	bool (*woken)(struct duo_ep *ep);
	/* Polls before close(), so that pending operations can end. */
	void (*drain)(struct duo_ep *ep);
	void (*close)(struct duo_ep *ep);
	/*
	 * Starts to receive rx, an arrived message, into the buffers of recv.
	 * Returns 0; or -errno, and has changed nothing.
	 */
	int (*start)(struct duo_rx *rx, const struct duo_recv *recv);
	/*
	 * Connects to a peer. name: peer_name of the peer's record. addr: for
	 * log messages. Returns the peer index, which is the same at each call;
	 * FI_ADDR_NOTAVAIL: not reachable, and *reason is the cause.
	 *
	 * *reason must be FI_DUO_OK before the call. If it changes although the
	 * function returns an index, sends to the peer must use the core, but
	 * the peer may send over this transport.
	 */
	fi_addr_t (*connect)(struct duo_ep *ep, const char *name,
			     fi_addr_t addr, enum fi_duo_reason *reason);
	/*
	 * Ends the use of a peer index that connect() has returned: no address
	 * has the index any more. Must not be called in a poll. NULL: the index
	 * stays in use.
	 */
	void (*unbind)(struct duo_ep *ep, fi_addr_t index);
	/*
	 * True if the peer still exists: near monitors the peer and has found
	 * no failure, or shm's region of the peer exists.
	 */
	bool (*exists)(const struct duo_ep *ep, fi_addr_t index);
	/*
	 * Monitors a peer: if the peer fails, posted receives that name the
	 * peer end in an error. NULL: not supported.
	 */
	void (*monitor)(struct duo_ep *ep, fi_addr_t index);
	/*
	 * Removes the file of a failed process. name: peer_name of the
	 * process's record. NULL: the transport has no such files.
	 */
	void (*reap)(const char *name);
	/*
	 * Removes further files of failed processes: near's sockets in dir, or
	 * shm's regions with pid_ns in their names. dir: file descriptor of the
	 * user's registry directory. NULL: the transport has no such files.
	 */
	void (*sweep)(int dir, uint64_t pid_ns);
};

extern const struct duo_transport duo_transport_shm, duo_transport_near;
extern const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS];

#endif /* DUO_TRANSPORT_H */
