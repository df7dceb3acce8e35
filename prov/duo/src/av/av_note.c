/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What follows from inserting and removing addresses: for the AVs of the core
 * (av_core.c), and for those of its endpoints that have a local side (map.c).
 * The caller holds the domain's lock.
 */

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/map.h"
#include "av/route.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "peer/peer.h"

/*
 * The core's bytes of an address; *len is the room on entry. ofi_rxd does
 * not find an address again before its first message, so it has been kept.
 */
int duo_av_core_addr(const struct duo_av *av, fi_addr_t addr,
		     void *buf, size_t *len)
{
	const struct duo_kept_addr *kept = &av->kept[addr];
	size_t room = *len;

	if (kept->len) {
		memcpy(buf, kept->bytes, kept->len);
		*len = kept->len;
		return 0;
	}
	if (duo_core_av_lookup(av, addr, buf, len) ||
	    *len > room)
		return -FI_ENOENT;
	return 0;
}

/* Keeps a socket address that the core does not look up. */
static void duo_av_keep(struct duo_av *av, fi_addr_t addr, const void *bytes)
{
	const struct sockaddr *sa = bytes;
	uint8_t buf[DUO_ADDR_MAX];
	size_t len = sizeof(buf);

	if (addr >= DUO_AV_MAX ||
	    !duo_core_av_lookup(av, addr, buf, &len))
		return;
	len = sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
	      sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
	memcpy(av->kept[addr].bytes, bytes, len);
	av->kept[addr].len = len;
}

/* All of one insert; count addresses of one length after another. */
static void duo_av_keep_all(struct duo_av *av, const fi_addr_t *addr,
			    const void *bytes, size_t count)
{
	const char *next = bytes;
	size_t i;

	if (!av->domain->sockaddr_len)
		return;
	for (i = 0; i < count; i++) {
		if (addr[i] != FI_ADDR_NOTAVAIL)
			duo_av_keep(av, addr[i], next);
		next += av->domain->sockaddr_len;
	}
}

const struct duo_registry_index *duo_av_index(struct duo_av *av,
					      size_t lookups)
{
	struct duo_ep *ep = LIST_FIRST(&av->local_eps);

	if (!ep || !duo_registry_index_update(&av->index, ep->publication.dir,
					      lookups))
		return NULL;
	return &av->index;
}

/* The core does not have the address any more. */
static void duo_av_drop(struct duo_av *av, fi_addr_t addr)
{
	struct duo_ep *ep;

	av->kept[addr].len = 0;
	duo_core_av_state(av, addr, DUO_ROUTE_NONE);
	LIST_FOREACH(ep, &av->local_eps, av_link)
		duo_map_forget(ep, addr);
	duo_core_av_forget(av, addr);
}

/*
 * Another one's than when it was removed, and stayed with the core: tcp drops
 * an address with its last connection.
 */
static bool duo_av_is_another(struct duo_av *av, fi_addr_t addr)
{
	const struct duo_kept_addr *kept = &av->kept[addr];
	uint8_t core_addr[DUO_ADDR_MAX];
	size_t len = sizeof(core_addr);

	return kept->len && !duo_core_av_lookup(av, addr, core_addr, &len) &&
	       (len != kept->len || memcmp(core_addr, kept->bytes, len));
}

static void duo_av_admit(struct duo_av *av, fi_addr_t addr)
{
	if (addr == FI_ADDR_NOTAVAIL)
		return;
	if (addr >= DUO_AV_MAX) {
		av->beyond = true;
		return;
	}
	if (duo_av_is_another(av, addr))
		duo_av_drop(av, addr);
	if (addr >= av->high)
		av->high = addr + 1;
	if (duo_route_load(av->route, addr) == DUO_ROUTE_NONE)
		duo_core_av_state(av, addr, DUO_ROUTE_UNDECIDED);
}

void duo_av_note_all(struct duo_av *av, const fi_addr_t *addr,
		     const void *bytes, size_t count)
{
	const struct duo_registry_index *index = duo_av_index(av, count);
	struct duo_ep *ep;
	size_t i;

	if (bytes)
		duo_av_keep_all(av, addr, bytes, count);
	for (i = 0; i < count; i++)
		duo_av_admit(av, addr[i]);
	LIST_FOREACH(ep, &av->local_eps, av_link)
		duo_map_note_all(ep, addr, count, index);
}

/*
 * After fi_av_remove from the core. A core that counts inserts, or uses it, may
 * still have the address: it is kept, to be compared with the next one there.
 */
void duo_av_forget(struct duo_av *av, fi_addr_t addr)
{
	uint8_t core_addr[DUO_ADDR_MAX];
	size_t len = sizeof(core_addr);

	if (addr >= DUO_AV_MAX ||
	    duo_route_load(av->route, addr) == DUO_ROUTE_NONE)
		return;
	if (duo_core_av_lookup(av, addr, core_addr, &len)) {
		duo_av_drop(av, addr);
	} else if (len <= sizeof(av->kept[addr].bytes)) {
		memcpy(av->kept[addr].bytes, core_addr, len);
		av->kept[addr].len = len;
	}
}

void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep)
{
	LIST_INSERT_HEAD(&av->local_eps, ep, av_link);
	duo_map_scan(ep);
}

void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep)
{
	LIST_REMOVE(ep, av_link);
}

/*
 * An endpoint of this process is about to be closed. A peer that keeps
 * pointing into its memory is to forget it, and may know it again, without,
 * when it has gone.
 */
void duo_av_local_leaves(struct duo_domain *domain, const char *peer_name)
{
	struct duo_av *av;
	struct duo_ep *ep;

	LIST_FOREACH(av, &domain->avs, link) {
		LIST_FOREACH(ep, &av->local_eps, av_link)
			domain->peer->leaves(ep, peer_name);
	}
}

void duo_av_local_left(struct duo_domain *domain, const char *peer_name)
{
	struct duo_av *av;
	struct duo_ep *ep;

	LIST_FOREACH(av, &domain->avs, link) {
		LIST_FOREACH(ep, &av->local_eps, av_link)
			domain->peer->left(ep, peer_name);
	}
}
