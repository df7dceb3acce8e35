/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Whom libfabric's shm has been told of: an AV of its for each endpoint. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/map.h"
#include "base/log.h"
#include "base/params.h"
#include "near_crowd.h"
#include "obj/fabric.h"
#include "peer/shm/region.h"
#include "peer/shm/shm.h"

#define DUO_SHM_GONE ".gone"	/* the second place of a closed endpoint */

int duo_shm_av_open(struct duo_ep *ep)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	return fi_av_open(ep->domain->path_domain[FI_DUO_LOCAL], &attr,
			  &ep->shm->av, NULL);
}

/* The shm address of a peer that shm has been told of, or NOTAVAIL. */
static fi_addr_t duo_shm_known(const struct duo_shm *shm, const char *peer_name)
{
	fi_addr_t number;

	for (number = 0; number < DUO_SHM_PEERS; number++) {
		if (!strcmp(shm->name[number], peer_name))
			return number;
	}
	return FI_ADDR_NOTAVAIL;
}

static const char *duo_shm_map_remedy(int ret)
{
	switch (-ret) {
	case ENOENT:
	case FI_ENODATA:
		return "Somebody has removed it: restart that process";
	case ENOMEM:
		return "Raise the limit of address space (ulimit -v)";
	case EMFILE:
	case ENFILE:
		return "Raise the limit of open files (ulimit -n)";
	default:
		return "A security module may forbid it: see its log";
	}
}

/* Peers that shm may still have to map: a message comes from one it has. */
static size_t duo_shm_pending(const struct duo_ep *ep)
{
	size_t i, pending = ep->shm->known;

	for (i = 0; i < DUO_SHM_PEERS / 64; i++)
		pending -= __builtin_popcountll(ep->confirmed[i]);
	return pending;
}

/* False: the core has to carry what goes to this peer. */
static bool duo_shm_reachable(struct duo_ep *ep, const char *peer_name,
			      fi_addr_t addr)
{
	int ret = duo_region_probe(peer_name, duo_shm_pending(ep));

	if (!ret)
		return true;
	if (ep->map->reason[addr] != FI_DUO_NOT_MAPPED)
		DUO_WARN(AV, "ep %p: the shared memory " DUO_DEV_SHM "/%s of "
			 "the peer with fi_addr %" PRIu64 " cannot be mapped: "
			 "%s; the core %s carries its messages. %s\n",
			 (void *) ep, peer_name, addr, fi_strerror(-ret),
			 ep->domain->fabric->core_name,
			 duo_shm_map_remedy(ret));
	ep->map->reason[addr] = FI_DUO_NOT_MAPPED;
	return false;
}

/* The peer's shm address, NOTAVAIL if shm does not take it. */
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
	shm->known++;
	return number;
}

/* Told of a peer once: shm forgets none and counts all. */
fi_addr_t duo_shm_connect(struct duo_ep *ep, const char *peer_name,
			      fi_addr_t addr, enum fi_duo_reason *reason)
{
	fi_addr_t number = duo_shm_known(ep->shm, peer_name);

	if (number != FI_ADDR_NOTAVAIL)
		return number;
	*reason = FI_DUO_NAMESPACE;
	if (duo_params.shm_apart &&
	    duo_shm_sibling(ep->publication.peer_name, peer_name))
		return FI_ADDR_NOTAVAIL;	/* so says the other one, too */
	*reason = FI_DUO_NOT_MAPPED;
	if (!duo_shm_reachable(ep, peer_name, addr)) {
		duo_registry_refuse(&ep->publication, peer_name);
		ep->map->failed = true;
		return FI_ADDR_NOTAVAIL;
	}
	*reason = FI_DUO_PEER_FULL;
	number = duo_shm_insert(ep->shm, peer_name);
	if (number != FI_ADDR_NOTAVAIL)
		*reason = FI_DUO_REGISTERED;
	return number;
}

bool duo_shm_lives(const struct duo_ep *ep, fi_addr_t number)
{
	return duo_region_exists(ep->shm->name[number]);
}

bool duo_shm_crowded(const struct duo_ep *ep, size_t endpoints)
{
	pid_t pid[DUO_SHM_PEERS];
	size_t i, count = 0;

	for (i = 0; i < DUO_SHM_PEERS; i++)
		if (ep->shm->name[i][0])
			pid[count++] = duo_shm_pid(ep->shm->name[i]);
	return near_crowd(pid, count, near_crowd_others(endpoints, 1 + count));
}

/*
 * shm forgets the region of a peer, which is about to be closed. It may have
 * got the peer from the peer alone: fi_av_insert finds it then.
 */
void duo_shm_leaves(struct duo_ep *ep, const char *peer_name)
{
	fi_addr_t number = duo_shm_known(ep->shm, peer_name);
	int ret;

	if (number == FI_ADDR_NOTAVAIL &&
	    duo_registry_taken(&ep->publication, peer_name))
		number = duo_shm_insert(ep->shm, peer_name);
	if (number == FI_ADDR_NOTAVAIL)
		return;
	ret = fi_av_remove(ep->shm->av, &number, 1, 0);
	if (ret)
		DUO_WARN(AV, "shm keeps %s, which is closed: %s\n", peer_name,
			 fi_strerror(-ret));
}

/*
 * Only now has shm one fi_addr free, so the peer gets the same again and
 * nobody else does. In shm's map it is a new peer, which needs a place; if
 * there is none left, nobody else will come either.
 */
void duo_shm_left(struct duo_ep *ep, const char *peer_name)
{
	fi_addr_t again, number = duo_shm_known(ep->shm, peer_name);
	char gone[DUO_PEER_NAME_MAX + sizeof(DUO_SHM_GONE)];
	int ret;

	if (number == FI_ADDR_NOTAVAIL)
		return;
	snprintf(gone, sizeof(gone), "%s" DUO_SHM_GONE, peer_name);
	if (!duo_registry_take(&ep->publication, gone)) {
		duo_map_gone(ep, number);
		return;
	}
	ret = fi_av_insert(ep->shm->av, peer_name, 1, &again, 0, NULL);
	if (ret != 1 || again != number)
		DUO_WARN(AV, "shm does not keep the place of %s, which was "
			 "closed: %d\n", peer_name, ret);
}

static bool duo_shm_refused(const struct duo_ep *ep, fi_addr_t number)
{
	fi_addr_t addr = duo_map_peer(ep->map, number);
	char core_addr[DUO_ADDR_MAX];
	size_t len = sizeof(core_addr);

	return addr != FI_ADDR_UNSPEC &&
	       !duo_av_core_addr(ep->av, addr, core_addr, &len) &&
	       duo_registry_refused(core_addr, len, &ep->publication);
}

/*
 * If the peer cannot map our region shm says -FI_EAGAIN for ever, and the core
 * takes what goes to it from now on; none is on this path.
 */
void duo_shm_not_sent(struct duo_ep *ep, fi_addr_t number)
{
	uint16_t *tries = &ep->shm->tries[number];

	if (ep->shm->sent[number] || ++*tries < DUO_SHM_TRIES)
		return;
	*tries = 0;
	if (duo_shm_refused(ep, number))
		duo_map_refuse(ep, number);
}
