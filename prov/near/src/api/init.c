/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The one exported symbol: version gate, parameters, return. */

#include "near_abi.h"
#include "near_param.h"
#include "config.h"

#include "api/near_fi.h"

static void near_cleanup(void)
{
}

struct fi_provider near_prov = {
	.version = FI_VERSION(DUO_VERSION_MAJOR, DUO_VERSION_MINOR),
	.fi_version = NEAR_FI_VERSION,
	.name = NEAR_NAME,
	.getinfo = near_getinfo,
	.fabric = near_fabric_open,
	.cleanup = near_cleanup,
};

struct near_params near_params = {
	.cma = 1,
	.ptracer = 1,
	.memory = NEAR_MEMORY,
	.yield = 64,
};

static void near_params_init(void)
{
	fi_param_define(&near_prov, "cma", FI_PARAM_BOOL,
			"Copy large messages from process to process directly "
			"where the system lets us and it is faster, and do "
			"RMA so (default: on)");
	fi_param_define(&near_prov, "ptracer", FI_PARAM_BOOL,
			"Where Yama's ptrace_scope is 1, permit all processes "
			"of this user to access the memory of this one, and to "
			"debug it, so that they copy large messages directly "
			"(default: on)");
	fi_param_define(&near_prov, "memory", FI_PARAM_SIZE_T,
			"Bytes of shared memory that an endpoint gives to "
			"those that send to it, 336 KiB each at most; 4 KiB "
			"each at least, whatever is said here "
			"(default: 1032192)");
	fi_param_define(&near_prov, "yield", FI_PARAM_SIZE_T,
			"One in so many empty reads of a completion queue in "
			"a row yields the processor; 0: none (default: 64, "
			"and only where there are more processes than "
			"processors for them)");
	fi_param_get_bool(&near_prov, "cma", &near_params.cma);
	fi_param_get_bool(&near_prov, "ptracer", &near_params.ptracer);
	near_param_number(&near_prov, "memory", &near_params.memory);
	near_params.yield_always = near_param_number(&near_prov, "yield",
						     &near_params.yield);
}

struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	uint32_t running = fi_version();

	if (!near_abi_same(NEAR_FI_VERSION, running)) {
		NEAR_WARN(CORE, "built for libfabric %d.%d, loaded by %d.%d: "
			  "not offered. Build it against the libfabric that "
			  "runs\n", FI_MAJOR_VERSION, FI_MINOR_VERSION,
			  FI_MAJOR(running), FI_MINOR(running));
		return NULL;
	}
	near_params_init();
	return &near_prov;
}
