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
#include <stdlib.h>

static inline bool duo_param_is_number(const char *text)
{
	char *end;

	errno = 0;
	strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

#endif /* DUO_PARAM_H */
