/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Numbers among the runtime parameters. libfabric takes text that is no number
 * for 0, or for the number that it begins with, and says nothing.
 */
#ifndef DUO_PARAM_H
#define DUO_PARAM_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

static inline bool duo_param_is_number(const char *text)
{
	char *end;

	errno = 0;
	strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

/* False, and VALUE as it was: none is set, or something that is no number. */
static inline bool duo_param_number(struct fi_provider *prov,
				     const char *name, size_t *value)
{
	char variable[64], *c;
	const char *text;

	snprintf(variable, sizeof(variable), "FI_%s_%s", prov->name, name);
	for (c = variable; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	text = getenv(variable);
	if (!text || duo_param_is_number(text))
		return !fi_param_get_size_t(prov, name, value);
	FI_WARN(prov, FI_LOG_CORE, "%s=%s is no number, %zu is used; set it "
		"to digits alone, or unset it\n", variable, text, *value);
	return false;
}

#endif /* DUO_PARAM_H */
