/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Without hwloc no distance is known. */

#include "fi/order.h"

unsigned int duo_hwloc_distance(const struct fi_pci_attr *pci)
{
	return DUO_DISTANCE_UNKNOWN;
}
