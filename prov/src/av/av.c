/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Implements fi_av(3). The AV of the core, the provider that ofi_duo wraps,
 * assigns each fi_addr. ofi_duo always opens the core's AV with the type
 * FI_AV_TABLE, so each fi_addr is an index. This is also permitted if the
 * application has requested FI_AV_MAP, because the application must not
 * interpret a fi_addr of that type.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/map.h"
#include "base/enosys.h"
#include "base/log.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/forward.h"

/* maximum length of an address at the core, bytes */
#define DUO_CORE_ADDR_MAX 1024

void *duo_av_reserve(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

static void duo_route_set(struct duo_ep *ep, fi_addr_t addr,
			  enum duo_route_state state)
{
	atomic_store_explicit(&ep->route[addr], state, memory_order_release);
}

int duo_av_add_ep(struct duo_ep *ep)
{
	struct duo_av *av = ep->av;
	fi_addr_t addr;

	if (ep->route)	/* an earlier fi_enable() added ep, and then failed */
		return 0;
	duo_domain_lock(av->domain);
	ep->route = duo_av_reserve(DUO_AV_MAX * sizeof(*ep->route));
	for (addr = 0; ep->route && addr < av->high; addr++)
		if (duo_av_has(av, addr))
			duo_route_set(ep, addr, DUO_ROUTE_UNDECIDED);
	if (ep->route)
		LIST_INSERT_HEAD(&av->eps, ep, av_link);
	duo_domain_unlock(av->domain);
	return ep->route ? 0 : -FI_ENOMEM;
}

void duo_av_del_ep(struct duo_ep *ep)
{
	LIST_REMOVE(ep, av_link);
	munmap(ep->route, DUO_AV_MAX * sizeof(*ep->route));
}

/*
 * Stores the bytes of an address: those that the core's fi_av_lookup() returns.
 * If that call fails (as in ofi_rxd before the first message), stores `bytes`,
 * which the application has passed to fi_av_insert(). If it fails and `bytes`
 * is NULL, as for fi_av_insertsvc(), stores nothing. Also stores nothing if the
 * length of the address is not available, or is too large for a local address.
 * Returns 0 or -FI_ENOMEM.
 */
static int duo_av_keep(struct duo_av *av, fi_addr_t addr, const void *bytes)
{
	struct duo_av_addr *to = &av->addrs[addr];
	uint8_t buf[DUO_CORE_ADDR_MAX];
	size_t len = sizeof(buf);

	if (!fi_av_lookup(av->core, addr, buf, &len))
		bytes = buf;
	else
		len = av->domain->addr_len;
	if (!bytes || !len || len > sizeof(buf))
		return 0;
	to->bytes = malloc(len);
	if (!to->bytes)
		return -FI_ENOMEM;
	memcpy(to->bytes, bytes, len);
	to->len = len;
	return 0;
}

/*
 * Adds an address of the core's AV to this AV. After an error, removes the
 * address from the core's AV. Returns 0 or an error.
 */
static int duo_av_admit(struct duo_av *av, fi_addr_t addr, const void *bytes)
{
	struct duo_ep *ep;
	int ret;

	if (duo_av_has(av, addr))	/* already inserted */
		return 0;
	ret = addr < DUO_AV_MAX ? duo_av_keep(av, addr, bytes) : -FI_ENOSPC;
	if (ret) {
		fi_av_remove(av->core, &addr, 1, 0);
		return ret;
	}
	av->addrs[addr].used = true;
	if (addr >= av->high)
		av->high = addr + 1;
	LIST_FOREACH(ep, &av->eps, av_link)
		duo_route_set(ep, addr, DUO_ROUTE_UNDECIDED);
	return 0;
}

/*
 * Completes an insert after the call of the core, which has returned `ret`:
 * adds the addresses to this AV and to the endpoints' maps. bytes: the
 * addresses that the application has passed; NULL: it has passed a node and a
 * service. Returns the number of inserted addresses, or an error.
 */
static int duo_av_inserted(struct duo_av *av, int ret, fi_addr_t *addr,
			   const void *bytes, size_t count, uint64_t flags,
			   void *context)
{
	int failed, *err = flags & FI_SYNC_ERR ? context : NULL;
	size_t i, len = av->domain->addr_len;
	const char *first = bytes;
	struct duo_ep *ep;

	if (ret <= 0)
		return ret;
	for (i = 0; i < count; i++) {
		if (addr[i] == FI_ADDR_NOTAVAIL)
			continue;
		failed = duo_av_admit(av, addr[i],
				      first ? first + i * len : NULL);
		if (!failed)
			continue;
		DUO_WARN(AV, "av %p: address %zu of %zu was not inserted: "
			 "%s\n", (void *) av, i + 1, count,
			 fi_strerror(-failed));
		addr[i] = FI_ADDR_NOTAVAIL;
		if (err)
			err[i] = -failed;
		ret--;
	}
	LIST_FOREACH(ep, &av->eps, av_link) {
		if (ep->map)
			duo_map_note_all(ep, addr, count);
	}
	return ret;
}

static int duo_av_insert(struct fid_av *av_fid, const void *addr, size_t count,
			 fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct duo_av *av = duo_av_of(av_fid);
	fi_addr_t *own = NULL;
	int ret;

	if (!count)
		return 0;
	if (!addr || flags & FI_AV_USER_ID)
		return -FI_EINVAL;
	if (!fi_addr)
		fi_addr = own = malloc(count * sizeof(*own));
	if (!fi_addr)
		return -FI_ENOMEM;
	duo_domain_lock(av->domain);
	ret = fi_av_insert(av->core, addr, count, fi_addr, flags, context);
	ret = duo_av_inserted(av, ret, fi_addr, addr, count, flags, context);
	duo_domain_unlock(av->domain);
	free(own);
	return ret;
}

static int duo_av_insertsvc(struct fid_av *av_fid, const char *node,
			    const char *service, fi_addr_t *fi_addr,
			    uint64_t flags, void *context)
{
	struct duo_av *av = duo_av_of(av_fid);
	fi_addr_t own, *result = fi_addr ? fi_addr : &own;
	int ret;

	if (flags & FI_AV_USER_ID)
		return -FI_EINVAL;
	duo_domain_lock(av->domain);
	ret = fi_av_insertsvc(av->core, node, service, result, flags,
			      context);
	ret = duo_av_inserted(av, ret, result, NULL, 1, flags, context);
	duo_domain_unlock(av->domain);
	return ret;
}

static int duo_av_remove_one(struct duo_av *av, fi_addr_t addr, uint64_t flags)
{
	struct duo_ep *ep;
	int ret;

	if (!duo_av_has(av, addr))
		return -FI_EINVAL;
	LIST_FOREACH(ep, &av->eps, av_link) {
		if (ep->map)
			duo_map_forget(ep, addr);
		else
			duo_route_set(ep, addr, DUO_ROUTE_NONE);
	}
	free(av->addrs[addr].bytes);
	av->addrs[addr] = (struct duo_av_addr) { 0 };
	ret = fi_av_remove(av->core, &addr, 1, flags);
	if (ret)
		DUO_WARN(AV, "av %p: the core cannot remove its fi_addr %"
			 PRIu64 ": %s\n", (void *) av, addr,
			 fi_strerror(-ret));
	return 0;
}

static int duo_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			 size_t count, uint64_t flags)
{
	struct duo_av *av = duo_av_of(av_fid);
	size_t i;
	int ret = 0;

	if (!fi_addr)
		return count ? -FI_EINVAL : 0;
	duo_domain_lock(av->domain);
	for (i = 0; !ret && i < count; i++)
		ret = duo_av_remove_one(av, fi_addr[i], flags);
	duo_domain_unlock(av->domain);
	return ret;
}

