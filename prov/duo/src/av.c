/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors. Our fi_addr is the core's; beside it stands how the
 * address is reached. The core's AV is opened as FI_AV_TABLE, so that a
 * fi_addr is an index, whatever the application asked for: to it the
 * fi_addr of an FI_AV_MAP is opaque.
 */

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>

#include "duo.h"
#include "route.h"

static void duo_av_set(struct duo_av *av, fi_addr_t addr, uint64_t word,
		       enum fi_duo_reason reason)
{
	av->reason[addr] = reason;
	atomic_store_explicit(&av->route[addr], word, memory_order_release);
}

/* Tells shm about a peer. FI_DUO_LOCAL and its shm address, or why not. */
static enum fi_duo_reason duo_av_insert_shm(struct duo_av *av,
					    const char *shm_name,
					    fi_addr_t *shm_addr)
{
	struct duo_ep *ep;
	int ret;

	if (av->shm_used == DUO_SHM_PEERS)
		return FI_DUO_SHM_FULL;
	ret = fi_av_insert(av->path_av[FI_DUO_SHM], shm_name, 1, shm_addr, 0,
			   NULL);
	if (ret != 1 || *shm_addr >= DUO_SHM_PEERS) {
		DUO_WARN(AV, "shm does not take peer %s: %d; the core carries "
			 "its messages\n", shm_name, ret);
		return FI_DUO_SHM_FULL;
	}
	av->shm_used++;
	LIST_FOREACH(ep, &av->shm_eps, av_link)
		ep->confirmed[*shm_addr / 64] &= ~(1ULL << *shm_addr % 64);
	return FI_DUO_LOCAL;
}

/*
 * The core's bytes of an address; *len is the room on entry. ofi_rxd does
 * not find an address again before its first message, so it has been kept.
 */
