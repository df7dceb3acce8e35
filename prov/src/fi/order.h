/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Devices near to the caller come first. order.c sorts and is pure;
 * distance.c asks hwloc, distance_none.c stands where that is not built in.
 */
#ifndef DUO_API_ORDER_H
#define DUO_API_ORDER_H

#include <limits.h>
#include <stdbool.h>
#include <rdma/fabric.h>

#define DUO_DISTANCE_UNKNOWN UINT_MAX

/* Of a device from the caller's binding; smaller is nearer. */
typedef unsigned int (*duo_distance)(const struct fi_pci_attr *pci);

unsigned int duo_hwloc_distance(const struct fi_pci_attr *pci);

/*
 * Sorts a list of one core's infos. Those of one fabric change places, if the
 * distances of both are known and differ; nothing is asked where there is but
 * one device. Returns where the list ends; without memory it stays as it is.
 */
struct fi_info **duo_order(struct fi_info **list, duo_distance distance);

#endif /* DUO_API_ORDER_H */
