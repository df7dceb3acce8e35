/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory regions that local peers use over near: those of host memory in one
 * piece, under the core's key and by the core's way of naming addresses.
 */

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "peer/near/onesided.h"

#define DUO_KEY_NONE UINT64_MAX	/* FI_KEY_NOTAVAIL */

/* 1 is FI_MR_BASIC, which newer headers want nobody to say. */
#define DUO_MR_UNKNOWN (1 | FI_MR_RAW)

bool duo_near_serves(const struct fi_info *info)
{
	return info->caps & (FI_RMA | FI_ATOMIC) &&
	       (info->caps & (FI_MSG | FI_TAGGED) ||
		!(info->caps & FI_FENCE)) &&
	       !(info->domain_attr->mr_mode & DUO_MR_UNKNOWN) &&
	       info->domain_attr->data_progress != FI_PROGRESS_AUTO &&
	       !(info->tx_attr && info->tx_attr->iov_limit > NEAR_IOV_MAX);
}

void duo_near_table_open(struct duo_domain *domain, const struct fi_info *info)
{
	struct near_table *table = NULL;
	int ret = 0;

	if (domain->peer != &duo_peer_near || !duo_near_serves(info))
		return;
	duo_lock(&domain->lock);
	if (!domain->table)
		ret = near_table_open(&table);
	if (!ret && table) {
		domain->virt_addrs = info->domain_attr->mr_mode &
				     FI_MR_VIRT_ADDR;
		domain->table = table;
	}
	duo_unlock(&domain->lock);
	if (!ret)
		return;
	DUO_WARN(DOMAIN, "near: no table of regions: %s; the core carries RMA "
		 "and atomics to local peers\n", strerror(-ret));
}

void duo_near_table_close(struct duo_domain *domain)
{
	if (domain->table)
		near_table_close(domain->table);
}

static uint32_t duo_near_access(uint64_t access)
{
	return (access & FI_REMOTE_READ ? NEAR_MAY_READ : 0) |
	       (access & FI_REMOTE_WRITE ? NEAR_MAY_WRITE : 0);
}

void duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			 size_t count, uint64_t access)
{
	if (count != 1)
		return;
	mr->region = (struct near_region_entry) {
		.memory = (uintptr_t) iov->iov_base,
		.len = iov->iov_len,
		.access = duo_near_access(access),
	};
	duo_near_region_list(mr);
}

/* One that is not listed, for whatever reason, is the core's. */
void duo_near_region_list(struct duo_mr *mr)
{
	struct duo_domain *domain = mr->domain;
	struct near_table *table;

	if (!mr->region.access || mr->mr_fid.key == DUO_KEY_NONE)
		return;
	mr->region.key = mr->mr_fid.key;
	duo_lock(&domain->lock);
	table = domain->table;
	mr->region.start = domain->virt_addrs ? mr->region.memory : 0;
	mr->listed = table && !near_table_add(table, &mr->region);
	duo_unlock(&domain->lock);
	if (table && !mr->listed)
		DUO_INFO(MR, "near: region with key 0x%" PRIx64 " is not "
			 "listed, the core carries RMA to it\n",
			 mr->region.key);
}

void duo_near_region_unlist(struct duo_mr *mr)
{
	if (!mr->listed)
		return;
	duo_lock(&mr->domain->lock);
	near_table_remove(mr->domain->table, mr->region.key);
	duo_unlock(&mr->domain->lock);
	mr->listed = false;
}