static int duo_av_core_addr(const struct duo_av *av, fi_addr_t addr,
			    void *buf, size_t *len)
{
	const struct duo_kept_addr *kept = &av->kept[addr];
	size_t room = *len;

	if (kept->len) {
		memcpy(buf, kept->bytes, kept->len);
		*len = kept->len;
		return 0;
	}
	if (fi_av_lookup(av->path_av[FI_DUO_CORE], addr, buf, len) ||
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
	    !fi_av_lookup(av->path_av[FI_DUO_CORE], addr, buf, &len))
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

/*
 * Looks an address up in the registry; if it is local, shm learns it and
 * messages that came before are given their source.
 */
static enum fi_duo_reason duo_av_map(struct duo_av *av, fi_addr_t addr,
				     fi_addr_t *shm_addr)
{
	char core_addr[DUO_ADDR_MAX], shm_name[DUO_SHM_NAME_MAX];
	size_t len = sizeof(core_addr);
	enum fi_duo_reason reason;
	struct duo_ep *ep;

	if (LIST_EMPTY(&av->shm_eps))
		return FI_DUO_SHM_OFF;
	if (duo_av_core_addr(av, addr, core_addr, &len))
		return FI_DUO_NOT_REGISTERED;
	reason = duo_registry_lookup(duo_params.registry_dir, core_addr, len,
				     shm_name);
	if (reason != FI_DUO_LOCAL)
		return reason;
	reason = duo_av_insert_shm(av, shm_name, shm_addr);
	if (reason != FI_DUO_LOCAL)
		return reason;
	if (av->peer_of_shm[*shm_addr] == FI_ADDR_UNSPEC)
		av->peer_of_shm[*shm_addr] = addr;
	av->unmapped--;
	LIST_FOREACH(ep, &av->shm_eps, av_link)
		duo_srx_identify(ep);
	return FI_DUO_LOCAL;
}

/* A new address, or one whose first send is still to come. */
static void duo_av_consider(struct duo_av *av, fi_addr_t addr)
{
	fi_addr_t shm_addr;
	enum fi_duo_reason reason = duo_av_map(av, addr, &shm_addr);

	if (reason == FI_DUO_LOCAL)
		duo_av_set(av, addr, duo_route_word_of(DUO_ROUTE_SHM, shm_addr),
			   reason);
	else
		duo_av_set(av, addr, DUO_ROUTE_UNDECIDED, FI_DUO_UNDECIDED);
}

/* The first send to an undecided address: its path is settled for good. */
enum duo_route_state duo_av_decide(struct duo_av *av, fi_addr_t addr)
{
	fi_addr_t shm_addr;
	enum fi_duo_reason reason;

	if (duo_route_state(duo_route_load(av, addr)) != DUO_ROUTE_UNDECIDED)
		return duo_route_state(duo_route_load(av, addr));
	reason = duo_av_map(av, addr, &shm_addr);
	if (reason == FI_DUO_LOCAL) {
		duo_av_set(av, addr, duo_route_word_of(DUO_ROUTE_SHM, shm_addr),
			   reason);
		return DUO_ROUTE_SHM;
	}
	duo_av_set(av, addr, DUO_ROUTE_CORE, reason);
	return DUO_ROUTE_CORE;
}

/*
 * After a message from a peer that shm does not know: it may have published
 * itself since. What was decided for sends stays; only its source becomes
 * known.
 */
void duo_av_scan(struct duo_av *av)
{
	uint64_t state = duo_registry_state(duo_params.registry_dir);
	fi_addr_t addr, shm_addr;
	uint64_t word;

	if (!av->unmapped || state == av->scanned)
		return;
	av->scanned = state;
	for (addr = 0; addr < av->high; addr++) {
		word = duo_route_load(av, addr);
		if (duo_route_mapped(word))
			continue;
		if (duo_route_state(word) == DUO_ROUTE_UNDECIDED)
			duo_av_consider(av, addr);
		else if (duo_route_state(word) == DUO_ROUTE_CORE &&
			 duo_av_map(av, addr, &shm_addr) == FI_DUO_LOCAL)
			duo_av_set(av, addr,
				   duo_route_word_of(DUO_ROUTE_CORE, shm_addr),
				   av->reason[addr]);
	}
}

void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep)
{
	fi_addr_t addr;

	LIST_INSERT_HEAD(&av->shm_eps, ep, av_link);
	for (addr = 0; addr < av->high; addr++) {
		if (duo_route_load(av, addr) == DUO_ROUTE_UNDECIDED)
			duo_av_consider(av, addr);
	}
}

void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep)
{
	LIST_REMOVE(ep, av_link);
}

/* Under the domain's lock. */
static void duo_av_note(struct duo_av *av, fi_addr_t addr)
{
	if (addr >= DUO_AV_MAX ||
	    duo_route_state(duo_route_load(av, addr)) != DUO_ROUTE_NONE)
		return;
	if (addr >= av->high)
		av->high = addr + 1;
	av->unmapped++;
	duo_av_consider(av, addr);
}

static void duo_av_note_all(struct duo_av *av, const fi_addr_t *addr,
			    size_t count)
{
	size_t i;

	duo_lock(&av->domain->lock);
	for (i = 0; i < count; i++) {
		if (addr[i] != FI_ADDR_NOTAVAIL)
			duo_av_note(av, addr[i]);
	}
	duo_unlock(&av->domain->lock);
}

/* The caller may not want the addresses, but we need them. */
static fi_addr_t *duo_av_results(fi_addr_t *addr, size_t count,
				 fi_addr_t **own)
{
	size_t i;

	*own = NULL;
	if (!addr)
		addr = *own = malloc((count ? count : 1) * sizeof(*addr));
	if (*own)
		for (i = 0; i < count; i++)
			addr[i] = FI_ADDR_NOTAVAIL;
	return addr;
}

