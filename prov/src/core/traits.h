/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores. Only this file and traits.c depend on the name of
 * a core. struct duo_traits (obj/traits.h) has the differences that matter on
 * the data path. The functions below are for fi_getinfo() and fi_open_ops().
 * None of them calls a provider. Lock: none.
 */
#ifndef DUO_TRAITS_H
#define DUO_TRAITS_H

#include <stdbool.h>
#include <rdma/fabric.h>

#include "obj/traits.h"

/* Returns the traits of a core, a stack of providers such as "tcp;ofi_rxm". */
struct duo_traits duo_traits_find(const char *core);
/* True if ofi_duo can wrap the provider with this name. */
bool duo_traits_allowed(const char *core);
/* Adds to hints, or to an info of the core, the bits that ofi_duo needs. */
void duo_traits_add_bits(struct fi_info *core);
/*
 * duo_traits_direct(): true if ofi_duo never wraps this fabric.
 * duo_traits_has_direct(): true if the core has such a fabric.
 */
bool duo_traits_direct(const struct fi_fabric_attr *attr);
bool duo_traits_has_direct(const char *core);
/*
 * Replaces *ops, a table of functions of the core's domain, if its functions
 * would get objects of ofi_duo as arguments. Returns 0; -FI_EOPNOTSUPP: ofi_duo
 * has no replacement.
 */
int duo_traits_domain_ops(struct fid *fid, const char *name, void **ops);

#endif /* DUO_TRAITS_H */
