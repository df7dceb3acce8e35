/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks the interfaces, which MPI and the cores tcp and sockets use. */

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "info.h"

static bool info_has_address(const struct ifaddrs *at, bool loopback)
{
	if (!at->ifa_addr || !(at->ifa_flags & IFF_UP))
		return false;
	return (at->ifa_addr->sa_family == AF_INET ||
		at->ifa_addr->sa_family == AF_INET6) &&
	       loopback == !!(at->ifa_flags & IFF_LOOPBACK);
}

void info_check_network(void)
{
	struct ifaddrs *list = NULL, *at;
	bool outside = false, loopback = false;

	if (getifaddrs(&list))
		return;
	for (at = list; at; at = at->ifa_next) {
		outside |= info_has_address(at, false);
		loopback |= info_has_address(at, true);
	}
	freeifaddrs(list);
	if (outside) {
		info_found("network", INFO_OK, "an interface with an IP address "
			   "is up");
	} else if (loopback) {
		info_found("network", INFO_NOTE, "no interface but loopback is "
			   "up: MPI and the core tcp reach no other host");
		info_remedy("for jobs on several hosts: ip link set DEVICE up, "
			    "with an address (docker --network=host)");
	} else {
		info_found("network", INFO_WARNING, "no interface is up, not "
			   "even loopback: MPI may not start, the core tcp "
			   "cannot be used");
		info_remedy("ip link set lo up; for jobs on several hosts "
			    "also a device with an address (docker "
			    "--network=host)");
	}
}
