/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local transports, which carry messages within a host: near (transport/near)
 * and libfabric's shm (shm/). Upper layers call a local transport through its
 * struct duo_transport, but call near's fast paths directly. The local side is
 * the part of an endpoint that belongs to the local transport. The core is the
 * provider that ofi_duo wraps, which carries all other messages.
 *
 * Locks that the caller must hold (docs/architecture.md, *Locks*):
 * - open(), enable(), count(), close(): all locks of the domain. fi_endpoint
 *   calls open() without a lock, because no other thread has the endpoint yet.
 * - fabric_open(), domain_open(), cq_open(), cntr_open(), reap(), sweep(): none
 * - other functions: the lock of the struct duo_group of the endpoint or CQ
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

/*
 * Limits of both local transports, besides DUO_IOV_LIMIT. For each limit,
 * fi_getinfo returns the smaller one: this or the core's.
 */
#define DUO_LOCAL_INJECT 4096	/* longest injected message, bytes */
#define DUO_LOCAL_QUEUE 1024	/* pending operations in each direction */

struct duo_transport {
	const char *name;	/* value of FI_OFI_DUO_LOCAL */
	/*
	 * text for the warning that an endpoint has no local side: the
	 * resources that the transport requires for each endpoint
	 */
	const char *takes;
	/*
	 * true: while the caller calls open() and enable() for an endpoint, it
	 * must hold the exclusive lock of the user's registry directory
	 * (DUO_REGISTRY_EXCLUSIVE). So no other thread or process of the user
	 * opens a local side at the same time.
	 */
	bool exclusive_start;
	bool device;	/* carries messages from and to device memory */
	/*
	 * Each of the next four functions opens the transport's object for an
	 * object of ofi_duo, and stores it in path_*[FI_DUO_LOCAL] of the
	 * latter. NULL: the transport has no such object. If fabric_open() or
	 * domain_open() fails, it logs a warning, and the core carries all
	 * messages.
	 */
	int (*fabric_open)(struct duo_fabric *fabric);
	int (*domain_open)(struct duo_domain *domain);
	int (*cq_open)(struct duo_cq *cq, size_t size);
	int (*cntr_open)(struct duo_cntr *cntr);
	/*
	 * Opens the endpoint's local side. Stores its address at the transport
	 * in ep->publication.peer_name. The caller must call close(), even
	 * after an error.
	 */
	int (*open)(struct duo_ep *ep);
	/*
	 * Enables the local side, and stores it in path_ep[FI_DUO_LOCAL].
	 * Before this call, the caller must open ep->map, and must reserve the
	 * endpoint's record if the endpoint uses the registry.
	 */
	int (*enable)(struct duo_ep *ep);
	/* Binds a counter to an enabled endpoint. */
	int (*count)(const struct duo_cntr_bind *bind);
	/* Polls all endpoints of the CQ. Returns 0 if there was no progress. */
	uint32_t (*poll)(struct duo_cq *cq);
	/*
	 * True if local processes oversubscribe this thread's CPUs. endpoints:
	 * number of records in the user's registry directory.
	 */
	bool (*oversubscribed)(const struct duo_ep *ep, size_t endpoints);
	/*
	 * Prepares a sleep (cq/wait.c): returns 0, and the next event will make
	 * the CQ's wait object readable. -FI_EAGAIN: there is an event already;
	 * the caller must poll. NULL: the transport cannot wake threads.
	 */
	int (*arm)(struct duo_ep *ep);
	/*
	 * Ends a sleep. True: an event has disarmed the transport. The caller
	 * must wake all sleeping threads, which call arm() before they sleep
	 * again. NULL if arm() is NULL.
	 */
	bool (*woken)(struct duo_ep *ep);
	/* Polls before close(), so that pending operations can end. */
	void (*drain)(struct duo_ep *ep);
	void (*close)(struct duo_ep *ep);
	/*
	 * Starts to receive rx, an arrived message, into the buffers of recv.
	 * Returns 0 or -errno. After an error, rx still waits for a receive.
	 */
	int (*start)(struct duo_rx *rx, const struct duo_recv *recv);
	/*
	 * Connects to a peer. name: peer_name of the peer's record. addr: the
	 * peer's address, for log messages only. The caller must set *reason
	 * to FI_DUO_OK before the call. Returns
	 * - the peer index. All calls for one peer return the same index. If
	 *   *reason is not FI_DUO_OK, this endpoint must send to the peer over
	 *   the core, but the peer may send over this transport.
	 * - FI_ADDR_NOTAVAIL: this transport does not reach the peer; *reason
	 *   is the reason
	 */
	fi_addr_t (*connect)(struct duo_ep *ep, const char *name,
			     fi_addr_t addr, enum fi_duo_reason *reason);
	/*
	 * Frees a peer index that connect() has returned. No address may have
	 * this index any more. Must not be called in a poll. NULL: the
	 * transport frees no index.
	 */
	void (*unbind)(struct duo_ep *ep, fi_addr_t index);
	/*
	 * True if near monitors the peer and has found no failure, or if shm's
	 * region of the peer exists.
	 */
	bool (*exists)(const struct duo_ep *ep, fi_addr_t index);
	/*
	 * Begins to monitor a peer. If the peer fails later, each posted
	 * receive that names this peer as its source ends with an error. NULL:
	 * the transport cannot monitor peers.
	 */
	void (*monitor)(struct duo_ep *ep, fi_addr_t index);
	/*
	 * Removes the file of a failed process with this peer_name. NULL: the
	 * transport has no such files.
	 */
	void (*reap)(const char *name);
	/*
	 * Removes further files of failed processes: near's sockets in the
	 * user's registry directory `dir` (a file descriptor), or shm's regions
	 * with pid_ns in their names. NULL: the transport has no such files.
	 */
	void (*sweep)(int dir, uint64_t pid_ns);
};

extern const struct duo_transport duo_transport_shm, duo_transport_near;
extern const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS];

#endif /* DUO_TRANSPORT_H */
