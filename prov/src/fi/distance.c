/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * How far devices are, by hwloc: the deeper the smallest part of the machine
 * that has both the device and all of the caller's processors, the nearer. A
 * caller that is not bound is equally far from all. The machine is looked at
 * once in a process, when it is first asked for.
 */

#include <pthread.h>
#include <hwloc.h>

#include "fi/order.h"
#include "base/log.h"

static pthread_once_t duo_topology_once = PTHREAD_ONCE_INIT;
static hwloc_topology_t duo_topology;	/* NULL: unknown */

static void duo_topology_load(void)
{
	hwloc_topology_t topology;

	if (hwloc_topology_init(&topology))
		return;
	if (hwloc_topology_set_io_types_filter(
		    topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
	    hwloc_topology_load(topology)) {
		DUO_WARN(FABRIC, "hwloc cannot tell the machine's topology: "
			 "devices are in the core's order\n");
		hwloc_topology_destroy(topology);
		return;
	}
	duo_topology = topology;
}

/* The smallest part with the processors and the device; -1: there is none. */
static int duo_topology_depth(hwloc_obj_t device, hwloc_bitmap_t cpus)
{
	hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(duo_topology,
							  device);
	hwloc_obj_t both = NULL;

	if (place && !hwloc_get_cpubind(duo_topology, cpus,
					HWLOC_CPUBIND_THREAD) &&
	    !hwloc_bitmap_or(cpus, cpus, place->cpuset))
		both = hwloc_get_obj_covering_cpuset(duo_topology, cpus);
	return both ? both->depth : -1;
}

unsigned int duo_hwloc_distance(const struct fi_pci_attr *pci)
{
	hwloc_bitmap_t cpus;
	hwloc_obj_t device;
	int depth = -1;

	pthread_once(&duo_topology_once, duo_topology_load);
	if (!duo_topology)
		return DUO_DISTANCE_UNKNOWN;
	device = hwloc_get_pcidev_by_busid(duo_topology, pci->domain_id,
					   pci->bus_id, pci->device_id,
					   pci->function_id);
	cpus = hwloc_bitmap_alloc();
	if (device && cpus)
		depth = duo_topology_depth(device, cpus);
	hwloc_bitmap_free(cpus);
	return depth < 0 ? DUO_DISTANCE_UNKNOWN :
	       (unsigned int) (hwloc_topology_get_depth(duo_topology) - depth);
}
