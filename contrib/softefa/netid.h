/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Names of a device: its GID, IPv4 address and PCI address. */
#ifndef SOFTEFA_NETID_H
#define SOFTEFA_NETID_H

#include <netinet/in.h>
#include <stddef.h>

#include <infiniband/verbs.h>

/*
 * Stores the GID of the device with this index. On the udp wire, the GID
 * contains an IPv4 address of this host, and the index. On the shm wire, the
 * GID contains a number of this network namespace, and the index; with
 * SOFTEFA_GID it is that GID, with the index added to byte 7.
 */
void se_netid_gid(int dev_index, union ibv_gid *gid);

/* Returns the IPv4 address in a GID of the udp wire. */
struct in_addr se_netid_gid_addr(const union ibv_gid *gid);

/* Stores the PCI address of a device of this host, such as "0000:00:03.0". */
void se_netid_pci(int dev_index, char *pci, size_t size);

#endif
