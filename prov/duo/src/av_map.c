/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Which addresses of an AV are local: what the registry says of them, what
 * shm has been told, and what follows for routes and sources. The caller
 * holds the domain's lock.
 */

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>

#include "duo.h"
#include "route.h"

static void duo_av_set(struct duo_av *av, fi_addr_t addr, uint64_t word,
		       enum fi_duo_reason reason)
{
	av->reason[addr] = reason;
	duo_core_av_route(av, addr, word);
}

/* The shm address of a peer that shm has been told of, or NOTAVAIL. */
static fi_addr_t duo_av_known(const struct duo_av *av, const char *shm_name)
{
	fi_addr_t shm_addr;

	for (shm_addr = 0; shm_addr < DUO_SHM_PEERS; shm_addr++) {
		if (!strcmp(av->shm_name[shm_addr], shm_name))
			return shm_addr;
	}
	return FI_ADDR_NOTAVAIL;
}

/*
 * Tells shm about a peer, once: it forgets none and counts all. FI_DUO_LOCAL
 * and the peer's shm address, or why not.
 */
static enum fi_duo_reason duo_av_insert_shm(struct duo_av *av,
					    const char *shm_name,
					    fi_addr_t *shm_addr)
{
	int ret;

	*shm_addr = duo_av_known(av, shm_name);
	if (*shm_addr != FI_ADDR_NOTAVAIL)
		return FI_DUO_LOCAL;
	ret = fi_av_insert(av->path_av[FI_DUO_SHM], shm_name, 1, shm_addr, 0,
			   NULL);
	if (ret != 1 || *shm_addr >= DUO_SHM_PEERS) {
		DUO_WARN(AV, "shm does not take peer %s: %d; the core carries "
			 "its messages\n", shm_name, ret);
		return FI_DUO_SHM_FULL;
	}
	strcpy(av->shm_name[*shm_addr], shm_name);
	return FI_DUO_LOCAL;
}

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

/* Another address of a peer, so that its messages keep a source. */
static fi_addr_t duo_av_heir(const struct duo_av *av, fi_addr_t shm_addr)
{
	fi_addr_t addr;
	uint64_t word;

	for (addr = 0; addr < av->high; addr++) {
		word = duo_route_load(av->route, addr);
		if (duo_route_mapped(word) &&
		    duo_route_shm_addr(word) == shm_addr)
			return addr;
	}
	return FI_ADDR_UNSPEC;
}

/* addr no longer stands for shm_addr. */
static void duo_av_bequeath(struct duo_av *av, fi_addr_t addr,
			    fi_addr_t shm_addr)
{
	if (av->peer_of_shm[shm_addr] == addr)
		av->peer_of_shm[shm_addr] = duo_av_heir(av, shm_addr);
}

/* Who sends from addr has changed: its path is not known any more. */
static void duo_av_readmit(struct duo_av *av, fi_addr_t addr)
{
	struct duo_ep *ep;

	LIST_FOREACH(ep, &av->shm_eps, av_link)
		duo_lazy_readmit(ep, addr);
}

/* shm knows the peer as shm_addr: route and sources follow. */
static void duo_av_bind_shm(struct duo_av *av, fi_addr_t addr,
			    fi_addr_t shm_addr)
{
	uint64_t word = duo_route_load(av->route, addr);
	enum duo_route_state state = duo_route_state(word);
	struct duo_ep *ep;

	if (duo_route_mapped(word) && duo_route_shm_addr(word) == shm_addr)
		return;
	if (av->peer_of_shm[shm_addr] == FI_ADDR_UNSPEC)
		av->peer_of_shm[shm_addr] = addr;
	if (state == DUO_ROUTE_CORE)	/* it sticks */
		duo_av_set(av, addr, duo_route_word_of(state, shm_addr),
			   av->reason[addr]);
	else
		duo_av_set(av, addr, duo_route_word_of(DUO_ROUTE_SHM, shm_addr),
			   FI_DUO_LOCAL);
	if (duo_route_mapped(word)) {	/* another process has it now */
		duo_av_bequeath(av, addr, duo_route_shm_addr(word));
		duo_av_readmit(av, addr);
	}
	LIST_FOREACH(ep, &av->shm_eps, av_link)
		duo_srx_identify(ep);
}

