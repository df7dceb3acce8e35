/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The parameters of fi_duo(7) and fi_near(7). fi_prov_ini() reads them once.
 * The *core* is the provider that ofi_duo wraps. A *local event* is a message
 * or completion that a poll of the local transport has found.
 */
#ifndef DUO_PARAMS_H
#define DUO_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

struct duo_params {
	/*
	 * name of the core. In the module libnear-fi.so (fi_near(7)) it is
	 * "none", for core/none.h. In the other modules it is NULL, because the
	 * provider name in an info, such as "tcp;ofi_duo", selects the core.
	 */
	const char *core;
	/*
	 * true: this module is libofi_hook_duo-fi.so, which libfabric puts
	 * above the provider that the application opens, if FI_HOOK is "duo"
	 */
	bool hook;
	bool local_on;		/* false: the core carries all messages */
	enum duo_transport_kind local;	/* the local transport */
	int stats;	/* 1: print statistics when endpoints close */
	/* default cores of fi_getinfo(): names, separated by commas */
	char *cores;
	/* parent directory of the users' registry directories */
	char *registry_dir;
	/*
	 * number of CQ reads in a row without a local event, after which the
	 * core gets all deferred receives
	 */
	size_t defer_polls;
	/*
	 * interval at which *aging* posts the oldest deferred receive to the
	 * core, us. Aging is the posting of deferred receives while local
	 * messages arrive, so that no message waits at the core without end.
	 */
	size_t defer_us;
	/*
	 * number of CQ reads for each poll of the core, while local events
	 * occur and the core has no messages
	 */
	size_t core_poll_interval;
	/* time until a timer wakes a thread that sleeps on a wait object, us */
	size_t wait_poll_us;
	size_t ring_memory;	/* ring budget of an endpoint, bytes */
	int cma; /* 1: use single copy between processes */
	int gpu_ipc;	/* 1: map device memory of local peers for RMA */
	/* 1: permit peers to use single copy if Yama's ptrace_scope is 1 */
	int ptracer;
	/*
	 * N - 1. N, a power of 2, is the number of CQ reads in a row without a
	 * local event after which the reader yields its CPU. All bits set: the
	 * reader never yields.
	 */
	uint32_t yield_mask;
	bool yield_always;	/* true: yield even if not oversubscribed */
};
extern struct duo_params duo_params;

#endif /* DUO_PARAMS_H */
