/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/log.h"
#include "base/param.h"
#include "base/params.h"
#include "base/util.h"
#include "fi/api.h"
#include "fi/entry.h"

/* largest value of a parameter in polls or microseconds */
#define DUO_PARAM_MAX 1000000

/*
 * Reads a string. Stores a copy, because the application may change the
 * environment later.
 */
static void duo_param_read_text(const struct duo_param *param)
{
	char *text = NULL, *copy;

	if (fi_param_get_str(&duo_prov, param->name, &text) || !text)
		return;
	copy = strdup(text);
	if (copy)
		*(char **) param->value = copy;
}

/*
 * Reads a number. If the parameter is not set or is not a number, returns
 * false, and does not change *value.
 */
static bool duo_param_number(const char *name, size_t *value)
{
	char variable[64], *c;
	const char *text;

	snprintf(variable, sizeof(variable), "FI_%s_%s", duo_prov.name, name);
	for (c = variable; *c; c++)
		*c = toupper((unsigned char) *c);
	text = getenv(variable);
	if (!text || duo_param_is_number(text))
		return !fi_param_get_size_t(&duo_prov, name, value);
	DUO_WARN(CORE, "%s=%s is not a number, using %zu; set it to digits "
		 "only, or unset it\n", variable, text, *value);
	return false;
}

void duo_param_read_positive(const struct duo_param *param)
{
	size_t *value = param->value;

	duo_param_number(param->name, value);
	if (*value < 1)
		*value = 1;
	if (*value > DUO_PARAM_MAX)
		*value = DUO_PARAM_MAX;
}

/*
 * Rounds `polls` up to a power of 2, and returns this power minus 1. Returns
 * UINT32_MAX for 0.
 */
static uint32_t duo_param_mask(size_t polls)
{
	uint32_t mask = polls ? 0 : UINT32_MAX;

	while (mask + 1 < polls)
		mask = 2 * mask + 1;
	return mask;
}

/*
 * Reads yield_polls: the number of consecutive CQ reads without a local event
 * after which the reader yields its CPU; 0: never
 */
static void duo_param_read_yield(const struct duo_param *param)
{
	size_t polls = (size_t) duo_params.yield_mask + 1;

	if (!duo_param_number(param->name, &polls))
		return;
	if (polls > DUO_PARAM_MAX)
		polls = DUO_PARAM_MAX;
	duo_params.yield_mask = duo_param_mask(polls);
	duo_params.yield_always = true;
}

static void duo_param_read(const struct duo_param *param)
{
	if (param->read)
		param->read(param);
	else if (param->type == FI_PARAM_BOOL)
		fi_param_get_bool(&duo_prov, param->name, param->value);
	else if (param->type == FI_PARAM_SIZE_T)
		duo_param_number(param->name, param->value);
	else
		duo_param_read_text(param);
}

/*
 * Warns about each environment variable with the former name of a renamed
 * parameter, because such a variable has no effect.
 */
static void duo_params_warn_renamed(void)
{
	size_t prefix = strlen(duo_prov.name);
	const char *name;
	char **entry;

	for (entry = environ; entry && *entry; entry++) {
		if (strncmp(*entry, "FI_", 3) ||
		    strncasecmp(*entry + 3, duo_prov.name, prefix))
			continue;
		name = duo_param_renamed(*entry, strcspn(*entry, "="));
		if (name)
			DUO_WARN(CORE, "%s is ignored, the parameter was "
				 "renamed; set %s\n", *entry, name);
	}
}

/* parameters that all modules have */
static const struct duo_param duo_param_near[] = {
	{ "ring_memory", FI_PARAM_SIZE_T, &duo_params.ring_memory, NULL,
	  "Memory budget of an endpoint's receive rings over near, in "
	  "bytes; each sender gets at least 4 KiB and at most 336 KiB "
	  "(default: 1032192)" },
	{ "ptracer", FI_PARAM_BOOL, &duo_params.ptracer, NULL,
	  "If Yama's ptrace_scope is 1, permit all processes of this user "
	  "to access the memory of this process and to debug it, so that "
	  "near copies large messages directly (default: on)" },
	{ "gpu_ipc", FI_PARAM_BOOL, &duo_params.gpu_ipc, NULL,
	  "Map CUDA memory of local peers, by CUDA's IPC or by file "
	  "descriptors, so that a GPU copies RMA and messages directly between "
	  "GPUs, and between a GPU and pinned host memory (default: on)" },
	{ "yield_polls", FI_PARAM_SIZE_T, NULL,
	  duo_param_read_yield,
	  "Consecutive completion queue reads without a local event after "
	  "which the reader calls sched_yield(2), rounded up to a power of "
	  "two (0: never; default: 64 if the CPUs are oversubscribed, "
	  "otherwise 0)" },
};

static void duo_params_define(const struct duo_param *params, size_t count)
{
	const struct duo_param *param;

	for (param = params; param < params + count; param++) {
		fi_param_define(&duo_prov, param->name, param->type, "%s",
				param->help);
		duo_param_read(param);
	}
}

/* True if this module works with the running libfabric. Otherwise warns. */
static bool duo_entry_version_ok(void)
{
	uint32_t running = fi_version();

	if (duo_abi_same(DUO_FI_VERSION, running))
		return true;
	DUO_WARN(CORE, "built for libfabric %d.%d, loaded by %d.%d: not "
		 "available. Build it against the libfabric that loads it\n",
		 FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_MAJOR(running),
		 FI_MINOR(running));
	return false;
}

struct fi_provider *duo_entry(const struct duo_param *params, size_t count)
{
	duo_params_warn_renamed();
	duo_params_define(params, count);
	duo_params_define(duo_param_near, DUO_COUNT(duo_param_near));
	duo_prov.getinfo = duo_getinfo;
	duo_prov.fabric = duo_fabric_open;
	return duo_entry_version_ok() ? &duo_prov : NULL;
}
