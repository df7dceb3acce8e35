/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local transports: libfabric's shm as a peer provider (shm/), or near
 * (transport/near). Only fi/ distinguishes them, for functions that one lacks.
 * Both ends of a message need the same one: an endpoint's registry record names
 * its transport, and its address in that.
 *
 * An endpoint's local side is open from fi_enable to fi_close. Sends go to its
 * path_ep[FI_DUO_LOCAL] with the peer index from connect(). Messages and
 * completions arrive in polls.
 *
 * Cost: an indirect call per poll and per send, none per message received.
 * Locks: the domain's lock protects all calls but fabric_open(), domain_open(),
 * reap(), sweep().
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

/* Values in registry records. */
enum duo_transport_kind {
	DUO_TRANSPORT_SHM,
	DUO_TRANSPORT_NEAR,
	DUO_TRANSPORT_KINDS
};

/* Its limits; fi_getinfo returns the smaller of these and the core's limits. */
struct duo_transport_limits {
	size_t inject_size;	/* bytes */
	size_t iov_limit;
	size_t queue;		/* operations in flight, each way */
	size_t cq_data_size;	/* bytes */
};

struct duo_transport {
	/* FI_OFI_DUO_LOCAL */
	const char *name;
	struct duo_transport_limits limits;
	/* Resources that an endpoint's local side requires, for a warning. */
	const char *takes;
	/* It requires the same version of libfabric at both ends. */
	bool same_libfabric;
	/* A user's endpoints start one at a time: none takes checked space. */
	bool alone;
	/* It carries messages from and to device memory: device/device.h. */
	bool device;
	/*
	 * Open the transport's objects at path_*[FI_DUO_LOCAL]; NULL: it has
	 * none. If fabric or domain warns and fails, the core carries all.
	 */
	int (*fabric_open)(struct duo_fabric *fabric);
	int (*domain_open)(struct duo_domain *domain);
	int (*cq_open)(struct duo_cq *cq, size_t size);
	int (*cntr_open)(struct duo_cntr *cntr);
	/*
	 * Called before the endpoint has a record; fills in ep->publication.
	 */
	int (*open)(struct duo_ep *ep);
	/* Called with record and map; opens path_ep[FI_DUO_LOCAL] to sends. */
	int (*enable)(struct duo_ep *ep);
	/* Binds a counter to an endpoint that is already enabled. */
	int (*count)(const struct duo_cntr_bind *bind);
	/* Polls all endpoints of the CQ; returns 0 without progress. */
	uint32_t (*poll)(struct duo_cq *cq);
	/*
	 * True if these CPUs are oversubscribed by this process and the
	 * endpoint's peers. endpoints: number of records, also of unknown
	 * processes.
	 */
	bool (*oversubscribed)(const struct duo_ep *ep, size_t endpoints);
	/*
	 * arm(): before a thread sleeps, makes peers write to its waiter's
	 * descriptor (cq/wait.c); -FI_EAGAIN: poll instead. woken(): after the
	 * sleep; true: other sleeping threads must arm again. NULL: no writes.
	 */
	int (*arm)(struct duo_ep *ep);
	bool (*woken)(struct duo_ep *ep);
	/* Sends queued messages. */
	void (*drain)(struct duo_ep *ep);
	/* Closes the parts that are open. */
	void (*close)(struct duo_ep *ep);
	/*
	 * Starts an unexpected message into recv's buffers. Changes nothing if
	 * it fails (-FI_ENOMEM, -FI_EAGAIN).
	 */
	int (*start)(struct duo_rx *rx, const struct duo_recv *recv);
	/*
	 * Returns the peer index for a record's name, the same each time;
	 * FI_ADDR_NOTAVAIL: unreachable, for *reason. An index with a
	 * *reason other than FI_DUO_OK: the peer may send, but the core
	 * carries sends to it. addr: for logs.
	 */
	fi_addr_t (*connect)(struct duo_ep *ep, const char *name,
			     fi_addr_t addr, enum fi_duo_reason *reason);
	/* True if the process with this peer index certainly exists. */
	bool (*lives)(const struct duo_ep *ep, fi_addr_t local);
	/*
	 * Monitors the process, so that its failure ends receives that wait for
	 * it. NULL: failures are not detected.
	 */
	void (*watch)(struct duo_ep *ep, fi_addr_t local);
	/*
	 * Remove remains of failed processes: reap() of the name in a record,
	 * sweep() of those without one, in the registry's directory or of this
	 * pid namespace (inode). NULL: nothing remains.
	 */
	void (*reap)(const char *name);
	void (*sweep)(int dir, uint64_t pid_ns);
};

extern const struct duo_transport duo_transport_shm, duo_transport_near;
extern const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS];

#endif /* DUO_TRANSPORT_H */
