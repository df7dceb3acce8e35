/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What a device is called: its GID, IPv4 address and PCI address. */
#ifndef SOFTEFA_NETID_H
#define SOFTEFA_NETID_H

#include <netinet/in.h>
#include <stddef.h>

#include <infiniband/verbs.h>

/* One GID per network namespace (shm) or per IPv4 address (udp) and device. */
void se_netid_gid(int dev_index, union ibv_gid *gid);

/* The IPv4 address that a GID of the udp wire holds. */
struct in_addr se_netid_gid_addr(const union ibv_gid *gid);

/* "0000:00:03.0": of a device of this machine, network devices first. */
void se_netid_pci(int dev_index, char *pci, size_t size);

#endif
