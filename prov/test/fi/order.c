/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The order of devices; a device's distance is what the test says. */

#include "fi/order.h"
#include "unit.h"

#define NO_NIC 99

static unsigned int distances[4];
static int asked;

static unsigned int distance(const struct fi_pci_attr *pci)
{
	asked++;
	return distances[pci->bus_id];
}

static struct fi_info *info_of(int device, const char *fabric)
{
	struct fi_info *info = fi_allocinfo();

	info->fabric_attr->name = strdup(fabric);
	info->fabric_attr->prov_version = device;
	if (device == NO_NIC)
		return info;
	info->nic = calloc(1, sizeof(*info->nic));
	info->nic->bus_attr = calloc(1, sizeof(*info->nic->bus_attr));
	info->nic->bus_attr->bus_type = FI_BUS_PCI;
	info->nic->bus_attr->attr.pci.bus_id = device;
	return info;
}

static void free_list(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		info->next = NULL;
		if (info->nic) {
			free(info->nic->bus_attr);
			free(info->nic);
			info->nic = NULL;
		}
		fi_freeinfo(info);
	}
}

#define U DUO_DISTANCE_UNKNOWN

static const struct {
	const char *name;
	int devices[5];			/* 0 ends, so device 0 is not used */
	const char *fabrics[5];
	unsigned int distances[4];
	int order[5];
} rows[] = {
	{ "nearest first", { 1, 2, 3 }, { "a", "a", "a" }, { 0, 3, 2, 1 },
	  { 3, 2, 1 } },
	{ "unbound", { 2, 1, 3 }, { "a", "a", "a" }, { 0, 5, 5, 5 },
	  { 2, 1, 3 } },
	{ "stable", { 1, 2, 1, 2 }, { "a", "a", "a", "a" }, { 0, 2, 1, 0 },
	  { 2, 2, 1, 1 } },
	{ "within a fabric", { 1, 2, 1, 2 }, { "a", "a", "b", "b" },
	  { 0, 2, 1, 0 }, { 2, 1, 2, 1 } },
	{ "fabrics do not mix", { 1, 2 }, { "a", "b" }, { 0, 2, 1, 0 },
	  { 1, 2 } },
	{ "an unknown one stays", { 1, 2, 3 }, { "a", "a", "a" },
	  { 0, 2, U, 1 }, { 1, 2, 3 } },
	{ "without a device", { NO_NIC, 1, 2 }, { "a", "a", "a" },
	  { 0, 2, 1, 0 }, { NO_NIC, 2, 1 } },
};

UNIT_CASE("order", NULL, NULL);

UNIT_LOOP(order, 0, ARRAY_SIZE(rows))
{
	struct fi_info *list = NULL, **tail = &list, *info;
	int i;

	for (i = 0; i < 5 && rows[_i].devices[i]; i++) {
		*tail = info_of(rows[_i].devices[i], rows[_i].fabrics[i]);
		tail = &(*tail)->next;
	}
	memcpy(distances, rows[_i].distances, sizeof(distances));
	tail = duo_order(&list, distance);
	ck_assert_ptr_null(*tail);
	for (i = 0, info = list; info; info = info->next, i++)
		ck_assert_msg((int) info->fabric_attr->prov_version ==
			      rows[_i].order[i], "%s: place %d",
			      rows[_i].name, i);
	ck_assert_msg(!rows[_i].order[i], "%s: %d of them", rows[_i].name, i);
	free_list(list);
}

/* hwloc takes its time. */
UNIT_TEST(one_device)
{
	struct fi_info *list = NULL;

	asked = 0;
	ck_assert_ptr_eq(duo_order(&list, distance), &list);
	list = info_of(1, "a");
	list->next = info_of(1, "a");
	ck_assert_ptr_eq(duo_order(&list, distance), &list->next->next);
	ck_assert_int_eq(asked, 0);
	free_list(list);
}
