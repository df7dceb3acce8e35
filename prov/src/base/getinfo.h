/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Calls of fi_getinfo() by which ofi_duo gets infos of other providers. */
#ifndef DUO_GETINFO_H
#define DUO_GETINFO_H

#include <stdbool.h>

/*
 * Internal flags of fi_getinfo(), the same in libfabric 1.17 to 2.7. With them,
 * libfabric does not filter infos by FI_PROVIDER. With FI_PROVIDER
 * "efa;ofi_duo", the filter would drop the infos of efa.
 */
#define DUO_GETINFO_INTERNAL (1ULL << 58) /* infos of providers and stacks */
#define DUO_GETINFO_CORE_ONLY (1ULL << 59) /* infos without utility providers */
#define DUO_GETINFO_HIDDEN (1ULL << 60)	/* infos of hidden providers as well */

/*
 * True while this thread calls fi_getinfo() with an internal flag. libfabric
 * then calls ofi_duo as well, and duo_getinfo() must return no info.
 */
extern __thread bool duo_in_getinfo;

#endif /* DUO_GETINFO_H */
