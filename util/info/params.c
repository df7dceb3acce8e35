/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Checks FI_OFI_DUO_* and FI_NEAR_* for unknown names and invalid values.
 * fi_getparams() returns the parameters of loaded modules only.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "info.h"
#include "base/param.h"

static bool info_is_bool(const char *text)
{
	static const char *const words[] = {
		"0", "1", "no", "yes", "false", "true", "off", "on",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i]))
			return true;
	return false;
}

static void info_check_value(const struct fi_param *param, const char *value)
{
	if (param->type == FI_PARAM_BOOL && !info_is_bool(value)) {
		info_found("parameter", INFO_WARNING, "%s=%s is neither on nor "
			   "off: using the default", param->name, value);
		info_remedy("set %s to on or off, or unset it", param->name);
	} else if ((param->type == FI_PARAM_SIZE_T ||
		    param->type == FI_PARAM_INT) &&
		   !duo_param_is_number(value)) {
		info_found("parameter", INFO_WARNING, "%s=%s is not a number: "
			   "using the default", param->name, value);
		info_remedy("set %s to digits only (65536, not 64K), or unset "
			    "it", param->name);
	}
}

/*
 * Checks ENTRY, a variable "NAME=value" whose name begins with PREFIX. Does
 * nothing if no parameter has this prefix: its module is not loaded.
 */
static void info_check_entry(const struct fi_param *params, int count,
			     const char *prefix, const char *entry)
{
	size_t len = strcspn(entry, "=");
	const char *name = duo_param_renamed(entry, len);
	bool read = false;
	int i;

	for (i = 0; i < count; i++) {
		read |= !strncmp(params[i].name, prefix, strlen(prefix));
		if (strncmp(params[i].name, entry, len) ||
		    params[i].name[len] || !entry[len])
			continue;
		info_check_value(&params[i], entry + len + 1);
		return;
	}
	if (!read)
		return;		/* another check reports the missing module */
	info_found("parameter", INFO_WARNING, "%.*s is not a parameter: it is "
		   "ignored", (int)len, entry);
	if (name)
		info_remedy("set %s: the parameter was renamed", name);
	else
		info_remedy("fi_info -e | grep %s lists the parameters",
			    prefix);
}

/* Checks all variables. libfabric must have loaded its modules before. */
void info_check_params(const struct info_fabric *fabric)
{
	static const char *const prefixes[] = { "FI_OFI_DUO_", "FI_NEAR_" };
	struct fi_param *params = NULL;
	int count = 0;
	char **entry;
	size_t i;

	if (!fabric->getparams || !fabric->freeparams ||
	    fabric->getparams(&params, &count))
		return;
	for (entry = environ; *entry; entry++)
		for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
			if (!strncmp(*entry, prefixes[i], strlen(prefixes[i])))
				info_check_entry(params, count, prefixes[i],
						 *entry);
	fabric->freeparams(params);
}
