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

#endif /* DUO_PARAM_H */
