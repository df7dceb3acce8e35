/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Checks the text of parameters. This is necessary, because libfabric itself
 * reads "abc" as 0 and "5x" as 5.
 */
#ifndef DUO_PARAM_H
#define DUO_PARAM_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool duo_param_is_number(const char *text)
{
	char *end;

	errno = 0;
	strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

/* Returns the parameter's new name if `variable` is a former one, else NULL. */
static inline const char *duo_param_renamed(const char *variable, size_t len)
{
	static const char *const names[][2] = {
		{ "FI_OFI_DUO_USE_SHM", "FI_OFI_DUO_LOCAL" },
		{ "FI_OFI_DUO_PEER", "FI_OFI_DUO_LOCAL" },
		{ "FI_OFI_DUO_LAZY_POLLS", "FI_OFI_DUO_DEFER_POLLS" },
		{ "FI_OFI_DUO_LAZY_TIME", "FI_OFI_DUO_DEFER_US" },
		{ "FI_OFI_DUO_CORE_INTERVAL", "FI_OFI_DUO_CORE_POLL_INTERVAL" },
		{ "FI_OFI_DUO_WAIT_INTERVAL", "FI_OFI_DUO_WAIT_POLL_US" },
		{ "FI_OFI_DUO_NEAR_MEMORY", "FI_OFI_DUO_RING_MEMORY" },
		{ "FI_NEAR_MEMORY", "FI_NEAR_RING_MEMORY" },
		{ "FI_NEAR_YIELD", "FI_NEAR_YIELD_POLLS" },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i][0]) == len &&
		    !strncmp(names[i][0], variable, len))
			return names[i][1];
	return NULL;
}

#endif /* DUO_PARAM_H */
