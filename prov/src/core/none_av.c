/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The AV of a core that carries nothing: addresses of near, by number. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/enosys.h"
#include "base/log.h"
#include "core/none.h"
#include "near/near.h"
#include "obj/av.h"

#define DUO_NONE_AV_MIN 64	/* addresses, to begin with */

/* A free slot has pid 0, and in its nonce the number of the next free one + 1. */
struct duo_none_av {
	struct fid_av av_fid;
	struct near_addr *addr;
	uint32_t count;		/* of slots that are or were in use */
	uint32_t room;
	uint64_t free;		/* the first free slot + 1; 0: none */
};

static struct duo_none_av *duo_none_av_of(struct fid_av *av_fid)
{
	return duo_container_of(av_fid, struct duo_none_av, av_fid);
}

static int duo_none_av_grow(struct duo_none_av *av)
{
	uint32_t room = av->room ? 2 * av->room : DUO_NONE_AV_MIN;
	struct near_addr *addr;

	if (room > DUO_AV_MAX)
		return -FI_ENOMEM;
	addr = realloc(av->addr, room * sizeof(*addr));
	if (!addr)
		return -FI_ENOMEM;
	av->addr = addr;
	av->room = room;
	return 0;
}

static int duo_none_av_add(struct duo_none_av *av, const struct near_addr *addr,
			   fi_addr_t *fi_addr)
{
	fi_addr_t slot;

	if (addr->magic != NEAR_MAGIC || addr->pid <= 0)
		return -FI_EINVAL;
	if (!av->free && av->count == av->room && duo_none_av_grow(av))
		return -FI_ENOMEM;
	slot = av->free ? av->free - 1 : av->count++;
	if (av->free)
		av->free = av->addr[slot].nonce;
	av->addr[slot] = *addr;
	*fi_addr = slot;
	return 0;
}

static int duo_none_av_insert(struct fid_av *av_fid, const void *addr_in,
			      size_t count, fi_addr_t *fi_addr, uint64_t flags,
			      void *context)
{
	int *err = flags & FI_SYNC_ERR ? context : NULL, good = 0, ret;
	struct duo_none_av *av = duo_none_av_of(av_fid);
	struct near_addr addr;
	size_t i;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	for (i = 0; i < count; i++) {
		memcpy(&addr, (const char *) addr_in + i * sizeof(addr),
		       sizeof(addr));
		fi_addr[i] = FI_ADDR_NOTAVAIL;
		ret = duo_none_av_add(av, &addr, &fi_addr[i]);
		good += !ret;
		if (ret == -FI_EINVAL)
			DUO_WARN(AV, "address %zu of %zu is none of near's\n",
				 i + 1, count);
		if (err)
			err[i] = -ret;
	}
	return good;
}

static const struct near_addr *duo_none_av_at(const struct duo_none_av *av,
					      fi_addr_t fi_addr)
{
	return fi_addr < av->count && av->addr[fi_addr].pid ?
	       &av->addr[fi_addr] : NULL;
}

static int duo_none_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			      size_t count, uint64_t flags)
{
	struct duo_none_av *av = duo_none_av_of(av_fid);
	int ret = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!duo_none_av_at(av, fi_addr[i])) {
			ret = -FI_EINVAL;
			continue;
		}
		av->addr[fi_addr[i]] = (struct near_addr) {
			.nonce = av->free,
		};
		av->free = fi_addr[i] + 1;
	}
	return ret;
}

static int duo_none_av_lookup(struct fid_av *av_fid, fi_addr_t fi_addr,
			      void *addr, size_t *len)
{
	const struct near_addr *at = duo_none_av_at(duo_none_av_of(av_fid),
						    fi_addr);

	if (!at)
		return -FI_EINVAL;
	memcpy(addr, at, *len < sizeof(*at) ? *len : sizeof(*at));
	*len = sizeof(*at);
	return 0;
}

static const char *duo_none_av_straddr(struct fid_av *av_fid, const void *addr,
				       char *buf, size_t *len)
{
	struct near_addr at;

	memcpy(&at, addr, sizeof(at));
	*len = snprintf(buf, *len, "near://%d/%016" PRIx64, at.pid, at.nonce) +
	       1;
	return buf;
}

static int duo_none_av_insertsvc(struct fid_av *av_fid, const char *node,
				 const char *service, fi_addr_t *fi_addr,
				 uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static int duo_none_av_insertsym(struct fid_av *av_fid, const char *node,
				 size_t nodecnt, const char *service,
				 size_t svccnt, fi_addr_t *fi_addr,
				 uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static int duo_none_av_close(struct fid *fid)
{
	struct duo_none_av *av = duo_container_of(fid, struct duo_none_av,
						  av_fid.fid);

	free(av->addr);
	free(av);
	return 0;
}

static int duo_none_av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return bfid && bfid->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops duo_none_av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_none_av_close,
	.bind = duo_none_av_bind,
	.control = duo_no_control,
	.ops_open = duo_no_ops_open,
};

static struct fi_ops_av duo_none_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = duo_none_av_insert,
	.insertsvc = duo_none_av_insertsvc,
	.insertsym = duo_none_av_insertsym,
	.remove = duo_none_av_remove,
	.lookup = duo_none_av_lookup,
	.straddr = duo_none_av_straddr,
};

int duo_none_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		     struct fid_av **av_fid, void *context)
{
	struct duo_none_av *av;

	if (attr->flags || attr->name || attr->rx_ctx_bits)
		return -FI_ENOSYS;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->av_fid.fid.fclass = FI_CLASS_AV;
	av->av_fid.fid.context = context;
	av->av_fid.fid.ops = &duo_none_av_fi_ops;
	av->av_fid.ops = &duo_none_av_ops;
	*av_fid = &av->av_fid;
	return 0;
}