/* For so many look-ups that follow; NULL: each must ask the registry. */
static const struct duo_registry_index *duo_av_index(struct duo_av *av,
						     size_t lookups)
{
	if (LIST_EMPTY(&av->shm_eps) ||
	    !duo_registry_index_update(&av->index, duo_params.registry_dir,
				       lookups))
		return NULL;
	return &av->index;
}

/*
 * Looks an address up in the registry. If it is local, shm learns it, it is
 * routed there unless its path was settled before, and messages that came
 * before get their source.
 */
static enum fi_duo_reason duo_av_map(struct duo_av *av, fi_addr_t addr,
				     const struct duo_registry_index *index)
{
	char core_addr[DUO_ADDR_MAX], shm_name[DUO_SHM_NAME_MAX];
	size_t len = sizeof(core_addr);
	enum fi_duo_reason reason = FI_DUO_SHM_OFF;
	fi_addr_t shm_addr;
	struct duo_ep *ep;

	if (duo_av_core_addr(av, addr, core_addr, &len) ||
	    (index && !duo_registry_index_has(index, core_addr, len)))
		return FI_DUO_NOT_REGISTERED;
	/* every endpoint of the AV takes its place in the peer's shm */
	LIST_FOREACH(ep, &av->shm_eps, av_link) {
		reason = duo_registry_lookup(duo_params.registry_dir,
					     core_addr, len, &ep->publication,
					     shm_name);
		if (reason != FI_DUO_LOCAL)
			break;
	}
	if (reason != FI_DUO_LOCAL)
		return reason;
	reason = duo_av_insert_shm(av, shm_name, &shm_addr);
	if (reason == FI_DUO_LOCAL)
		duo_av_bind_shm(av, addr, shm_addr);
	return reason;
}

/* The first send to an undecided address: its path is settled for good. */
enum duo_route_state duo_av_decide(struct duo_av *av, fi_addr_t addr)
{
	enum fi_duo_reason reason;

	if (duo_route_state(duo_route_load(av->route, addr)) ==
	    DUO_ROUTE_UNDECIDED) {
		reason = duo_av_map(av, addr, NULL);
		if (reason != FI_DUO_LOCAL)
			duo_av_set(av, addr, DUO_ROUTE_CORE, reason);
	}
	return duo_route_state(duo_route_load(av->route, addr));
}

static void duo_av_map_all(struct duo_av *av)
{
	const struct duo_registry_index *index = duo_av_index(av, av->high);
	fi_addr_t addr;

	for (addr = 0; addr < av->high; addr++) {
		if (duo_route_load(av->route, addr) != DUO_ROUTE_NONE)
			duo_av_map(av, addr, index);
	}
}

/*
 * After a message from a peer that shm does not know: it may have published
 * itself, or taken the address of a dead one, since. What was decided for
 * sends stays.
 */
void duo_av_scan(struct duo_av *av)
{
	uint64_t state = duo_registry_state(duo_params.registry_dir);

	if (state && state == av->scanned)
		return;
	av->scanned = state;
	duo_av_map_all(av);
}

void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep)
{
	LIST_INSERT_HEAD(&av->shm_eps, ep, av_link);
	duo_av_map_all(av);
}

void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep)
{
	LIST_REMOVE(ep, av_link);
}

/*
 * An endpoint of this process is about to be closed. shm would keep pointing
 * into its region, and look there when another endpoint of the AV is enabled:
 * so the AVs forget it, and know it again, without region, when it has gone.
 */
