/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Names of a device: its GID, IPv4 address and PCI address. */
#ifndef SOFTEFA_NETID_H
#define SOFTEFA_NETID_H

#include <netinet/in.h>
#include <stddef.h>

#include <infiniband/verbs.h>

/*
 * Stores the GID of the device with this index. The GID contains the index and,
 * on the shm wire, a number of this network namespace (or it is derived from
 * SOFTEFA_GID); on the udp wire, an IPv4 address of this host.
 */
void se_netid_gid(int dev_index, union ibv_gid *gid);

/* Returns the IPv4 address in a GID of the udp wire. */
struct in_addr se_netid_gid_addr(const union ibv_gid *gid);

/* Stores the PCI address of a device of this host, such as "0000:00:03.0". */
void se_netid_pci(int dev_index, char *pci, size_t size);

#endif
