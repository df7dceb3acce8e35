/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores, the providers that ofi_duo wraps, by their names.
 * Calls no provider. Lock: none.
 */
#ifndef DUO_TRAITS_H
#define DUO_TRAITS_H

#include <stdbool.h>
#include <rdma/fabric.h>

#include "obj/traits.h"

/* Returns the traits of a core or stack of providers, such as "tcp;ofi_rxm". */
struct duo_traits duo_traits_find(const char *core);
/* True if ofi_duo can wrap the provider `core`. */
bool duo_traits_allowed(const char *core);
/*
 * If the core is efa, adds FI_REMOTE_COMM and FI_ORDER_SAS. Without
 * FI_REMOTE_COMM, efa would use its own shared memory. Without FI_ORDER_SAS,
 * efa could not cancel receives. core: hints for the core, or an info of the
 * core.
 */
void duo_traits_add_bits(struct fi_info *core);
/*
 * True if attr names the fabric efa-direct. ofi_duo never wraps this fabric,
 * because it has no tags and cannot cancel receives.
 */
bool duo_traits_direct(const struct fi_fabric_attr *attr);
/* True if the core has a fabric for which duo_traits_direct() is true. */
bool duo_traits_has_direct(const char *core);
/*
 * Replaces *ops by ofi_duo's own table if the functions in *ops have objects of
 * the core as arguments, because the application has only objects of ofi_duo.
 * name, *ops: argument and result of fi_open_ops(3) on the core's domain.
 * Returns 0; -FI_EOPNOTSUPP: such a table is necessary, and ofi_duo has none.
 */
int duo_traits_domain_ops(struct fid *fid, const char *name, void **ops);

#endif /* DUO_TRAITS_H */
