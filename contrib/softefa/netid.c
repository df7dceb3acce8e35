/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "softefa_config.h"
#include "netid.h"

#define SE_PCI_MAX 256

/*
 * Returns the IPv4 address of the first interface that is up and not loopback;
 * "addr" if there is none.
 */
static struct in_addr se_netid_outside(struct in_addr addr)
{
	struct ifaddrs *list, *ifa;

	if (getifaddrs(&list))
		return addr;
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != AF_INET ||
		    !(ifa->ifa_flags & IFF_UP) ||
		    (ifa->ifa_flags & IFF_LOOPBACK))
			continue;
		addr = ((struct sockaddr_in *)ifa->ifa_addr)->sin_addr;
		break;
	}
	freeifaddrs(list);
	return addr;
}

static struct in_addr se_netid_addr(void)
{
	struct in_addr addr = { .s_addr = htonl(INADDR_LOOPBACK) };

	if (!se_cfg.addr[0])
		return addr;
	if (!strcmp(se_cfg.addr, "outside"))
		return se_netid_outside(addr);
	if (inet_pton(AF_INET, se_cfg.addr, &addr) != 1)
		fprintf(stderr, "softefa: SOFTEFA_ADDR=%s is neither an IPv4 address nor \"outside\"; ignored\n",
			se_cfg.addr);
	return addr;
}

/*
 * Returns a number that identifies this network namespace; never 0. The number
 * depends on the host, too, because namespaces of two hosts may have the same
 * inode number.
 */
static uint64_t se_netid_host(void)
{
	char text[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	uint64_t hash = 0xcbf29ce484222325ull;
	const char *at;
	struct stat st;

	if (file && !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	for (at = text; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 0x100000001b3ull;
	if (!stat("/proc/self/ns/net", &st))
		hash ^= (uint64_t)st.st_ino;
	return hash ? hash : 1;
}

void se_netid_gid(int dev_index, union ibv_gid *gid)
{
	struct in_addr addr;

	memset(gid, 0, sizeof(*gid));
	if (se_cfg.gid[0] && !se_cfg.udp) {
		if (inet_pton(AF_INET6, se_cfg.gid, gid->raw) == 1) {
			gid->raw[7] = (uint8_t)(gid->raw[7] + dev_index);
			return;
		}
		fprintf(stderr, "softefa: SOFTEFA_GID=%s is not an IPv6 address; ignored\n",
			se_cfg.gid);
	}
	gid->raw[0] = 0xfe;
	gid->raw[1] = 0x80;
	gid->raw[7] = (uint8_t)dev_index;
	if (se_cfg.udp) {
		addr = se_netid_addr();
		gid->raw[10] = 0xff;
		gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &addr, sizeof(addr));
		return;
	}
	gid->global.interface_id = htobe64(se_netid_host());
}

struct in_addr se_netid_gid_addr(const union ibv_gid *gid)
{
	struct in_addr addr;

	memcpy(&addr, &gid->raw[12], sizeof(addr));
	return addr;
}

/*
 * Returns the rank of a PCI device. EFA devices get the addresses with the
 * lowest ranks. Network and storage controllers come first, because hwloc's
 * topology contains them. Bridges, which hwloc omits, come behind other
 * devices, and unreadable devices last.
 */
static int se_netid_pci_rank(const char *pci)
{
	unsigned int class = 0;
	char path[320];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class", pci);
	file = fopen(path, "re");
	if (!file)
		return 9;
	if (fscanf(file, "%x", &class) != 1)
		class = 0;
	fclose(file);
	switch (class >> 16) {
	case 0x02:
		return 0;
	case 0x01:
		return 1;
	case 0x06:
		return 4;
	default:
		return 2;
	}
}

struct se_pci_name {
	int rank;
	char name[16];
};

static int se_netid_pci_compare(const void *a, const void *b)
{
	const struct se_pci_name *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank - right->rank;
	return strcmp(left->name, right->name);
}

void se_netid_pci(int dev_index, char *pci, size_t size)
{
	struct se_pci_name found[SE_PCI_MAX];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	if (se_cfg.pci[0] && !dev_index) {
		snprintf(pci, size, "%s", se_cfg.pci);
		return;
	}
	dir = opendir("/sys/bus/pci/devices");
	while (dir && count < SE_PCI_MAX && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    strlen(entry->d_name) >= sizeof(found[0].name))
			continue;
		strcpy(found[count].name, entry->d_name);
		found[count].rank = se_netid_pci_rank(entry->d_name);
		count++;
	}
	if (dir)
		closedir(dir);
	qsort(found, (size_t)count, sizeof(found[0]), se_netid_pci_compare);
	/* with fewer PCI devices than SOFTEFA_NDEV, addresses repeat */
	if (count)
		snprintf(pci, size, "%s", found[dev_index % count].name);
	else
		snprintf(pci, size, "0000:00:%02x.0", 0x1e - dev_index);
}
