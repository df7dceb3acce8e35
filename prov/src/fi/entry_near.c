/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The module of near: version gate, parameters, return. */

#include "config.h"

#include "core/none.h"
#include "fi/entry.h"

static void near_params_define(void)
{
	fi_param_define(&duo_prov, "cma", FI_PARAM_BOOL,
			"Copy large messages from process to process directly "
			"where the system lets us and it is faster, and do "
			"RMA so (default: on)");
	fi_param_define(&duo_prov, "ptracer", FI_PARAM_BOOL,
			"Where Yama's ptrace_scope is 1, permit all processes "
			"of this user to access the memory of this one, and to "
			"debug it, so that they copy large messages directly "
			"(default: on)");
	fi_param_define(&duo_prov, "memory", FI_PARAM_SIZE_T,
			"Bytes of shared memory that an endpoint gives to "
			"those that send to it, 336 KiB each at most; 4 KiB "
			"each at least, whatever is said here "
			"(default: 1032192)");
	fi_param_define(&duo_prov, "yield", FI_PARAM_SIZE_T,
			"One in so many empty reads of a completion queue in "
			"a row yields the processor, rounded up to a power of "
			"two; 0: none (default: 64, and only where there are "
			"more processes than processors for them)");
}

static void near_params_read(void)
{
	fi_param_get_bool(&duo_prov, "cma", &duo_params.cma);
	fi_param_get_bool(&duo_prov, "ptracer", &duo_params.ptracer);
	duo_param_number(&duo_prov, "memory", &duo_params.near_memory);
	duo_param_yield("yield");
}

struct fi_provider *fi_prov_ini(void)
{
	duo_prov.name = NEAR_NAME;
	duo_prov.version = FI_VERSION(DUO_VERSION_MAJOR, DUO_VERSION_MINOR);
	duo_params.core = DUO_NONE;
	near_params_define();
	near_params_read();
	return duo_entry_version_ok() ? duo_entry(near_getinfo) : NULL;
}
