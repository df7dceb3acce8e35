/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Entries of near's region table: regions that local peers may access. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/params.h"
#include "device/device.h"
#include "obj/av.h"
#include "obj/fabric.h"
#include "transport/near/near_ep.h"
#include "transport/near/onesided.h"

#define DUO_KEY_NONE UINT64_MAX	/* value of FI_KEY_NOTAVAIL */
/* lowest key that ofi_duo assigns to regions without remote access */
#define DUO_KEY_MESSAGES (1ULL << 63)
/*
 * Rights that near needs for itself, and that permit no RMA: to read a message
 * from the region (a fetch), and to have a peer's device copy from or to the
 * region (a loan: docs/near/rma.md, *Lent operations*)
 */
#define DUO_NEAR_INTERNAL (NEAR_MAY_MESSAGE | NEAR_MAY_LEND)

bool duo_near_serves(const struct fi_info *info)
{
	return info->caps & (FI_RMA | FI_ATOMIC) &&
	       (info->caps & (FI_MSG | FI_TAGGED) ||
		!(info->caps & FI_FENCE)) &&
	       !(info->domain_attr->mr_mode & FI_MR_RAW) &&
	       (info->domain_attr->data_progress != FI_PROGRESS_AUTO ||
		duo_params.hook) &&
	       !(info->tx_attr && info->tx_attr->iov_limit > NEAR_IOV_MAX);
}

static const char *duo_near_table_remedy(int err)
{
	return err == EFBIG ? "Raise the file size limit (ulimit -f)" :
	       err == EMFILE ? "Raise the limit of open files (ulimit -n)" :
			       "FI_LOG_LEVEL=info prints details";
}

/* True if RMA names bytes by their virtual addresses, not by their offsets. */
static bool duo_near_virt_addrs(int mr_mode)
{
	return mr_mode == DUO_MR_BASIC || mr_mode & FI_MR_VIRT_ADDR;
}

int duo_near_table_open(struct duo_domain *domain, const struct fi_info *info)
{
	bool needed = domain->fabric->traits.carries_nothing;
	bool onesided = needed || duo_near_serves(info);
	struct near_table *table = NULL;
	int ret = 0;

	if (domain->peer != &duo_transport_near ||
	    (!onesided && !domain->device))
		return 0;
	duo_domain_lock(domain);
	if (!domain->table)
		ret = near_table_open(&table, domain->device);
	if (!ret && table) {
		domain->virt_addrs =
			duo_near_virt_addrs(info->domain_attr->mr_mode);
		domain->table = table;
	}
	/*
	 * if domain->onesided is true already, does not store true again,
	 * because other threads may be reading it
	 */
	if (domain->table && onesided && !domain->onesided)
		domain->onesided = true;
	duo_domain_unlock(domain);
	if (!ret)
		return 0;
	DUO_WARN(DOMAIN, "near: cannot open the region table: %s; %s. %s\n",
		 strerror(-ret), needed ? "fi_domain fails" :
		 onesided ? "the core carries RMA and atomics to local peers" :
		 "large messages of device memory go through host memory",
		 duo_near_table_remedy(-ret));
	return needed ? ret : 0;
}

void duo_near_table_close(struct duo_domain *domain)
{
	duo_near_regions_unmap(domain);
	if (domain->table)
		near_table_close(domain->table);
}

void duo_near_regions_unmap(struct duo_domain *domain)
{
	void *mapping;

	if (!domain->device)
		return;
	do {
		duo_lock(&domain->group.lock);
		mapping = domain->table ? near_table_unmapped(domain->table) :
					  NULL;
		duo_unlock(&domain->group.lock);
		if (mapping)
			duo_device_release(mapping);
	} while (mapping);
}

static uint32_t duo_near_access(uint64_t access)
{
	return (access & FI_REMOTE_READ ? NEAR_MAY_READ : 0) |
	       (access & FI_REMOTE_WRITE ? NEAR_MAY_WRITE : 0);
}

