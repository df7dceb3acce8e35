/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Calls of fi_getinfo() for infos of other providers. */
#ifndef DUO_GETINFO_H
#define DUO_GETINFO_H

#include <stdbool.h>

/*
 * Internal flags of libfabric, unchanged from 1.17 to 2.6, by which in-tree
 * providers request infos of each other. All skip the filter of FI_PROVIDER,
 * which would drop a bare "efa" under FI_PROVIDER="efa;ofi_duo".
 */
#define DUO_GETINFO_INTERNAL (1ULL << 58)	/* any layering */
#define DUO_GETINFO_CORE_ONLY (1ULL << 59)	/* no utility provider */
#define DUO_GETINFO_HIDDEN (1ULL << 60)		/* hidden providers, too */

/* True during such a call, as fi_getinfo() calls this provider, too. */
extern __thread bool duo_in_getinfo;

#endif /* DUO_GETINFO_H */
