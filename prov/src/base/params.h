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
	/* the core of all fabrics; NULL: the provider name selects it */
	const char *core;
	bool hook;	/* this module is the hook */
	bool local_on;		/* false: the core carries all messages */
	enum duo_transport_kind local;	/* kind of the local transport */
	int stats;	/* 1: print statistics when an endpoint closes */
	char *cores;	/* names of the cores to try if the user names none */
	char *registry_dir;	/* directory of all users' directories */
	/*
	 * number of reads in a row without a local event, after which deferred
	 * receives are posted
	 */
	size_t defer_polls;
	/* time after which the oldest deferred receive is posted, us */
	size_t defer_us;
	/* reads of a CQ per poll of an idle core, during local traffic */
	size_t core_poll_interval;
	size_t wait_poll_us;	/* period of the timer for FI_WAIT_FD, us */
	size_t ring_memory;	/* ring budget of an endpoint, bytes */
	int cma; /* 1: use single copy between processes (process_vm_readv()) */
	int gpu_ipc;	/* 1: map device memory of local peers for RMA */
	/* 1: peers may read this process's memory although Yama forbids it */
	int ptracer;
	/* 2^n - 1: a yield follows each 2^n idle polls; all bits: no yields */
	uint32_t yield_mask;
	bool yield_always;	/* yield even if CPUs are not oversubscribed */
};
extern struct duo_params duo_params;

#endif /* DUO_PARAMS_H */
