/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Can shm map the region of a peer? It does so at the first send, and when
 * it cannot, 2.0 to 2.6, it says -FI_EAGAIN for ever or uses MAP_FAILED as an
 * address. So we map it before shm is told of the peer. Control path only.
 */
#ifndef DUO_REGION_H
#define DUO_REGION_H

#include <stdbool.h>
#include <stddef.h>

/*
 * 0, or -errno of what failed. pending: so many others shm may still have to
 * map; under a limit of address space there must be room for these as well.
 */
int duo_region_probe(const char *name, size_t pending);

/* Its owner has not closed it, and if it has died, nobody came after it. */
bool duo_region_exists(const char *name);

#endif /* DUO_REGION_H */
