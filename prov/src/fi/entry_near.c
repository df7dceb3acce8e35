/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The module of near: version gate, parameters, return. */

#include "config.h"

#include "base/log.h"
#include "base/params.h"
#include "core/none.h"
#include "fi/entry.h"

#define NEAR_NAME "near"

static const struct duo_param near_param_table[] = {
	{ "cma", FI_PARAM_BOOL, &duo_params.cma, NULL,
	  "Execute RMA and copy large messages directly between the memory "
	  "of the two processes if the system permits it (default: on)" },
	{ "ptracer", FI_PARAM_BOOL, &duo_params.ptracer, NULL,
	  "If Yama's ptrace_scope is 1, permit all processes of this user "
	  "to access the memory of this process and to debug it, so that "
	  "large messages are copied directly (default: on)" },
	{ "ring_memory", FI_PARAM_SIZE_T, &duo_params.ring_memory, NULL,
	  "Memory budget of an endpoint's receive rings, in bytes; each "
	  "sender gets at least 4 KiB and at most 336 KiB (default: "
	  "1032192)" },
	{ "yield_polls", FI_PARAM_SIZE_T, NULL,
	  duo_param_read_yield,
	  "Consecutive empty completion queue reads after which the reader "
	  "calls sched_yield(2), rounded up to a power of two (0: never; "
	  "default: 64 if the CPUs are oversubscribed, otherwise 0)" },
};

struct fi_provider *fi_prov_ini(void)
{
	duo_prov.name = NEAR_NAME;
	duo_prov.version = FI_VERSION(DUO_VERSION_MAJOR, DUO_VERSION_MINOR);
	duo_params.core = DUO_NONE;
	duo_params.cores = "";	/* those who want it say so */
	duo_params_load(near_param_table, sizeof(near_param_table) /
					  sizeof(near_param_table[0]));
	return duo_entry_version_ok() ? duo_entry() : NULL;
}
