/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The parameters FI_OFI_DUO_<NAME> or FI_NEAR_<NAME>, which fi_prov_ini() reads
 * once. See fi_duo(7), fi_near(7).
 */
#ifndef DUO_PARAMS_H
#define DUO_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

struct duo_params {
	/*
	 * name of the core of all fabrics of this module (provider near); NULL:
	 * the provider name, such as "tcp;ofi_duo", selects the core
	 */
	const char *core;
	bool hook;	/* this module is the hook */
	bool local_on;		/* false: the core carries all messages */
	enum duo_transport_kind local;	/* kind of the local transport */
	int stats;	/* 1: print statistics when an endpoint closes */
	/*
	 * names of cores, separated by commas, for fi_getinfo() calls in which
	 * the user names none
	 */
	char *cores;
	/* directory that contains the registry directory of each user */
	char *registry_dir;
	/*
	 * number of CQ reads in a row without a local event, after which
	 * deferred receives are posted to the core
	 */
	size_t defer_polls;
	/*
	 * time after which aging posts the oldest deferred receive to the core,
	 * us
	 */
	size_t defer_us;
	/*
	 * during local traffic: number of CQ reads from one poll of an idle
	 * core to the next
	 */
	size_t core_poll_interval;
	/*
	 * time after which a timer wakes a thread that sleeps on a wait object,
	 * us: cq/wait.c
	 */
	size_t wait_poll_us;
	size_t ring_memory;	/* ring budget of an endpoint, bytes */
	int cma; /* 1: use single copy between processes (process_vm_readv()) */
	int gpu_ipc;	/* 1: map device memory of local peers for RMA */
	/*
	 * 1: call prctl(PR_SET_PTRACER), so that peers may access this
	 * process's memory even if Yama's ptrace_scope is 1
	 */
	int ptracer;
	/*
	 * number, minus 1, of reads of a CQ in a row without a local event
	 * after which a read yields the CPU; the number is a power of 2. All
	 * bits set: no yields
	 */
	uint32_t yield_mask;
	bool yield_always;	/* yield even if CPUs are not oversubscribed */
};
extern struct duo_params duo_params;

#endif /* DUO_PARAMS_H */
