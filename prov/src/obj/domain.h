/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A domain: has the lock of all that is in it, and who carries what. */
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
	const struct duo_transport *peer;	/* NULL: the core carries all */
	LIST_ENTRY(duo_domain) link;	/* in its fabric's, see opened.c */
	char *name;			/* the core's of its domain; or NULL */
	uint64_t caps;			/* what it was opened for */
	int mr_mode;
	enum fi_threading threading;
	bool device;			/* device memory goes by the peer */
	void *device_mrs;		/* such regions, see device.h */
	struct duo_device_stage *device_stage;
	struct near_table *table;	/* of regions, for near; or NULL */
	bool virt_addrs;	/* regions are named by their addresses */
	size_t addr_len;	/* of its addresses, bytes; 0: not known */
	bool per_net;	/* they mean something in one network namespace */
	LIST_HEAD(, duo_av) avs;
	uint32_t held;	/* local messages whose source is looked up, and
			 * multi-receive buffers that are ready */
	uint32_t lazy;	/* receives in lazy lists */
	uint32_t waits;	/* of these, all that are not due */
	LIST_HEAD(, duo_cntr) sleepers;	/* counters that can be slept on */
	struct duo_ranges rx_ranges;	/* of receive entries */
	bool any_thread;	/* may enter the core, be it one after another */
	struct duo_lock lock;
	struct duo_auto {
		pthread_t thread;
		pid_t pid;		/* that has the thread; 0: none */
		atomic_bool stop;
		LIST_ENTRY(duo_domain) link;	/* of all with a thread */
	} progress;	/* FI_PROGRESS_AUTO: cq/auto.c */
	atomic_int refs;
};

static inline struct duo_domain *duo_domain_of(struct fid_domain *domain_fid)
{
	return duo_container_of(domain_fid, struct duo_domain, domain_fid);
}

#endif /* DUO_DOMAIN_H */