static int duo_av_lookup(struct fid_av *av_fid, fi_addr_t fi_addr, void *addr,
			 size_t *addrlen)
{
	struct duo_av *av = duo_av_of(av_fid);
	const struct duo_av_addr *entry;
	int ret = -FI_EINVAL;

	duo_lock(&av->domain->group.lock);
	entry = duo_av_addr(av, fi_addr);
	if (entry) {
		memcpy(addr, entry->bytes,
		       entry->len < *addrlen ? entry->len : *addrlen);
		*addrlen = entry->len;
		ret = 0;
	}
	duo_unlock(&av->domain->group.lock);
	return ret;
}

static const char *duo_av_straddr(struct fid_av *av_fid, const void *addr,
				  char *buf, size_t *len)
{
	struct duo_av *av = duo_av_of(av_fid);
	const char *text;

	duo_lock(&av->domain->group.lock);
	text = fi_av_straddr(av->core, addr, buf, len);
	duo_unlock(&av->domain->group.lock);
	return text;
}

static int duo_av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fid *core = &duo_container_of(fid, struct duo_av, av_fid.fid)
				    ->core->fid;

	return core->ops->bind(core, bfid, flags);
}

static void duo_av_free(struct duo_av *av)
{
	while (av->high)
		free(av->addrs[--av->high].bytes);
	munmap(av->addrs, DUO_AV_MAX * sizeof(*av->addrs));
	free(av);
}

