/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The peers that libfabric's shm knows: an AV of its own for each endpoint. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "base/log.h"
#include "near/near.h"
#include "obj/fabric.h"
#include "shm/shm.h"

int duo_shm_av_open(struct duo_ep *ep)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	return fi_av_open(ep->domain->path_domain[FI_DUO_LOCAL], &attr,
			  &ep->shm->av, NULL);
}

/* Returns the peer's number in shm's AV, FI_ADDR_NOTAVAIL if it has none. */
static fi_addr_t duo_shm_known(const struct duo_shm *shm, const char *peer_name)
{
	fi_addr_t number;

	for (number = 0; number < DUO_SHM_PEERS; number++) {
		if (!strcmp(shm->name[number], peer_name))
			return number;
	}
	return FI_ADDR_NOTAVAIL;
}

/*
 * Maps a peer's region and unmaps it again. shm maps it at the first send, and
 * if it cannot, 2.0 to 2.6 return -FI_EAGAIN for ever or use MAP_FAILED as an
 * address. Returns 0 or -errno.
 */
static int duo_shm_probe(const char *name)
{
	struct stat st = { .st_size = 0 };
	int ret, fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	void *map;

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : st.st_size ? 0 : -FI_ENODATA;
	map = ret ? MAP_FAILED : mmap(NULL, st.st_size, PROT_READ | PROT_WRITE,
				      MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		munmap(map, st.st_size);
	else if (!ret)
		ret = -errno;
	close(fd);
	return ret;
}

static bool duo_shm_reachable(struct duo_ep *ep, const char *peer_name,
			      fi_addr_t addr)
{
	int ret = duo_shm_probe(peer_name);

	if (!ret)
		return true;
	if (ep->map->reason[addr] != FI_DUO_NOT_MAPPED)
		DUO_WARN(AV, "ep %p: the shared memory " DUO_DEV_SHM "/%s of "
			 "the peer with fi_addr %" PRIu64 " cannot be mapped: "
			 "%s; the core %s carries its messages. Check that the "
			 "file is there, the limits (ulimit -n, -v) and the log "
			 "of a security module\n", (void *) ep, peer_name, addr,
			 fi_strerror(-ret), ep->domain->fabric->core_name);
	ep->map->reason[addr] = FI_DUO_NOT_MAPPED;
	ep->map->failed = true;
	return false;
}

static fi_addr_t duo_shm_insert(struct duo_shm *shm, const char *peer_name)
{
	fi_addr_t number = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insert(shm->av, peer_name, 1, &number, 0, NULL);

	if (ret != 1 || number >= DUO_SHM_PEERS) {
		DUO_WARN(AV, "shm does not take peer %s: %d; the core carries "
			 "its messages\n", peer_name, ret);
		return FI_ADDR_NOTAVAIL;
	}
	strcpy(shm->name[number], peer_name);
	return number;
}

/*
 * Never an endpoint of this process: fi_close of an AV reads the regions of
 * all its peers, also those that the process has closed before, and 2.5 and
 * newer compute addresses in it from 0.
 */
fi_addr_t duo_shm_connect(struct duo_ep *ep, const char *peer_name,
			  fi_addr_t addr, enum fi_duo_reason *reason)
{
	fi_addr_t number = duo_shm_known(ep->shm, peer_name);

	if (number != FI_ADDR_NOTAVAIL)
		return number;
	*reason = FI_DUO_NAMESPACE;
	if (duo_shm_sibling(ep->publication.peer_name, peer_name))
		return FI_ADDR_NOTAVAIL;
	*reason = FI_DUO_NOT_MAPPED;
	if (!duo_shm_reachable(ep, peer_name, addr))
		return FI_ADDR_NOTAVAIL;
	*reason = FI_DUO_PEER_FULL;
	number = duo_shm_insert(ep->shm, peer_name);
	if (number != FI_ADDR_NOTAVAIL)
		*reason = FI_DUO_REGISTERED;
	return number;
}

/* True if its owner has not closed the region, and nobody removed it since. */
bool duo_shm_lives(const struct duo_ep *ep, fi_addr_t number)
{
	char path[sizeof(DUO_DEV_SHM "/") + DUO_PEER_NAME_MAX];

	snprintf(path, sizeof(path), DUO_DEV_SHM "/%s",
		 ep->shm->name[number]);
	return !access(path, F_OK);
}

/* Where the other endpoints' processes may run is not looked up. */
bool duo_shm_crowded(const struct duo_ep *ep, size_t endpoints)
{
	return near_crowd(NULL, 0, near_crowd_others(endpoints, 1));
}
