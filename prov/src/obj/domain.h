/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A domain. Its group has all objects that are not in the group of a CQ. */
#ifndef DUO_DOMAIN_H
#define DUO_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"
#include "base/decoy.h"
#include "base/util.h"
#include "obj/group.h"
#include "transport/transport.h"

struct duo_av;
struct duo_cq;
struct duo_device_bounce;
struct near_table;

struct duo_domain {
	struct fid_domain domain_fid;
	struct duo_decoy decoy;
	struct duo_fabric *fabric;
	struct fid_domain *path_domain[FI_DUO_PATH_COUNT];
	/* local transport; NULL: none */
	const struct duo_transport *peer;
	LIST_ENTRY(duo_domain) link;	/* in fabric->domains: fi/opened.c */
	char *name;	/* name of the core's domain; NULL: none */
	uint64_t caps;	/* capabilities that the application requested */
	int mr_mode;
	enum fi_threading threading;
	/* the local transport carries messages and RMA of device memory */
	bool device;
	/* tree of the regions of device memory: device/device.c */
	void *device_mrs;
	struct duo_device_bounce *device_bounce;
	struct near_table *table;	/* near's region table; NULL: none */
	bool onesided;	/* near executes RMA and atomics between local peers */
	/* number of keys that duo_near_region_entry() has chosen */
	uint64_t message_keys;
	/* virtual addressing: mr_mode has FI_MR_VIRT_ADDR, or is FI_MR_BASIC */
	bool virt_addrs;
	/* length of an endpoint's address at the core, bytes; 0: unknown */
	size_t addr_len;
	/* the core's addresses are unique only in a network namespace */
	bool per_net;
	LIST_HEAD(, duo_av) avs;
	struct duo_group group;
	/*
	 * Each CQ's own group has a lock of the kind "single": only one thread
	 * at a time uses the group's objects (base/lock.h).
	 */
	bool single;
	LIST_HEAD(, duo_cq) cqs;	/* CQs with their own group */
	struct duo_auto {
		pthread_t thread;
		pid_t pid; /* process that started the thread; 0: no thread */
		atomic_bool stop;
		LIST_ENTRY(duo_domain) link;	/* in duo_auto_domains */
	} progress;	/* thread of FI_PROGRESS_AUTO, see cq/auto.c */
	atomic_int refs;
};

static inline struct duo_domain *duo_domain_of(struct fid_domain *domain_fid)
{
	return duo_container_of(domain_fid, struct duo_domain, domain_fid);
}

#endif /* DUO_DOMAIN_H */
