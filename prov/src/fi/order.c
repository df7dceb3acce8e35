/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The order of infos of several devices, see order.h. */

#include <stdlib.h>
#include <string.h>

#include "fi/order.h"

struct duo_order_place {
	struct fi_info *info;
	unsigned int distance;
};

/* NULL: the device is none of PCI. */
static const struct fi_pci_attr *duo_order_pci(const struct fi_info *info)
{
	const struct fi_bus_attr *bus = info->nic ? info->nic->bus_attr : NULL;

	return bus && bus->bus_type == FI_BUS_PCI ? &bus->attr.pci : NULL;
}

static bool duo_order_same(const struct fi_pci_attr *a,
			   const struct fi_pci_attr *b)
{
	return a->domain_id == b->domain_id && a->bus_id == b->bus_id &&
	       a->device_id == b->device_id &&
	       a->function_id == b->function_id;
}

/* Are there two devices? */
static bool duo_order_several(const struct fi_info *list)
{
	const struct fi_pci_attr *pci, *first = NULL;

	for (; list; list = list->next) {
		pci = duo_order_pci(list);
		if (pci && first && !duo_order_same(pci, first))
			return true;
		first = pci ? pci : first;
	}
	return false;
}

static bool duo_order_before(const struct duo_order_place *a,
			     const struct duo_order_place *b)
{
	return a->distance != DUO_DISTANCE_UNKNOWN &&
	       b->distance != DUO_DISTANCE_UNKNOWN &&
	       a->distance < b->distance &&
	       !strcmp(a->info->fabric_attr->name, b->info->fabric_attr->name);
}

/* Stable: the core's order holds among those that are equally far. */
static void duo_order_sort(struct duo_order_place *place, size_t count)
{
	struct duo_order_place moved;
	size_t i, at;

	for (i = 1; i < count; i++) {
		for (at = i; at > 0 && duo_order_before(&place[at],
							&place[at - 1]); at--) {
			moved = place[at];
			place[at] = place[at - 1];
			place[at - 1] = moved;
		}
	}
}

static void duo_order_measure(struct duo_order_place *place,
			      struct fi_info *list, duo_distance distance)
{
	const struct fi_pci_attr *pci;

	for (; list; list = list->next, place++) {
		pci = duo_order_pci(list);
		place->info = list;
		place->distance = pci ? distance(pci) : DUO_DISTANCE_UNKNOWN;
	}
}

struct fi_info **duo_order(struct fi_info **list, duo_distance distance)
{
	struct duo_order_place *place = NULL;
	struct fi_info **end = list;
	size_t i, count = 0;

	for (; *end; end = &(*end)->next)
		count++;
	if (duo_order_several(*list))
		place = calloc(count, sizeof(*place));
	if (!place)
		return end;
	duo_order_measure(place, *list, distance);
	duo_order_sort(place, count);
	for (i = 0; i < count; i++) {
		*list = place[i].info;
		list = &place[i].info->next;
	}
	*list = NULL;
	free(place);
	return list;
}
