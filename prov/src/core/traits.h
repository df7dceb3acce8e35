/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What a core does differently, by its name: all that knows names of cores.
 * obj/traits.h has what the data path asks; the rest is for fi_getinfo and
 * fi_open_ops. Pure, but for the operations of a domain. No lock.
 */
#ifndef DUO_TRAITS_H
#define DUO_TRAITS_H

#include <stdbool.h>
#include <rdma/fabric.h>

#include "obj/traits.h"

/* Of a core by its name, layers included, as "tcp;ofi_rxm". */
struct duo_traits duo_traits_find(const char *core);
/* Can it be a core at all? */
bool duo_traits_allowed(const char *core);
/* Adds to hints or info for a core what it must be asked for. */
void duo_traits_ask(struct fi_info *core);
/* Is the fabric offered as the core's own or not at all? */
bool duo_traits_direct(const struct fi_fabric_attr *attr);
bool duo_traits_has_direct(const char *core);
/*
 * *ops: what the core has given for a domain of ours. Puts what takes our
 * objects in its place; -FI_EOPNOTSUPP: there is no such thing.
 */
int duo_traits_domain_ops(struct fid *fid, const char *name, void **ops);

#endif /* DUO_TRAITS_H */
