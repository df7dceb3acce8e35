/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The module of ofi_duo: version gate, parameters, return. */

#include "config.h"

#include <string.h>
#include <rdma/fi_errno.h>

#include "fi/entry.h"
#include "base/log.h"
#include "base/params.h"
#include "base/param.h"

#define DUO_STRING(x) #x
#define DUO_STRING_OF(x) DUO_STRING(x)

/* fi_duo_info(1) and what(1) read it in the module's file. */
static const char duo_ident[] __attribute__((used)) =
	"@(#)" DUO_NAME " " PACKAGE_VERSION " libfabric "
	DUO_STRING_OF(FI_MAJOR_VERSION) "." DUO_STRING_OF(FI_MINOR_VERSION);

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

static void duo_param_peer(void)
{
	char *text = NULL;
	int kind;

	if (fi_param_get_str(&duo_prov, "peer", &text) || !text)
		return;
	for (kind = 0; kind < DUO_PEER_KINDS; kind++) {
		if (!strcasecmp(text, duo_peers[kind]->name))
			break;
	}
	if (kind < DUO_PEER_KINDS)
		duo_params.peer = kind;
	else
		DUO_WARN(CORE, "FI_OFI_DUO_PEER=%s is unknown, %s is used; "
			 "set it to near or shm\n", text,
			 duo_peers[duo_params.peer]->name);
}

static void duo_param_clamp(size_t *value)
{
	if (*value < 1)
		*value = 1;
	if (*value > DUO_PARAM_MAX)
		*value = DUO_PARAM_MAX;
}

static void duo_params_define(void)
{
	fi_param_define(&duo_prov, "use_shm", FI_PARAM_BOOL,
			"Carry messages of one host over shared memory; "
			"if off, the core provider carries everything "
			"(default: on)");
	fi_param_define(&duo_prov, "peer", FI_PARAM_STRING,
			"Who carries messages of one host: near, the "
			"transport of ofi_duo's own, or shm, libfabric's "
			"provider; both ends need the same (default: near)");
	fi_param_define(&duo_prov, "stats", FI_PARAM_BOOL,
			"Print one line of statistics per endpoint on "
			"standard error when it is closed (default: off)");
	fi_param_define(&duo_prov, "cores", FI_PARAM_STRING,
			"Comma-separated core providers to be offered with "
			"ofi_duo where neither FI_PROVIDER nor the hints name "
			"it (default: efa,tcp,verbs;ofi_rxm)");
	fi_param_define(&duo_prov, "registry_dir", FI_PARAM_STRING,
			"Directory in which each user gets one of his own, of "
			"files by which processes of one host find each "
			"other (default: /dev/shm)");
	fi_param_define(&duo_prov, "lazy_polls", FI_PARAM_SIZE_T,
			"Completion queue polls without a local event after "
			"which receives from any source are posted to the "
			"core as well (default: 64)");
	fi_param_define(&duo_prov, "lazy_time", FI_PARAM_SIZE_T,
			"Microseconds after which one of these receives is "
			"posted to the core although local messages come "
			"(default: 200)");
	fi_param_define(&duo_prov, "core_interval", FI_PARAM_SIZE_T,
			"While local messages come and the core is idle, "
			"completion queue polls per poll of the core "
			"(default: 64; 1: every one)");
	fi_param_define(&duo_prov, "wait_interval", FI_PARAM_SIZE_T,
			"Microseconds after which the descriptor of a "
			"completion queue with FI_WAIT_FD becomes readable, "
			"where libfabric's shm or the core cannot signal it "
			"(default: 500)");
	fi_param_define(&duo_prov, "near_memory", FI_PARAM_SIZE_T,
			"Bytes of shared memory that an endpoint gives to the "
			"local ones that send to it over near, 336 KiB each "
			"at most; 4 KiB each at least, whatever is said here "
			"(default: 1032192)");
	fi_param_define(&duo_prov, "ptracer", FI_PARAM_BOOL,
			"Where Yama's ptrace_scope is 1, permit all processes "
			"of this user to access the memory of this one, and to "
			"debug it, so that they copy large messages over near "
			"directly (default: on)");
	fi_param_define(&duo_prov, "order_devices", FI_PARAM_BOOL,
			"Of several devices, offer those first that are "
			"near to the processors that the caller is bound "
			"to, by hwloc (default: on)");
	fi_param_define(&duo_prov, "yield_polls", FI_PARAM_SIZE_T,
			"Completion queue polls without a local event after "
			"which the reader gives way to other processes by "
			"sched_yield(2); rounded up to a power of two "
			"(0: never; default: 64, and only where there are "
			"more local processes than processors for them)");
}

static void duo_params_read(void)
{
	fi_param_get_bool(&duo_prov, "use_shm", &duo_params.use_shm);
	duo_param_peer();
	fi_param_get_bool(&duo_prov, "stats", &duo_params.stats);
	fi_param_get_bool(&duo_prov, "ptracer", &duo_params.ptracer);
	fi_param_get_bool(&duo_prov, "order_devices",
			  &duo_params.order_devices);
	duo_param_str("cores", &duo_params.cores);
	duo_param_str("registry_dir", &duo_params.registry_dir);
	duo_param_number(&duo_prov, "lazy_polls", &duo_params.lazy_polls);
	duo_param_number(&duo_prov, "lazy_time", &duo_params.lazy_time);
	duo_param_number(&duo_prov, "core_interval",
			  &duo_params.core_interval);
	duo_param_number(&duo_prov, "wait_interval",
			  &duo_params.wait_interval);
	duo_param_number(&duo_prov, "near_memory", &duo_params.near_memory);
	duo_param_yield("yield_polls");
	duo_param_clamp(&duo_params.wait_interval);
	duo_param_clamp(&duo_params.lazy_polls);
	duo_param_clamp(&duo_params.lazy_time);
	duo_param_clamp(&duo_params.core_interval);
}

/*
 * Peers share structures that are not public, and differ between minor
 * versions, fi_peer(3): libfabric's shm must be of ours.
 */
static bool duo_version_ok(void)
{
	uint32_t running = fi_version();

	if (!duo_entry_version_ok())
		return false;
	if (running == DUO_FI_VERSION ||
	    !duo_peers[duo_params.peer]->same_libfabric)
		return true;
	DUO_WARN(CORE, "built for libfabric %d.%d, loaded by %d.%d: with "
		 "FI_OFI_DUO_PEER=shm both must be the same, not offered. Use "
		 "near, or build ofi_duo against the libfabric that runs\n",
		 FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_MAJOR(running),
		 FI_MINOR(running));
	return false;
}

struct fi_provider *fi_prov_ini(void)
{
	duo_params_define();
	duo_params_read();
	if (!duo_version_ok())
		return NULL;
	return duo_entry(duo_getinfo);
}
