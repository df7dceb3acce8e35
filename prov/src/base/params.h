/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Runtime parameters, FI_OFI_DUO_<NAME>: read from the environment once, in
 * fi_prov_ini, and constant afterwards. fi_duo(7) describes them.
 */
#ifndef DUO_PARAMS_H
#define DUO_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#include "peer/peer.h"

struct duo_params {
	const char *core;	/* of all fabrics; NULL: their names say */
	int use_shm;		/* shared memory; 0: the core carries all */
	enum duo_peer_kind peer;	/* who carries local messages */
	int stats;		/* 1: print statistics at endpoint close */
	char *cores;		/* offered without being named */
	char *registry_dir;	/* where local peers are found */
	size_t lazy_polls;	/* idle polls before a wildcard goes to the
				 * core */
	size_t lazy_time;	/* microseconds likewise; for a busy peer */
	size_t core_interval;	/* polls of a busy peer per poll of an idle
				 * core */
	size_t wait_interval;	/* of FI_WAIT_FD, microseconds */
	size_t near_memory;	/* bytes of an endpoint's rings over near */
	int cma;		/* may memory of peers be read directly? */
	int ptracer;		/* 0: Yama's ptrace_scope stays in force */
	int order_devices;	/* 0: as the core has them */
	uint32_t yield_mask;	/* a power of two less 1: idle polls until
				 * the reader yields; all bits: it does not */
	bool yield_always;	/* not only where there is a crowd */
};
extern struct duo_params duo_params;

#endif /* DUO_PARAMS_H */
