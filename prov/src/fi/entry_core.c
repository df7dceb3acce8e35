/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Parameters of the modules that wrap a core: ofi_duo (entry_duo.c) and the
 * hook (entry_hook.c)
 */

#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "base/util.h"
#include "fi/entry.h"

static void duo_param_read_local(const struct duo_param *param)
{
	char *text = NULL;
	int kind;

	if (fi_param_get_str(&duo_prov, param->name, &text) || !text)
		return;
	duo_params.local_on = strcasecmp(text, "off");
	for (kind = 0; kind < DUO_TRANSPORT_KINDS; kind++) {
		if (!strcasecmp(text, duo_transports[kind]->name))
			break;
	}
	if (kind < DUO_TRANSPORT_KINDS)
		duo_params.local = kind;
	else if (duo_params.local_on)
		DUO_WARN(CORE, "FI_OFI_DUO_LOCAL=%s is not a local transport, "
			 "using %s; set it to near, shm or off\n", text,
			 duo_transports[duo_params.local]->name);
}

static const struct duo_param duo_param_table[] = {
	{ "local", FI_PARAM_STRING, NULL,
	  duo_param_read_local,
	  "Transport within a host: near (part of ofi_duo), shm (libfabric's "
	  "provider) or off (the core provider carries all messages). "
	  "Processes with different values communicate over the core "
	  "provider (default: near)" },
	{ "stats", FI_PARAM_BOOL, &duo_params.stats, NULL,
	  "Print one line of statistics per endpoint on standard error "
	  "when it is closed (default: off)" },
	{ "cores", FI_PARAM_STRING, &duo_params.cores, NULL,
	  "Core providers, separated by commas, that fi_getinfo returns "
	  "with ofi_duo if neither FI_PROVIDER nor the hints name a "
	  "provider (default: efa,tcp,verbs;ofi_rxm)" },
	{ "registry_dir", FI_PARAM_STRING, &duo_params.registry_dir, NULL,
	  "Directory for the files through which the processes of a user "
	  "find each other on a host (default: /dev/shm)" },
	{ "defer_polls", FI_PARAM_SIZE_T, &duo_params.defer_polls,
	  duo_param_read_positive,
	  "Consecutive completion queue reads without a local event after "
	  "which deferred receives (from any source, or from local sources "
	  "that have not sent yet) are posted to the core provider (1 to "
	  "1000000, default: 64)" },
	{ "defer_us", FI_PARAM_SIZE_T, &duo_params.defer_us,
	  duo_param_read_positive,
	  "Time after which the oldest deferred receive is posted to the "
	  "core provider during local traffic, in microseconds (1 to "
	  "1000000, default: 200)" },
	{ "core_poll_interval", FI_PARAM_SIZE_T, &duo_params.core_poll_interval,
	  duo_param_read_positive,
	  "Completion queue reads per poll of a core provider without "
	  "messages, during local traffic (1 to 1000000, default: 64)" },
	{ "wait_poll_us", FI_PARAM_SIZE_T, &duo_params.wait_poll_us,
	  duo_param_read_positive,
	  "Time after which the file descriptor of a counter, or of a "
	  "completion queue that libfabric's shm or the core provider cannot "
	  "signal, becomes readable, in microseconds (1 to 1000000, default: "
	  "500)" },
};

struct fi_provider *duo_entry_core(void)
{
	return duo_entry(duo_param_table, DUO_COUNT(duo_param_table));
}