static int duo_av_insert(struct fid_av *av_fid, const void *addr, size_t count,
			 fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct duo_av *av = duo_av_of(av_fid);
	fi_addr_t *own, *result;
	int ret;

	if (!count)
		return 0;
	if (!addr || flags & FI_AV_USER_ID)
		return -FI_EINVAL;
	result = duo_av_results(fi_addr, count, &own);
	if (!result)
		return -FI_ENOMEM;
	ret = fi_av_insert(av->path_av[FI_DUO_CORE], addr, count, result,
			   flags, context);
	if (ret > 0) {
		duo_av_keep_all(av, result, addr, count);
		duo_av_note_all(av, result, count);
	}
	free(own);
	return ret;
}

static int duo_av_insertsvc(struct fid_av *av_fid, const char *node,
			    const char *service, fi_addr_t *fi_addr,
			    uint64_t flags, void *context)
{
	struct duo_av *av = duo_av_of(av_fid);
	fi_addr_t own = FI_ADDR_NOTAVAIL;
	fi_addr_t *result = fi_addr ? fi_addr : &own;
	int ret;

	ret = fi_av_insertsvc(av->path_av[FI_DUO_CORE], node, service, result,
			      flags, context);
	if (ret > 0)
		duo_av_note_all(av, result, 1);
	return ret;
}

static int duo_av_insertsym(struct fid_av *av_fid, const char *node,
			    size_t nodecnt, const char *service, size_t svccnt,
			    fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct duo_av *av = duo_av_of(av_fid);
	fi_addr_t *own, *result;
	int ret;

	result = duo_av_results(fi_addr, nodecnt * svccnt, &own);
	if (!result)
		return -FI_ENOMEM;
	ret = fi_av_insertsym(av->path_av[FI_DUO_CORE], node, nodecnt, service,
			      svccnt, result, flags, context);
	if (ret > 0)
		duo_av_note_all(av, result, nodecnt * svccnt);
	free(own);
	return ret;
}

/*
 * The peer stays in shm's AV: messages from it may still be queued there,
 * and shm finds their sender by its place in the AV. If the address is
 * inserted again, shm finds the old place by name.
 */
static void duo_av_forget(struct duo_av *av, fi_addr_t addr)
{
	uint64_t word;

	if (addr >= DUO_AV_MAX)
		return;
	word = duo_route_load(av, addr);
	if (duo_route_state(word) == DUO_ROUTE_NONE)
		return;
	if (!duo_route_mapped(word))
		av->unmapped--;
	else if (av->peer_of_shm[duo_route_shm_addr(word)] == addr)
		av->peer_of_shm[duo_route_shm_addr(word)] = FI_ADDR_UNSPEC;
	av->kept[addr].len = 0;
	duo_av_set(av, addr, DUO_ROUTE_NONE, FI_DUO_UNDECIDED);
}

static int duo_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			 size_t count, uint64_t flags)
{
	struct duo_av *av = duo_av_of(av_fid);
	size_t i;
	int ret;

	if (!fi_addr)
		return count ? -FI_EINVAL : 0;
	duo_lock(&av->domain->lock);
	ret = fi_av_remove(av->path_av[FI_DUO_CORE], fi_addr, count, flags);
	for (i = 0; !ret && i < count; i++)
		duo_av_forget(av, fi_addr[i]);
	duo_unlock(&av->domain->lock);
	return ret;
}

static int duo_av_lookup(struct fid_av *av_fid, fi_addr_t fi_addr, void *addr,
			 size_t *addrlen)
{
	struct duo_av *av = duo_av_of(av_fid);

	if (fi_addr < DUO_AV_MAX &&
	    duo_route_state(duo_route_load(av, fi_addr)) == DUO_ROUTE_NONE)
		return -FI_EINVAL;
	return fi_av_lookup(av->path_av[FI_DUO_CORE], fi_addr, addr, addrlen);
}

static const char *duo_av_straddr(struct fid_av *av_fid, const void *addr,
				  char *buf, size_t *len)
{
	return fi_av_straddr(duo_av_of(av_fid)->path_av[FI_DUO_CORE], addr,
			     buf, len);
}

static int duo_av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct duo_av *av = duo_container_of(fid, struct duo_av, av_fid.fid);

	struct fid *core = &av->path_av[FI_DUO_CORE]->fid;

	return core->ops->bind(core, bfid, flags);
}

