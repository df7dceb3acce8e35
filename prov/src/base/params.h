/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The runtime parameters FI_OFI_DUO_<NAME>, or FI_NEAR_<NAME>. fi_prov_ini()
 * reads them from the environment, once; they are constant afterwards.
 * fi_duo(7) and fi_near(7) describe them.
 */
#ifndef DUO_PARAMS_H
#define DUO_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

struct duo_params {
	const char *core;	/* name of the core of all fabrics; NULL: a
				 * fabric's provider name names its core */
	bool hook;	/* true: this module is the hook, and its infos are the
			 * core's */
	bool local_on;		/* false: the core carries all messages */
	enum duo_transport_kind local;	/* kind of the local transport */
	int stats;	/* 1: print statistics when an endpoint closes */
	char *cores;	/* names of the cores to try if the user names none */
	char *registry_dir;	/* directory that contains the directories of
				 * all users */
	/*
	 * number of consecutive reads without a local event, after which
	 * deferred receives are posted to the core
	 */
	size_t defer_polls;
	/*
	 * time after which the oldest deferred receive is posted to the core
	 * while there are local events, us
	 */
	size_t defer_us;
	/*
	 * number of reads of a CQ per poll of an idle core while there are
	 * local events
	 */
	size_t core_poll_interval;
	size_t wait_poll_us;	/* period of the timer for FI_WAIT_FD, us */
	size_t ring_memory;	/* ring budget of an endpoint, bytes */
	int cma; /* 1: use single copy between processes (process_vm_readv()) */
	/*
	 * 1: peers may read this process's memory although Yama's ptrace_scope
	 * forbids it; 0: they may not
	 */
	int ptracer;
	/*
	 * number of idle polls between two yields, a power of 2, minus 1; all
	 * bits set: never yield
	 */
	uint32_t yield_mask;
	bool yield_always;	/* yield even if CPUs are not oversubscribed */
};
extern struct duo_params duo_params;

#endif /* DUO_PARAMS_H */
