/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The AV of the core "none". Assigns each address the lowest free number as its
 * fi_addr, as fi_av(3) requires. If no number is free, assigns DUO_AV_MAX.
 * av/av.c stores the addresses, and removes only numbers in use and DUO_AV_MAX,
 * so this file does not check whether a number is in use.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/enosys.h"
#include "base/log.h"
#include "core/none.h"
#include "near/near.h"

struct duo_none_av {
	struct fid_av av_fid;
	uint32_t low;		/* all numbers below this are in use */
	/* [DUO_AV_MAX], indexed by number; 1: in use */
	uint8_t *used;
};

static struct duo_none_av *duo_none_av_of(struct fid_av *av_fid)
{
	return duo_container_of(av_fid, struct duo_none_av, av_fid);
}

static bool duo_none_av_valid(const void *bytes)
{
	struct near_addr addr;

	memcpy(&addr, bytes, sizeof(addr));
	return addr.magic == NEAR_MAGIC && addr.pid > 0;
}

/* Marks the lowest free number as used. Returns it; DUO_AV_MAX: none. */
static fi_addr_t duo_none_av_take(struct duo_none_av *av)
{
	const uint8_t *at = memchr(av->used + av->low, 0,
				   DUO_AV_MAX - av->low);

	if (!at) {
		av->low = DUO_AV_MAX;
		return DUO_AV_MAX;
	}
	av->low = at - av->used;
	av->used[av->low] = 1;
	return av->low++;
}

static int duo_none_av_insert(struct fid_av *av_fid, const void *addr,
			      size_t count, fi_addr_t *fi_addr, uint64_t flags,
			      void *context)
{
	int *err = flags & FI_SYNC_ERR ? context : NULL, good = 0;
	struct duo_none_av *av = duo_none_av_of(av_fid);
	const char *next = addr;
	bool valid;
	size_t i;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	for (i = 0; i < count; i++, next += sizeof(struct near_addr)) {
		valid = duo_none_av_valid(next);
		if (!valid)
			DUO_WARN(AV, "address %zu of %zu is not a near "
				 "address\n", i + 1, count);
		fi_addr[i] = valid ? duo_none_av_take(av) : FI_ADDR_NOTAVAIL;
		good += valid;
		if (err)
			err[i] = valid ? 0 : FI_EINVAL;
	}
	return good;
}

static int duo_none_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			      size_t count, uint64_t flags)
{
	struct duo_none_av *av = duo_none_av_of(av_fid);
	size_t i;

	for (i = 0; i < count; i++) {
		/*
		 * If no fi_addr was free when the address was inserted, the
		 * address has DUO_AV_MAX until duo_av_admit() removes it.
		 * av->used has no entry for DUO_AV_MAX.
		 */
		if (fi_addr[i] >= DUO_AV_MAX)
			continue;
		av->used[fi_addr[i]] = 0;
		if (fi_addr[i] < av->low)
			av->low = fi_addr[i];
	}
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

void duo_none_av_fini(struct fid *fid)
{
	struct duo_none_av *av = duo_container_of(fid, struct duo_none_av,
						  av_fid.fid);

	munmap(av->used, DUO_AV_MAX * sizeof(*av->used));
}

static struct fi_ops_av duo_none_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = duo_none_av_insert,
	.insertsvc = duo_no_insertsvc,
	.insertsym = duo_no_insertsym,
	.remove = duo_none_av_remove,
	.lookup = duo_no_lookup,
	.straddr = duo_none_av_straddr,
};

int duo_none_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		     struct fid_av **av_fid, void *context)
{
	struct duo_none_av *av;

	if (attr->flags || attr->name || attr->rx_ctx_bits)
		return -FI_ENOSYS;
	av = duo_none_alloc(sizeof(*av), FI_CLASS_AV, context);
	if (!av)
		return -FI_ENOMEM;
	av->used = duo_av_reserve(DUO_AV_MAX * sizeof(*av->used));
	if (!av->used) {
		free(av);
		return -FI_ENOMEM;
	}
	av->av_fid.ops = &duo_none_av_ops;
	*av_fid = &av->av_fid;
	return 0;
}
