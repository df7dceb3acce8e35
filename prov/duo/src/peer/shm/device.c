/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Regions of device memory with shm, device.h. */

#include <search.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/mr.h"
#include "peer/shm/device.h"

static int duo_device_compare(const void *a, const void *b)
{
	const struct duo_mr *one = a, *other = b;
	uintptr_t desc = (uintptr_t)one->mr_fid.mem_desc;
	uintptr_t other_desc = (uintptr_t)other->mr_fid.mem_desc;

	return (desc > other_desc) - (desc < other_desc);
}

void duo_device_unlist(struct duo_mr *mr)
{
	if (!mr->shm || !mr->mr_fid.mem_desc)
		return;
	duo_lock(&mr->domain->lock);
	tdelete(mr, &mr->domain->device_mrs, duo_device_compare);
	duo_unlock(&mr->domain->lock);
}

int duo_device_list(struct duo_mr *mr)
{
	void *node;

	if (!mr->shm || !mr->mr_fid.mem_desc)
		return 0;
	duo_lock(&mr->domain->lock);
	node = tsearch(mr, &mr->domain->device_mrs, duo_device_compare);
	duo_unlock(&mr->domain->lock);
	return node ? 0 : -FI_ENOMEM;
}

int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			uint64_t flags)
{
	struct duo_domain *domain = mr->domain;
	struct fi_mr_attr shm_attr = *attr;
	int ret;

	if (!domain->device || attr->iface == FI_HMEM_SYSTEM)
		return 0;
	shm_attr.base_mr = NULL;
	duo_lock(&domain->lock); /* all calls into shm are serialised */
	shm_attr.requested_key = domain->device_key++;
	ret = fi_mr_regattr(domain->path_domain[FI_DUO_LOCAL], &shm_attr, flags,
			    &mr->shm);
	duo_unlock(&domain->lock);
	if (ret) {
		mr->shm = NULL;
		DUO_WARN(MR,
			 "region of %zu buffers, interface %d: shm: %s; "
			 "set FI_OFI_DUO_USE_SHM=0 to have the core %s alone\n",
			 attr->iov_count, (int)attr->iface, fi_strerror(-ret),
			 domain->fabric->core_name);
		return ret;
	}
	ret = duo_device_list(mr);
	if (ret)
		duo_device_forget(mr);
	return ret;
}

void duo_device_forget(struct duo_mr *mr)
{
	if (!mr->shm)
		return;
	duo_device_unlist(mr);
	duo_lock(&mr->domain->lock);
	fi_close(&mr->shm->fid);
	duo_unlock(&mr->domain->lock);
	mr->shm = NULL;
}

void *duo_device_desc(const struct duo_domain *domain, void *desc)
{
	const struct duo_mr key = {.mr_fid.mem_desc = desc};
	struct duo_mr **found;

	if (!desc)
		return NULL;
	found = tfind(&key, &domain->device_mrs, duo_device_compare);
	return found ? (*found)->shm->mem_desc : NULL;
}

void duo_device_receive(struct duo_rx *rx)
{
	size_t i;

	for (i = 0; i < rx->count; i++)
		rx->shm_desc[i] = duo_device_desc(rx->ep->domain, rx->desc[i]);
	rx->peer.desc = rx->shm_desc;
}