static int duo_av_close(struct fid *fid)
{
	struct duo_av *av = duo_container_of(fid, struct duo_av, av_fid.fid);
	int ret;

	if (atomic_load(&av->refs))
		return -FI_EBUSY;
	duo_lock(&av->domain->group.lock);
	ret = fi_close(&av->core->fid);
	if (!ret)
		LIST_REMOVE(av, link);
	duo_unlock(&av->domain->group.lock);
	if (ret)
		return ret;
	atomic_fetch_sub(&av->domain->refs, 1);
	duo_av_free(av);
	return 0;
}

static struct fi_ops duo_av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_av_close,
	.bind = duo_av_bind,
	.control = duo_core_control,
	.ops_open = duo_core_ops_open,
};

static struct fi_ops_av duo_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = duo_av_insert,
	.insertsvc = duo_av_insertsvc,
	.insertsym = duo_no_insertsym,
	.remove = duo_av_remove,
	.lookup = duo_av_lookup,
	.straddr = duo_av_straddr,
};

static struct duo_av *duo_av_alloc(struct duo_domain *domain)
{
	struct duo_av *av = calloc(1, sizeof(*av));

	if (!av)
		return NULL;
	av->domain = domain;
	LIST_INIT(&av->eps);
	av->addrs = duo_av_reserve(DUO_AV_MAX * sizeof(*av->addrs));
	if (av->addrs)
		return av;
	free(av);
	return NULL;
}

int duo_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context)
{
	struct fi_av_attr core_attr;
	struct duo_av *av;
	int ret;

	if (!attr || (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP &&
		      attr->type != FI_AV_TABLE))
		return -FI_EINVAL;
	if (attr->flags & FI_EVENT)
		return -FI_ENOSYS;	/* inserts are synchronous: no events */
	if (attr->name || attr->flags & FI_AV_USER_ID) {
		DUO_WARN(AV, "cannot open an AV %s: not supported. %s\n",
			 attr->name ? attr->name : "with FI_AV_USER_ID",
			 attr->name ? "Open one without a name" :
			 "Open it without this flag");
		return -FI_ENOSYS;
	}
	av = duo_av_alloc(duo_domain_of(domain_fid));
	if (!av)
		return -FI_ENOMEM;
	core_attr = *attr;
	core_attr.type = FI_AV_TABLE;
	ret = fi_av_open(av->domain->path_domain[FI_DUO_CORE], &core_attr,
			 &av->core, context);
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
	duo_lock(&av->domain->group.lock);
	LIST_INSERT_HEAD(&av->domain->avs, av, link);
	duo_unlock(&av->domain->group.lock);
	atomic_fetch_add(&av->domain->refs, 1);
	*av_fid = &av->av_fid;
	return 0;
}
