/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A domain, and the group of all objects that have no group of their own. */
#ifndef DUO_DOMAIN_H
#define DUO_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"
#include "base/util.h"
#include "base/decoy.h"
#include "transport/transport.h"
#include "obj/group.h"

struct duo_av;
struct duo_cq;
struct duo_device_bounce;
struct duo_fabric;
struct duo_mr;
struct near_table;

struct duo_domain {
	struct fid_domain domain_fid;
	struct duo_decoy decoy;
	struct duo_fabric *fabric;
	struct fid_domain *path_domain[FI_DUO_PATH_COUNT];
	const struct duo_transport *peer;	/* NULL: no local transport */
	LIST_ENTRY(duo_domain) link;	/* in fabric->domains (fi/opened.c) */
	char *name;	/* name of the core's domain; NULL: none */
	uint64_t caps;	/* capabilities that the application requested */
	int mr_mode;
	enum fi_threading threading;
	bool device;	/* the local transport carries device memory */
	LIST_HEAD(, duo_mr) mrs; /* all regions */
	void *device_mrs; /* regions of device memory (device/device.h) */
	struct duo_device_bounce *device_bounce;
	struct near_table *table;	/* near's region table; NULL: none */
	bool onesided;	/* near executes RMA and atomics between local peers */
	/* number of region keys that duo_near_region_entry() has chosen */
	uint64_t message_keys;
	bool virt_addrs;	/* FI_MR_VIRT_ADDR or FI_MR_BASIC: fi_mr(3) */
	size_t addr_len; /* length of a core's address, bytes; 0: unknown */
	/* endpoints in different network namespaces may have equal addresses */
	bool per_net;
	LIST_HEAD(, duo_av) avs;
	/* any thread may call the core, as long as one thread at a time does */
	bool any_thread;
	struct duo_group group;
	bool single;	/* locks of CQs are single locks: base/lock.h */
	LIST_HEAD(, duo_cq) cqs;	/* CQs with their own group */
	struct duo_auto {
		pthread_t thread;
		pid_t pid; /* process that started the thread; 0: no thread */
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