int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access)
{
	if (count != 1)
		return 0;
	mr->region = (struct near_region_entry) {
		.memory = (uintptr_t) iov->iov_base,
		.len = iov->iov_len,
		.access = duo_near_access(access),
	};
	if (mr->device) {
		mr->region.access <<= NEAR_MAY_DEVICE;
		if (access & FI_SEND)
			mr->region.access |= NEAR_MAY_MESSAGE;
		mr->region.device = (uintptr_t) mr;
		if (duo_device_export(mr, iov, &mr->export))
			mr->export.id = 0;
		if (mr->export.id &&
		    access & (FI_SEND | FI_RECV | FI_READ | FI_WRITE))
			mr->region.access |= NEAR_MAY_LEND;
	}
	return duo_near_region_list(mr);
}

/*
 * Returns the region's entry for the table. If the region must not be in the
 * table, `access` of the entry is 0. An entry without rights for RMA gets a new
 * key, because applications may give equal keys to regions without remote
 * access.
 */
static struct near_region_entry duo_near_region_entry(struct duo_mr *mr)
{
	struct duo_domain *domain = mr->domain;
	struct near_region_entry entry = mr->region;

	entry.start = domain->virt_addrs ? entry.memory : 0;
	entry.key = mr->mr_fid.key;
	if (!domain->onesided || entry.key == DUO_KEY_NONE)
		entry.access &= DUO_NEAR_INTERNAL;
	if (!(entry.access & ~DUO_NEAR_INTERNAL))
		entry.key = DUO_KEY_MESSAGES | domain->message_keys++;
	return entry;
}

int duo_near_region_list(struct duo_mr *mr)
{
	struct duo_domain *domain = mr->domain;
	struct near_region_entry entry;
	struct near_table *table;
	int ret = 0;

	if (!mr->region.access)
		return 0;
	duo_domain_lock(domain);
	entry = duo_near_region_entry(mr);
	table = entry.access ? domain->table : NULL;
	mr->region.start = entry.start;
	mr->region.key = entry.key;
	if (table)
		ret = near_table_add(table, &entry);
	mr->listed = table && !ret;
	/* if the export fails, peers' operations on the region are staged */
	if (mr->listed && mr->export.id)
		near_table_export(table, mr->region.key, &mr->export);
	duo_domain_unlock(domain);
	if (ret)
		DUO_INFO(MR, "near: cannot add the region with key 0x%" PRIx64
			 " to the region table, local peers access it over the "
			 "core: %s\n", mr->region.key, strerror(-ret));
	if (!domain->fabric->traits.carries_nothing ||
	    !(entry.access & ~DUO_NEAR_INTERNAL))
		return 0;
	/* unlike other errors, FI_ENOKEY and ENOKEY have different numbers */
	return ret == -ENOKEY ? -FI_ENOKEY : ret;
}

bool duo_near_region_fetchable(const struct duo_mr *mr, const void *buf,
			       size_t len, struct near_rndv *rndv)
{
	return duo_mr_name(mr, NEAR_MAY_MESSAGE, buf, len, &rndv->key,
			   &rndv->addr);
}

/*
 * Waits until this process's devices have ended all copies from and to host
 * memory for peers (lent operations). The caller must hold all locks of the
 * domain.
 */
static void duo_near_region_settle(const struct duo_domain *domain)
{
	const struct duo_av *av;
	const struct duo_ep *ep;

	LIST_FOREACH(av, &domain->avs, link)
		LIST_FOREACH(ep, &av->eps, av_link) {
			if (ep->near)
				near_rma_settle(ep->near->port);
		}
}

void duo_near_region_unlist(struct duo_mr *mr)
{
	if (!mr->listed)
		return;
	duo_domain_lock(mr->domain);
	near_table_remove(mr->domain->table, mr->region.key);
	if (mr->domain->device && !mr->device)
		duo_near_region_settle(mr->domain);
	duo_domain_unlock(mr->domain);
	mr->listed = false;
}

bool duo_near_region_used(const struct duo_mr *mr)
{
	const struct duo_av *av;
	const struct duo_ep *ep;
	bool used = false;

	if (!mr->device)
		return false;
	duo_lock(&mr->domain->group.lock);
	LIST_FOREACH(av, &mr->domain->avs, link)
		LIST_FOREACH(ep, &av->eps, av_link)
			used = used || (ep->near &&
					near_rma_uses(ep->near->port, mr));
	used = used && !mr->again;
	duo_unlock(&mr->domain->group.lock);
	return used;
}
