/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Calls of fi_getinfo() by which ofi_duo gets infos of other providers. */
#ifndef DUO_GETINFO_H
#define DUO_GETINFO_H

#include <stdbool.h>

/*
 * Internal flags of libfabric, the same from 1.17 to 2.6; libfabric's own
 * providers use them. Each of them disables the filter by FI_PROVIDER. If
 * FI_PROVIDER is "efa;ofi_duo", this filter would drop the infos of the
 * provider "efa", on which ofi_duo builds.
 */
#define DUO_GETINFO_INTERNAL (1ULL << 58) /* infos of any stack of providers */
#define DUO_GETINFO_CORE_ONLY (1ULL << 59) /* infos without utility providers */
#define DUO_GETINFO_HIDDEN (1ULL << 60)	/* infos of hidden providers as well */

/*
 * True while this thread calls fi_getinfo() with an internal flag. libfabric
 * then calls ofi_duo, too, which must return no info.
 */
extern __thread bool duo_in_getinfo;

#endif /* DUO_GETINFO_H */
