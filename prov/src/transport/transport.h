/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Who carries local traffic: libfabric's shm as a peer provider (shm/), or
 * near (peer/near). No layer but fi/ knows which, and fi/ only where one
 * has something to do that the other has not. Both ends of a message must
 * have the same, so an endpoint's record in the registry says which, and has
 * the bytes by which others reach it.
 *
 * An endpoint's local side is open from fi_enable to fi_close. Sends go to its
 * path_ep[FI_DUO_LOCAL], with the peer's number there, which connect() gives;
 * messages and completions come while it is polled.
 *
 * Cost: an indirect call for each poll and each send, none for a message that
 * comes. Locks: all calls are under the domain's lock, but those for fabrics
 * and domains that are being opened, and for the dead.
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

/* As records have it. */
enum duo_transport_kind {
	DUO_TRANSPORT_SHM,
	DUO_TRANSPORT_NEAR,
	DUO_TRANSPORT_KINDS
};

/* What it takes; the smaller of this and what the core takes is offered. */
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
	/* What an endpoint's local side needs of this host, for a warning. */
	const char *takes;
	/* It has structures of libfabric's that differ between versions. */
	bool same_libfabric;
	/* Endpoints of a user start one after another: room is found, and taken. */
	bool alone;
	/* It carries messages of device memory, see device/device.h. */
	bool device;
	/*
	 * The objects of its own behind ours, at path_*[FI_DUO_LOCAL]. Fabric
	 * and domain: -errno after a warning, and the core carries all. NULL:
	 * it has none.
	 */
	int (*fabric_open)(struct duo_fabric *fabric);
	int (*domain_open)(struct duo_domain *domain);
	int (*cq_open)(struct duo_cq *cq, size_t size);
	int (*cntr_open)(struct duo_cntr *cntr);
	/*
	 * Before the endpoint has a record: what that says of the peer is
	 * written to ep->publication.
	 */
	int (*open)(struct duo_ep *ep);
	/* With record and map; afterwards path_ep[FI_DUO_LOCAL] takes sends. */
	int (*enable)(struct duo_ep *ep);
	/* A counter that is bound when the endpoint is enabled already. */
	int (*count)(const struct duo_cntr_bind *bind);
	/* Moves all endpoints of the CQ on; 0: nothing was to be done. */
	uint32_t (*poll)(struct duo_cq *cq);
	/*
	 * Are the processes that the endpoint may hear from, and ours, more
	 * than the processors that we have for all of them? endpoints: that
	 * have records, some of which it may not know.
	 */
	bool (*oversubscribed)(const struct duo_ep *ep, size_t endpoints);
	/*
	 * Before somebody sleeps who waits for what the endpoint does: peers
	 * write to a descriptor of his (cq/wait.c) when there is something.
	 * -FI_EAGAIN: there is. And when he is awake; true: others who sleep
	 * have to arm it anew. NULL: nobody writes.
	 */
	int (*arm)(struct duo_ep *ep);
	bool (*woken)(struct duo_ep *ep);
	/* What they have left is to go out. */
	void (*drain)(struct duo_ep *ep);
	/* Whatever is open. */
	void (*close)(struct duo_ep *ep);
	/*
	 * Starts a message that has come before its receive into the buffers
	 * of recv. Nothing has changed if it fails (-FI_ENOMEM, -FI_EAGAIN).
	 */
	int (*start)(struct duo_rx *rx, const struct duo_recv *recv);
	/*
	 * The number of a peer by the bytes of its record, the same each time.
	 * FI_ADDR_NOTAVAIL: it cannot be reached, for *reason. Where that is no
	 * longer FI_DUO_OK, as it is before, and there is a number, it
	 * may send, but is sent to over the core. addr: for logs.
	 */
	fi_addr_t (*connect)(struct duo_ep *ep, const char *name,
			     fi_addr_t addr, enum fi_duo_reason *reason);
	/* Is the process that got this number still there, for sure? */
	bool (*lives)(const struct duo_ep *ep, fi_addr_t local);
	/*
	 * A receive waits for that process: its death is to end it. NULL:
	 * nobody tells.
	 */
	void (*watch)(struct duo_ep *ep, fi_addr_t local);
	/*
	 * What dead processes have left behind: the one with a record of this
	 * name, and those that have none any more: in the registry's directory,
	 * or of this pid namespace (its inode). NULL: nothing is left.
	 */
	void (*bury)(const char *name);
	void (*sweep)(int dir, uint64_t pid_ns);
};

extern const struct duo_transport duo_transport_shm, duo_transport_near;
extern const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS];

#endif /* DUO_TRANSPORT_H */
