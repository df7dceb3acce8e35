/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Address vectors: an array of addresses, and a hash to find them. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/near_fi.h"
#include "link/shm.h"

#define NEAR_AV_HASH 4096
#define NEAR_AV_MAX (1u << 24)

const struct near_addr *near_av_at(const struct near_av *av, fi_addr_t addr)
{
	return addr < av->count && av->addr[addr].pid ? &av->addr[addr] : NULL;
}

fi_addr_t near_av_find(const struct near_av *av, const struct near_addr *addr)
{
	uint32_t i = av->hash[addr->nonce % NEAR_AV_HASH];

	while (i && memcmp(&av->addr[i - 1], addr, sizeof(*addr)))
		i = av->same_hash[i - 1];
	return i ? i - 1 : FI_ADDR_NOTAVAIL;
}

static int near_av_grow(struct near_av *av)
{
	uint32_t room = av->room ? 2 * av->room : 64, *same;
	struct near_addr *addr;

	if (room > NEAR_AV_MAX)
		return -FI_ENOMEM;
	addr = realloc(av->addr, room * sizeof(*addr));
	if (!addr)
		return -FI_ENOMEM;
	av->addr = addr;
	same = realloc(av->same_hash, room * sizeof(*same));
	if (!same)
		return -FI_ENOMEM;
	av->same_hash = same;
	av->room = room;
	return 0;
}

/* One that was removed, or the next. */
static int near_av_slot(struct near_av *av, uint32_t *slot)
{
	uint32_t i;

	if (av->removed) {
		for (i = 0; av->addr[i].pid; i++)
			;
		av->removed--;
		*slot = i;
		return 0;
	}
	if (av->count == av->room && near_av_grow(av))
		return -FI_ENOMEM;
	*slot = av->count++;
	return 0;
}

static int near_av_add(struct near_av *av, const struct near_addr *addr,
		       fi_addr_t *fi_addr)
{
	uint32_t *head = &av->hash[addr->nonce % NEAR_AV_HASH], slot;
	uint32_t count = av->count;
	struct near_link *link;
	int ret;

	if (addr->magic != NEAR_MAGIC || addr->pid <= 0)
		return -FI_EINVAL;
	ret = near_av_slot(av, &slot);
	if (ret)
		return ret;
	av->addr[slot] = *addr;
	av->same_hash[slot] = *head;
	*head = slot + 1;
	*fi_addr = slot;
	for (link = av->eps.next; link != &av->eps; link = link->next)
		near_ep_av_added(near_container(link, struct near_ep, av_link),
				 slot, av->count > count);
	return 0;
}

static int near_av_insert(struct fid_av *av_fid, const void *addr_in,
			  size_t count, fi_addr_t *fi_addr, uint64_t flags,
			  void *context)
{
	struct near_av *av = near_av_of(av_fid);
	int *errs = flags & FI_SYNC_ERR ? context : NULL, good = 0, ret;
	struct near_addr addr;
	fi_addr_t slot;
	size_t i;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	near_lock(av->domain);
	for (i = 0; i < count; i++) {
		memcpy(&addr, (const char *)addr_in + i * sizeof(addr),
		       sizeof(addr));
		slot = FI_ADDR_NOTAVAIL;
		ret = near_av_add(av, &addr, &slot);
		good += !ret;
		if (ret == -FI_EINVAL)
			NEAR_WARN(AV, "address %zu of %zu is none of near's\n",
				  i + 1, count);
		if (fi_addr)
			fi_addr[i] = slot;
		if (errs)
			errs[i] = -ret;
	}
	near_unlock(av->domain);
	return good;
}

static void near_av_drop(struct near_av *av, uint32_t slot)
{
	uint32_t *at = &av->hash[av->addr[slot].nonce % NEAR_AV_HASH];
	struct near_link *link;

	while (*at != slot + 1)
		at = &av->same_hash[*at - 1];
	*at = av->same_hash[slot];
	for (link = av->eps.next; link != &av->eps; link = link->next)
		near_ep_av_removed(near_container(link, struct near_ep,
						  av_link), slot);
	memset(&av->addr[slot], 0, sizeof(av->addr[slot]));
	av->removed++;
}

static int near_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			  size_t count, uint64_t flags)
{
	struct near_av *av = near_av_of(av_fid);
	int ret = 0;
	size_t i;

	near_lock(av->domain);
	for (i = 0; i < count; i++) {
		if (near_av_at(av, fi_addr[i]))
			near_av_drop(av, (uint32_t)fi_addr[i]);
		else
			ret = -FI_EINVAL;
	}
	near_unlock(av->domain);
	return ret;
}

static int near_av_lookup(struct fid_av *av_fid, fi_addr_t fi_addr, void *addr,
			  size_t *len)
{
	struct near_av *av = near_av_of(av_fid);
	const struct near_addr *at;
	int ret = -FI_EINVAL;

	near_lock(av->domain);
	at = near_av_at(av, fi_addr);
	if (at) {
		memcpy(addr, at, *len < sizeof(*at) ? *len : sizeof(*at));
		*len = sizeof(*at);
		ret = 0;
	}
	near_unlock(av->domain);
	return ret;
}

static const char *near_av_straddr(struct fid_av *av, const void *addr,
				   char *buf, size_t *len)
{
	struct near_addr at;
	int n;

	memcpy(&at, addr, sizeof(at));
	n = snprintf(buf, *len, "near://%d/%016" PRIx64, at.pid, at.nonce);
	*len = n + 1;
	return buf;
}

static int near_av_insertsvc(struct fid_av *av, const char *node,
			     const char *service, fi_addr_t *fi_addr,
			     uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static int near_av_insertsym(struct fid_av *av, const char *node,
			     size_t nodecnt, const char *service,
			     size_t svccnt, fi_addr_t *fi_addr, uint64_t flags,
			     void *context)
{
	return -FI_ENOSYS;
}

static int near_av_close(struct fid *fid)
{
	struct near_av *av = near_container(fid, struct near_av, fid.fid);
	struct near_domain *domain = av->domain;

	near_lock(domain);
	if (av->refs) {
		near_unlock(domain);
		return -FI_EBUSY;
	}
	domain->refs--;
	near_unlock(domain);
	free(av->addr);
	free(av->same_hash);
	free(av->hash);
	free(av);
	return 0;
}

static int near_av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return bfid->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops near_av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_av_close,
	.bind = near_av_bind,
	.control = near_no_control,
	.ops_open = near_no_ops_open,
};

static struct fi_ops_av near_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = near_av_insert,
	.insertsvc = near_av_insertsvc,
	.insertsym = near_av_insertsym,
	.remove = near_av_remove,
	.lookup = near_av_lookup,
	.straddr = near_av_straddr,
};

int near_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		 struct fid_av **av_fid, void *context)
{
	struct near_av *av;

	if (attr->flags || attr->name || attr->rx_ctx_bits)
		return -FI_ENOSYS;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->hash = calloc(NEAR_AV_HASH, sizeof(*av->hash));
	if (!av->hash) {
		free(av);
		return -FI_ENOMEM;
	}
	av->domain = near_domain_of(domain_fid);
	near_list_init(&av->eps);
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &near_av_fi_ops;
	av->fid.ops = &near_av_ops;
	near_lock(av->domain);
	av->domain->refs++;
	near_unlock(av->domain);
	*av_fid = &av->fid;
	return 0;
}
