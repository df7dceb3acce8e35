/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A domain: the lock of all its objects, and the local transport. */
#ifndef DUO_DOMAIN_H
#define DUO_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"
#include "base/lock.h"
#include "base/util.h"
#include "base/decoy.h"
#include "transport/transport.h"
#include "queue/ranges.h"

struct duo_av;
struct duo_cntr;
struct duo_device_stage;
struct duo_fabric;
struct near_table;

struct duo_domain {
	struct fid_domain domain_fid;
	struct duo_decoy decoy;
	struct duo_fabric *fabric;
	struct fid_domain *path_domain[FI_DUO_PATH_COUNT];
	const struct duo_transport *peer;	/* NULL: no local transport */
	LIST_ENTRY(duo_domain) link;	/* in fabric->domains, see opened.c */
	char *name;			/* name of the core's domain, or NULL */
	uint64_t caps;			/* requested capabilities */
	int mr_mode;
	enum fi_threading threading;
	bool device;			/* local transport has device memory */
	void *device_mrs;		/* regions of device memory: device.h */
	struct duo_device_stage *device_stage;
	struct near_table *table;	/* near's region table; or NULL */
	bool virt_addrs;	/* virtual addressing of regions */
	size_t addr_len;	/* of an address, bytes; 0: unknown */
	bool per_net;	/* addresses are per network namespace */
	LIST_HEAD(, duo_av) avs;
	uint32_t held;	/* unresolved messages, and multi-receive buffers that
			 * are ready */
	uint32_t lazy;	/* deferred receives */
	uint32_t waits;	/* deferred receives that are not due */
	LIST_HEAD(, duo_cntr) sleepers;	/* counters with a wait object */
	struct duo_ranges rx_ranges;	/* memory of receive entries */
	bool any_thread;	/* all threads may call the core, in turn */
	struct duo_lock lock;
	struct duo_auto {
		pthread_t thread;
		pid_t pid;		/* process of the thread; 0: none */
		atomic_bool stop;
		LIST_ENTRY(duo_domain) link;	/* in duo_auto_domains */
	} progress;	/* FI_PROGRESS_AUTO: cq/auto.c */
	atomic_int refs;
};

static inline struct duo_domain *duo_domain_of(struct fid_domain *domain_fid)
{
	return duo_container_of(domain_fid, struct duo_domain, domain_fid);
}

#endif /* DUO_DOMAIN_H */
