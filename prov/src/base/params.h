/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The parameters of fi_duo(7) and fi_near(7). fi_prov_ini() reads them once. */
#ifndef DUO_PARAMS_H
#define DUO_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

struct duo_params {
	/*
	 * "none": the core of the provider near; NULL: each info's provider
	 * name, such as "tcp;ofi_duo", selects the core
	 */
	const char *core;
	bool hook;	/* true: this module is the hook */
	bool local_on;		/* false: the core carries all messages */
	enum duo_transport_kind local;
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
	/* interval at which aging posts the oldest deferred receive, us */
	size_t defer_us;
	/* CQ reads per poll of a core without messages, in local traffic */
	size_t core_poll_interval;
	/* time until a timer wakes a thread that sleeps on a wait object, us */
	size_t wait_poll_us;
	size_t ring_memory;	/* ring budget of an endpoint, bytes */
	int cma; /* 1: use single copy between processes */
	int gpu_ipc;	/* 1: map device memory of local peers for RMA */
	/* 1: permit peers to use single copy if Yama's ptrace_scope is 1 */
	int ptracer;
	/*
	 * N - 1, where N is a power of 2: the number of CQ reads in a row
	 * without a local event, after which the reader yields its CPU. All
	 * bits set: never
	 */
	uint32_t yield_mask;
	bool yield_always;	/* true: yield even if not oversubscribed */
};
extern struct duo_params duo_params;

#endif /* DUO_PARAMS_H */
