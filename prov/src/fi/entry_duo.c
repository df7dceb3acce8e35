/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The module of ofi_duo: version gate, parameters, return. */

#include "config.h"

#include <string.h>

#include "fi/entry.h"
#include "base/compat.h"
#include "base/log.h"
#include "base/params.h"

#define DUO_STRING(x) #x
#define DUO_STRING_OF(x) DUO_STRING(x)

/* fi_duo_info(1) and what(1) read it in the module's file. */
static const char duo_ident[] __attribute__((used)) =
	"@(#)" DUO_NAME " " PACKAGE_VERSION " libfabric "
	DUO_STRING_OF(FI_MAJOR_VERSION) "." DUO_STRING_OF(FI_MINOR_VERSION);

static void duo_param_read_peer(const struct duo_param *param)
{
	char *text = NULL;
	int kind;

	if (fi_param_get_str(&duo_prov, param->name, &text) || !text)
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

static const struct duo_param duo_param_table[] = {
	{ "use_shm", FI_PARAM_BOOL, &duo_params.use_shm, NULL,
	  "Carry messages of one host over shared memory; if off, the "
	  "core provider carries everything (default: on)" },
	{ "peer", FI_PARAM_STRING, NULL,
	  duo_param_read_peer,
	  "Who carries messages of one host: near, the transport of "
	  "ofi_duo's own, or shm, libfabric's provider; both ends need "
	  "the same (default: near)" },
	{ "stats", FI_PARAM_BOOL, &duo_params.stats, NULL,
	  "Print one line of statistics per endpoint on standard error "
	  "when it is closed (default: off)" },
	{ "cores", FI_PARAM_STRING, &duo_params.cores, NULL,
	  "Comma-separated core providers to be offered with ofi_duo "
	  "where neither FI_PROVIDER nor the hints name it (default: "
	  "efa,tcp,verbs;ofi_rxm)" },
	{ "registry_dir", FI_PARAM_STRING, &duo_params.registry_dir, NULL,
	  "Directory in which each user gets one of his own, of files "
	  "by which processes of one host find each other (default: "
	  "/dev/shm)" },
	{ "lazy_polls", FI_PARAM_SIZE_T, &duo_params.lazy_polls,
	  duo_param_read_positive,
	  "Completion queue polls without a local event after which "
	  "receives from any source are posted to the core as well "
	  "(default: 64)" },
	{ "lazy_time", FI_PARAM_SIZE_T, &duo_params.lazy_time,
	  duo_param_read_positive,
	  "Microseconds after which one of these receives is posted to "
	  "the core although local messages come (default: 200)" },
	{ "core_interval", FI_PARAM_SIZE_T, &duo_params.core_interval,
	  duo_param_read_positive,
	  "While local messages come and the core is idle, completion "
	  "queue polls per poll of the core (default: 64; 1: every "
	  "one)" },
	{ "wait_interval", FI_PARAM_SIZE_T, &duo_params.wait_interval,
	  duo_param_read_positive,
	  "Microseconds after which the descriptor of a completion "
	  "queue with FI_WAIT_FD becomes readable, where libfabric's "
	  "shm or the core cannot signal it (default: 500)" },
	{ "near_memory", FI_PARAM_SIZE_T, &duo_params.near_memory, NULL,
	  "Bytes of shared memory that an endpoint gives to the local "
	  "ones that send to it over near, 336 KiB each at most; 4 KiB "
	  "each at least, whatever is said here (default: 1032192)" },
	{ "ptracer", FI_PARAM_BOOL, &duo_params.ptracer, NULL,
	  "Where Yama's ptrace_scope is 1, permit all processes of "
	  "this user to access the memory of this one, and to debug "
	  "it, so that they copy large messages over near directly "
	  "(default: on)" },
	{ "order_devices", FI_PARAM_BOOL, &duo_params.order_devices, NULL,
	  "Of several devices, offer those first that are near to the "
	  "processors that the caller is bound to, by hwloc (default: "
	  "on)" },
	{ "yield_polls", FI_PARAM_SIZE_T, NULL,
	  duo_param_read_yield,
	  "Completion queue polls without a local event after which "
	  "the reader gives way to other processes by sched_yield(2); "
	  "rounded up to a power of two (0: never; default: 64, and "
	  "only where there are more local processes than processors "
	  "for them)" },
};

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
	duo_params_load(duo_param_table, sizeof(duo_param_table) /
					 sizeof(duo_param_table[0]));
	return duo_version_ok() ? duo_entry() : NULL;
}
