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
	  "Do RMA, and copy large messages, directly between the memory "
	  "of the two processes where the system permits it "
	  "(default: on)" },
	{ "ptracer", FI_PARAM_BOOL, &duo_params.ptracer, NULL,
	  "Where Yama's ptrace_scope is 1, permit all processes of "
	  "this user to access the memory of this one, and to debug "
	  "it, so that they copy large messages directly (default: on)" },
	{ "memory", FI_PARAM_SIZE_T, &duo_params.near_memory, NULL,
	  "Bytes of shared memory that an endpoint gives to those that "
	  "send to it, 336 KiB each at most; 4 KiB each at least, "
	  "whatever is said here (default: 1032192)" },
	{ "yield", FI_PARAM_SIZE_T, NULL,
	  duo_param_read_yield,
	  "One in so many empty reads of a completion queue in a row "
	  "yields the processor, rounded up to a power of two; 0: none "
	  "(default: 64, and only where there are more processes than "
	  "processors for them)" },
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
