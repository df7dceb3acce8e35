/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The one exported symbol: version gate, parameters, return. */

#include <string.h>
#include <rdma/fi_errno.h>

#include "duo.h"

#define DUO_PARAM_MAX 1000000	/* of polls and microseconds */

static void duo_cleanup(void)
{
}

struct fi_provider duo_prov = {
	.version = FI_VERSION(0, 1),
	.fi_version = DUO_FI_VERSION,
	.name = DUO_NAME,
	.getinfo = duo_getinfo,
	.fabric = duo_fabric_open,
	.cleanup = duo_cleanup,
};

struct duo_params duo_params = {
	.use_shm = 1,
	.stats = 0,
	.cores = "efa,tcp,verbs;ofi_rxm",
	.registry_dir = "/dev/shm",
	.lazy_polls = 64,
	.core_interval = 64,
	.wait_interval = 500,
};

/* Out of the environment, which may change. */
static void duo_param_str(const char *name, char **value)
{
	char *text = NULL, *copy;

	if (fi_param_get_str(&duo_prov, name, &text) || !text)
		return;
	copy = strdup(text);
	if (copy)
		*value = copy;
}

static void duo_param_clamp(size_t *value)
{
	if (*value < 1)
		*value = 1;
	if (*value > DUO_PARAM_MAX)
		*value = DUO_PARAM_MAX;
}

static void duo_params_init(void)
{
	fi_param_define(&duo_prov, "use_shm", FI_PARAM_BOOL,
			"Carry messages of one host over the shm provider; "
			"if off, the core provider carries everything "
			"(default: on)");
	fi_param_define(&duo_prov, "stats", FI_PARAM_BOOL,
			"Print one line of statistics per endpoint on "
			"standard error when it is closed (default: off)");
	fi_param_define(&duo_prov, "cores", FI_PARAM_STRING,
			"Comma-separated core providers to be offered with "
			"ofi_duo where neither FI_PROVIDER nor the hints name "
			"it (default: efa,tcp,verbs;ofi_rxm)");
	fi_param_define(&duo_prov, "registry_dir", FI_PARAM_STRING,
			"Directory of the files by which processes of one "
			"host find each other (default: /dev/shm)");
	fi_param_define(&duo_prov, "lazy_polls", FI_PARAM_SIZE_T,
			"Completion queue polls without an event of shm after "
			"which receives from any source are posted to the "
			"core as well (default: 64)");
	fi_param_define(&duo_prov, "core_interval", FI_PARAM_SIZE_T,
			"While shm is busy and the core idle, completion "
			"queue polls per poll of the core "
			"(default: 64; 1: every one)");
	fi_param_define(&duo_prov, "wait_interval", FI_PARAM_SIZE_T,
			"Microseconds after which the descriptor of a "
			"completion queue with FI_WAIT_FD becomes readable, "
			"since shm cannot signal it (default: 500)");

	fi_param_get_bool(&duo_prov, "use_shm", &duo_params.use_shm);
	fi_param_get_bool(&duo_prov, "stats", &duo_params.stats);
	duo_param_str("cores", &duo_params.cores);
	duo_param_str("registry_dir", &duo_params.registry_dir);
	fi_param_get_size_t(&duo_prov, "lazy_polls", &duo_params.lazy_polls);
	fi_param_get_size_t(&duo_prov, "core_interval",
			    &duo_params.core_interval);
	fi_param_get_size_t(&duo_prov, "wait_interval",
			    &duo_params.wait_interval);
	duo_param_clamp(&duo_params.wait_interval);
	duo_param_clamp(&duo_params.lazy_polls);
	duo_param_clamp(&duo_params.core_interval);
}

/*
 * fi_peer(3): peers must be of one libfabric version, the structures they
 * share differ between minor versions.
 */
static bool duo_version_ok(void)
{
	uint32_t running = fi_version();

	if (running == DUO_FI_VERSION)
		return true;
	DUO_WARN(CORE, "built for libfabric %d.%d, loaded by %d.%d: not "
		 "offered. Build ofi_duo against the libfabric that runs\n",
		 FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_MAJOR(running),
		 FI_MINOR(running));
	return false;
}

struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	if (!duo_version_ok())
		return NULL;
	duo_params_init();
	return &duo_prov;
}