static void duo_av_free(struct duo_av *av)
{
	if (av->route)
		munmap(av->route, DUO_AV_MAX * sizeof(*av->route));
	if (av->reason)
		munmap(av->reason, DUO_AV_MAX);
	if (av->kept)
		munmap(av->kept, DUO_AV_MAX * sizeof(*av->kept));
	free(av);
}

static int duo_av_close(struct fid *fid)
{
	struct duo_av *av = duo_container_of(fid, struct duo_av, av_fid.fid);
	int ret;

	if (atomic_load(&av->refs))
		return -FI_EBUSY;
	ret = fi_close(&av->path_av[FI_DUO_CORE]->fid);
	if (ret)
		return ret;
	if (av->path_av[FI_DUO_SHM])
		fi_close(&av->path_av[FI_DUO_SHM]->fid);
	atomic_fetch_sub(&av->domain->refs, 1);
	duo_av_free(av);
	return 0;
}

static struct fi_ops duo_av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_av_close,
	.bind = duo_av_bind,
	.control = duo_no_control,
	.ops_open = duo_no_ops_open,
};

static struct fi_ops_av duo_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = duo_av_insert,
	.insertsvc = duo_av_insertsvc,
	.insertsym = duo_av_insertsym,
	.remove = duo_av_remove,
	.lookup = duo_av_lookup,
	.straddr = duo_av_straddr,
};

static void *duo_av_reserve(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

static struct duo_av *duo_av_alloc(struct duo_domain *domain)
{
	struct duo_av *av = calloc(1, sizeof(*av));
	size_t i;

	if (!av)
		return NULL;
	av->domain = domain;
	LIST_INIT(&av->shm_eps);
	for (i = 0; i < DUO_SHM_PEERS; i++)
		av->peer_of_shm[i] = FI_ADDR_UNSPEC;
	av->route = duo_av_reserve(DUO_AV_MAX * sizeof(*av->route));
	av->reason = duo_av_reserve(DUO_AV_MAX);
	av->kept = duo_av_reserve(DUO_AV_MAX * sizeof(*av->kept));
	if (av->route && av->reason && av->kept)
		return av;
	duo_av_free(av);
	return NULL;
}

static int duo_av_open_paths(struct duo_av *av, const struct fi_av_attr *attr,
			     void *context)
{
	struct fid_domain **domain = av->domain->path_domain;
	struct fi_av_attr core_attr = *attr;
	struct fi_av_attr shm_attr = { .type = FI_AV_TABLE };
	int ret;

	core_attr.type = FI_AV_TABLE;
	ret = fi_av_open(domain[FI_DUO_CORE], &core_attr,
			 &av->path_av[FI_DUO_CORE], context);
	if (ret || !domain[FI_DUO_SHM])
		return ret;
	ret = fi_av_open(domain[FI_DUO_SHM], &shm_attr,
			 &av->path_av[FI_DUO_SHM], NULL);
	if (ret)
		fi_close(&av->path_av[FI_DUO_CORE]->fid);
	return ret;
}

int duo_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context)
{
	struct duo_av *av;
	int ret;

	if (!attr || (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP &&
		      attr->type != FI_AV_TABLE))
		return -FI_EINVAL;
	if (attr->flags & FI_EVENT)
		return -FI_ENOSYS;	/* addresses are valid on return */
	av = duo_av_alloc(duo_domain_of(domain_fid));
	if (!av)
		return -FI_ENOMEM;
	ret = duo_av_open_paths(av, attr, context);
	if (ret) {
		duo_av_free(av);
		return ret;
	}
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->av_fid.fid.fclass = FI_CLASS_AV;
	av->av_fid.fid.context = context;
	av->av_fid.fid.ops = &duo_av_fi_ops;
	av->av_fid.ops = &duo_av_ops;
	atomic_fetch_add(&av->domain->refs, 1);
	*av_fid = &av->av_fid;
	return 0;
}
