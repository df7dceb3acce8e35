/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks the cores that ofi_duo can wrap, and the location of their devices. */

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_endpoint.h>

#include "info.h"

#define INFO_NODES "/sys/devices/system/node"

/*
 * Providers that are no cores by themselves: ofi_duo does not wrap them, or
 * wraps them only as part of a stack of providers, such as "NAME;ofi_rxm".
 */
static const char *const info_no_cores[] = {
	"shm", "sm2", "lnx", "off_coll", "net", "efa-direct",
};

static bool info_pins;

bool info_cores_pin(void)
{
	return info_pins;
}

static bool info_is_core(const struct fi_info *info)
{
	const char *name = info->fabric_attr->prov_name;
	size_t i;

	if (info->ep_attr->type != FI_EP_RDM || strstr(name, "ofi_duo"))
		return false;
	for (i = 0; i < sizeof(info_no_cores) / sizeof(info_no_cores[0]); i++)
		if (!strcmp(name, info_no_cores[i]))
			return false;
	return true;
}

/* Returns the distance between two NUMA nodes: 10: same node, 0: unknown. */
static int info_distance(int from, int to)
{
	char path[128], line[4096], *at = line;
	long distance = 0;
	int i;

	snprintf(path, sizeof(path), INFO_NODES "/node%d/distance", from);
	if (!info_read_line(path, line, sizeof(line)))
		return 0;
	for (i = 0; i <= to; i++)
		distance = strtol(at, &at, 10);
	return (int) distance;
}

/*
 * Finds the last part of PATH that is a PCI address, and stores this part. For
 * devices of virtio and USB, other parts follow it, because these devices are
 * below a PCI device. Returns false if no part is a PCI address. Changes PATH.
 */
static bool info_pci_of(char *path, char *pci, size_t size)
{
	unsigned int part;
	char *slash;

	while ((slash = strrchr(path, '/'))) {
		if (sscanf(slash, "/%x:%x:%x.%x", &part, &part, &part,
			   &part) == 4) {
			snprintf(pci, size, "%s", slash + 1);
			return true;
		}
		*slash = '\0';
	}
	return false;
}

/* Stores the PCI address of the info's device. Returns false if it has none. */
static bool info_pci(const struct fi_info *info, char *pci, size_t size)
{
	const struct fi_pci_attr *attr;
	char path[PATH_MAX], target[PATH_MAX];

	if (info->nic && info->nic->bus_attr &&
	    info->nic->bus_attr->bus_type == FI_BUS_PCI) {
		attr = &info->nic->bus_attr->attr.pci;
		snprintf(pci, size, "%04x:%02x:%02x.%x", attr->domain_id,
			 attr->bus_id, attr->device_id, attr->function_id);
		return true;
	}
	snprintf(path, sizeof(path), "/sys/class/net/%s/device",
		 info->domain_attr->name);
	return realpath(path, target) && info_pci_of(target, pci, size);
}

static void info_device(const struct fi_info *info)
{
	const char *name = info->domain_attr->name;
	const char *prov = info->fabric_attr->prov_name;
	unsigned int node = 0;
	char pci[64], path[128];
	long long there;
	int distance;

	if (!info_pci(info, pci, sizeof(pci))) {
		info_found("device", INFO_OK, "%s %s, not on PCI", prov, name);
		return;
	}
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", pci);
	if (!info_read_number(path, &there) || there < 0 ||
	    getcpu(NULL, &node)) {
		info_found("device", INFO_OK, "%s %s, PCI %s, NUMA node "
			   "unknown", prov, name, pci);
		return;
	}
	distance = info_distance((int) node, (int) there);
	info_found("device", distance > 10 ? INFO_NOTE : INFO_OK,
		   "%s %s, PCI %s, NUMA node %lld, distance %d from node %u, "
		   "where fi_duo_info runs", prov, name, pci, there, distance,
		   node);
	if (distance > 10)
		info_remedy("bind the ranks that use it to node %lld (numactl "
			    "--cpunodebind=%lld, mpirun --map-by numa)", there,
			    there);
}

/*
 * True if an info before "info" in the list has the same provider. With
 * "device", it must also have the same device.
 */
static bool info_seen(const struct fi_info *list, const struct fi_info *info,
		      bool device)
{
	for (; list != info; list = list->next)
		if (info_is_core(list) &&
		    !strcmp(list->fabric_attr->prov_name,
			    info->fabric_attr->prov_name) &&
		    (!device || !strcmp(list->domain_attr->name,
					info->domain_attr->name)))
			return true;
	return false;
}

bool info_offers(const struct info_fabric *fabric, const char *prov)
{
	struct fi_info *hints = fabric->dupinfo(NULL), *info = NULL;
	bool offered;

	if (!hints)
		return false;
	hints->fabric_attr->prov_name = strdup(prov);
	offered = hints->fabric_attr->prov_name &&
		  !fabric->getinfo(fabric->version, NULL, NULL, 0, hints,
				   &info);
	if (offered)
		fabric->freeinfo(info);
	fabric->freeinfo(hints);
	return offered;
}

/* Appends NAME, in quotes, to the comma-separated LIST. */
static void info_add(char *list, size_t size, const char *name)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s\"%s\"", len ? ", " : "", name);
}

static void info_check_offers(const struct info_fabric *fabric,
			      const struct fi_info *list)
{
	char offered[512] = "", name[128];
	const struct fi_info *info;

	for (info = list; info; info = info->next) {
		if (!info_is_core(info) || info_seen(list, info, false))
			continue;
		snprintf(name, sizeof(name), "%s;ofi_duo",
			 info->fabric_attr->prov_name);
		if (info_offers(fabric, name))
			info_add(offered, sizeof(offered), name);
	}
	if (offered[0]) {
		info_found("offered", INFO_OK, "%s", offered);
	} else {
		info_found("offered", INFO_ERROR, "libfabric returns no core "
			   "with ofi_duo");
		info_remedy("see the errors above, or run FI_LOG_LEVEL=warn "
			    "fi_info -p \"tcp;ofi_duo\" for the reason");
	}
	info_check_filter(fabric, offered);
	if (info_local_is_shm() && !info_offers(fabric, "shm")) {
		info_found("shm_prov", INFO_WARNING, "libfabric returns no "
			   "provider shm, the core carries all messages");
		info_remedy("if /dev/shm is large enough, install a libfabric "
			    "that was built with shm (fi_info -p shm)");
	}
}

void info_check_cores(const struct info_fabric *fabric)
{
	struct fi_info *list = NULL;
	const struct fi_info *info;
	int ret;

	if (!fabric->version)
		return;
	ret = fabric->getinfo(fabric->version, NULL, NULL, 0, NULL, &list);
	if (ret) {
		info_found("device", INFO_ERROR, "libfabric returns no "
			   "provider (%d)", ret);
		info_remedy("check the network devices, and run "
			    "FI_LOG_LEVEL=warn fi_info for the reason");
		return;
	}
	for (info = list; info; info = info->next) {
		if (!info_is_core(info) || info_seen(list, info, true))
			continue;
		info_pins |= info->domain_attr->mr_mode & FI_MR_LOCAL;
		if (!strchr(info->fabric_attr->prov_name, ';'))
			info_device(info);
	}
	info_check_offers(fabric, list);
	fabric->freeinfo(list);
}