void duo_av_shm_leaves(struct duo_domain *domain, const char *shm_name)
{
	struct duo_av *av;
	fi_addr_t shm_addr;
	int ret;

	LIST_FOREACH(av, &domain->avs, link) {
		shm_addr = duo_av_known(av, shm_name);
		if (shm_addr == FI_ADDR_NOTAVAIL)
			continue;
		ret = fi_av_remove(av->path_av[FI_DUO_SHM], &shm_addr, 1, 0);
		if (ret)
			DUO_WARN(AV, "shm keeps %s, which is closed: %s\n",
				 shm_name, fi_strerror(-ret));
	}
}

/* Only now has shm a free place, so it is the same. */
void duo_av_shm_left(struct duo_domain *domain, const char *shm_name)
{
	struct duo_av *av;
	fi_addr_t shm_addr, again;
	int ret;

	LIST_FOREACH(av, &domain->avs, link) {
		shm_addr = duo_av_known(av, shm_name);
		if (shm_addr == FI_ADDR_NOTAVAIL)
			continue;
		ret = fi_av_insert(av->path_av[FI_DUO_SHM], shm_name, 1, &again,
				   0, NULL);
		if (ret != 1 || again != shm_addr)
			DUO_WARN(AV, "shm does not keep the place of %s, which "
				 "was closed: %d\n", shm_name, ret);
	}
}

/* Whom shm knew by this address has died, or shm has no room for him. */
static void duo_av_unbind_shm(struct duo_av *av, fi_addr_t addr)
{
	uint64_t word = duo_route_load(av->route, addr);

	if (!duo_route_mapped(word))
		return;
	duo_av_set(av, addr, DUO_ROUTE_UNDECIDED, FI_DUO_UNDECIDED);
	duo_av_bequeath(av, addr, duo_route_shm_addr(word));
	duo_av_readmit(av, addr);
}

/* Inserted anew, or once more: its process may have changed. */
static void duo_av_note(struct duo_av *av, fi_addr_t addr,
			const struct duo_registry_index *index)
{
	enum fi_duo_reason reason;

	if (addr >= DUO_AV_MAX) {
		av->beyond = true;
		return;
	}
	if (addr >= av->high)
		av->high = addr + 1;
	if (duo_route_load(av->route, addr) == DUO_ROUTE_NONE)
		duo_av_set(av, addr, DUO_ROUTE_UNDECIDED, FI_DUO_UNDECIDED);
	reason = duo_av_map(av, addr, index);
	/* a file that could not be read says nothing */
	if (reason != FI_DUO_LOCAL && reason != FI_DUO_BAD_RECORD)
		duo_av_unbind_shm(av, addr);
}

void duo_av_note_all(struct duo_av *av, const fi_addr_t *addr,
		     const void *bytes, size_t count)
{
	const struct duo_registry_index *index = duo_av_index(av, count);
	size_t i;

	if (bytes)
		duo_av_keep_all(av, addr, bytes, count);
	for (i = 0; i < count; i++) {
		if (addr[i] != FI_ADDR_NOTAVAIL)
			duo_av_note(av, addr[i], index);
	}
}

/*
 * After fi_av_remove from the core. A core that counts inserts may still
 * have the address. The peer stays in shm's AV: messages from it may be
 * queued there, and shm finds their sender by its place in the AV.
 */
void duo_av_forget(struct duo_av *av, fi_addr_t addr)
{
	uint8_t core_addr[DUO_ADDR_MAX];
	size_t len = sizeof(core_addr);
	uint64_t word;

	if (addr >= DUO_AV_MAX ||
	    !duo_core_av_lookup(av, addr, core_addr, &len))
		return;
	word = duo_route_load(av->route, addr);
	if (duo_route_state(word) == DUO_ROUTE_NONE)
		return;
	av->kept[addr].len = 0;
	duo_av_set(av, addr, DUO_ROUTE_NONE, FI_DUO_UNDECIDED);
	if (duo_route_mapped(word))
		duo_av_bequeath(av, addr, duo_route_shm_addr(word));
	duo_core_av_forget(av, addr);
}
