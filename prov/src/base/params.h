/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Runtime parameters, FI_OFI_DUO_<NAME>: read from the environment once, in
 * fi_prov_ini, and constant afterwards. fi_duo(7) describes them.
 */
#ifndef DUO_PARAMS_H
#define DUO_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

struct duo_params {
	const char *core;	/* core of all fabrics; NULL: fabrics name it */
	bool hook;		/* infos are the core's, unchanged */
	bool local_on;		/* false: the core carries all messages */
	enum duo_transport_kind local;	/* transport within a host */
	int stats;		/* 1: print statistics at endpoint close */
	char *cores;		/* cores if the user names no provider */
	char *registry_dir;	/* directory of the users' registries */
	size_t defer_polls;	/* reads without a local event until deferred
				 * receives go to the core */
	size_t defer_us;	/* time until the core gets the oldest one
				 * during local traffic, us */
	size_t core_poll_interval;	/* reads per poll of an idle core
					 * during local traffic */
	size_t wait_poll_us;	/* period of the FI_WAIT_FD timer, us */
	size_t ring_memory;	/* budget of an endpoint's rings, bytes */
	int cma;		/* 1: copy directly from peers' memory */
	int ptracer;		/* 0: Yama's ptrace_scope stays in force */
	uint32_t yield_mask;	/* idle polls until the reader yields, a power
				 * of two, less 1; all bits: never */
	bool yield_always;	/* yield without oversubscription, too */
};
extern struct duo_params duo_params;

#endif /* DUO_PARAMS_H */
