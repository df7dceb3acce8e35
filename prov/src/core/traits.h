/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores. Only this file and traits.c use names of cores.
 * obj/traits.h has the traits of the data path; the others are for fi_getinfo
 * and fi_open_ops. Pure, but for the operations of a domain. No lock.
 */
#ifndef DUO_TRAITS_H
#define DUO_TRAITS_H

#include <stdbool.h>
#include <rdma/fabric.h>

#include "obj/traits.h"

/* Returns the traits of a core; its name includes layers: "tcp;ofi_rxm". */
struct duo_traits duo_traits_find(const char *core);
/* True if ofi_duo can wrap this provider. */
bool duo_traits_allowed(const char *core);
/* Adds bits that a core requires to hints or info for it. */
void duo_traits_ask(struct fi_info *core);
/* True if ofi_duo never wraps this fabric of a core. */
bool duo_traits_direct(const struct fi_fabric_attr *attr);
bool duo_traits_has_direct(const char *core);
/*
 * Replaces *ops, the core's operations of a domain, by operations for ofi_duo's
 * objects, if needed. Returns 0, or -FI_EOPNOTSUPP: ofi_duo has none.
 */
int duo_traits_domain_ops(struct fid *fid, const char *name, void **ops);

#endif /* DUO_TRAITS_H */
