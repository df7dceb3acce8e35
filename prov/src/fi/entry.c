/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <string.h>

#include "fi/api.h"
#include "fi/entry.h"
#include "base/abi.h"
#include "base/log.h"
#include "base/param.h"
#include "base/params.h"

#define DUO_PARAM_MAX 1000000	/* of polls and microseconds */

/* Out of the environment, which may change. */
static void duo_param_read_text(const struct duo_param *param)
{
	char *text = NULL, *copy;

	if (fi_param_get_str(&duo_prov, param->name, &text) || !text)
		return;
	copy = strdup(text);
	if (copy)
		*(char **) param->value = copy;
}

void duo_param_read_positive(const struct duo_param *param)
{
	size_t *value = param->value;

	duo_param_number(&duo_prov, param->name, value);
	if (*value < 1)
		*value = 1;
	if (*value > DUO_PARAM_MAX)
		*value = DUO_PARAM_MAX;
}

/* One in so many empty reads yields; 0: none. */
void duo_param_read_yield(const struct duo_param *param)
{
	size_t polls = (size_t) duo_params.yield_mask + 1;

	if (!duo_param_number(&duo_prov, param->name, &polls))
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
		duo_param_number(&duo_prov, param->name, param->value);
	else
		duo_param_read_text(param);
}

void duo_params_load(const struct duo_param *params, size_t count)
{
	const struct duo_param *param;

	for (param = params; param < params + count; param++) {
		fi_param_define(&duo_prov, param->name, param->type, "%s",
				param->help);
		duo_param_read(param);
	}
}

bool duo_entry_version_ok(void)
{
	uint32_t running = fi_version();

	if (duo_abi_same(DUO_FI_VERSION, running))
		return true;
	DUO_WARN(CORE, "built for libfabric %d.%d, loaded by %d.%d: not "
		 "offered. Build it against the libfabric that runs\n",
		 FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_MAJOR(running),
		 FI_MINOR(running));
	return false;
}

static void duo_entry_cleanup(void)
{
}

struct fi_provider *duo_entry(void)
{
	duo_prov.getinfo = duo_getinfo;
	duo_prov.fabric = duo_fabric_open;
	duo_prov.cleanup = duo_entry_cleanup;
	return &duo_prov;
}
