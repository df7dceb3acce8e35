/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* shm's fabric and domain behind ours. */

#include <pthread.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "obj/domain.h"
#include "obj/fabric.h"
#include "peer/shm/shm.h"

/* Domains of one fabric may be opened by several threads. */
static pthread_mutex_t duo_shm_fabric_lock = PTHREAD_MUTEX_INITIALIZER;

/* shm's info, kept in *info, if its fabric can be opened. */
static struct fi_info *duo_shm_info(struct duo_fabric *fabric, uint64_t caps,
				    struct fi_info **info)
{
	int ret;

	if (!*info)
		*info = duo_shm_getinfo(caps);
	if (!*info || fabric->path_fabric[FI_DUO_LOCAL])
		return *info;
	ret = fi_fabric((*info)->fabric_attr,
			&fabric->path_fabric[FI_DUO_LOCAL], NULL);
	if (!ret)
		return *info;
	DUO_WARN(FABRIC, "shm fabric: %s; the core %s carries all messages\n",
		 fi_strerror(-ret), fabric->core_name);
	fabric->path_fabric[FI_DUO_LOCAL] = NULL;
	fi_freeinfo(*info);
	*info = NULL;
	return NULL;
}

int duo_shm_fabric_open(struct duo_fabric *fabric)
{
	return duo_shm_info(fabric, 0, &fabric->shm_info) ? 0 : -FI_ENODATA;
}

/* Only asked for where there is device memory; NULL: why not has been said. */
static struct fi_info *duo_shm_device_info(struct duo_fabric *fabric)
{
	struct fi_info *info;

	pthread_mutex_lock(&duo_shm_fabric_lock);
	info = duo_shm_info(fabric, FI_HMEM, &fabric->device_info);
	pthread_mutex_unlock(&duo_shm_fabric_lock);
	return info;
}

int duo_shm_domain_open(struct duo_domain *domain, bool device)
{
	struct duo_fabric *fabric = domain->fabric;
	int ret;

	domain->shm_info = device ? duo_shm_device_info(fabric) :
				    fabric->shm_info;
	if (!domain->shm_info)
		return -FI_ENODATA;
	ret = fi_domain(fabric->path_fabric[FI_DUO_LOCAL], domain->shm_info,
			&domain->path_domain[FI_DUO_LOCAL], NULL);
	if (!ret)
		return 0;
	domain->path_domain[FI_DUO_LOCAL] = NULL;
	DUO_WARN(DOMAIN, "shm domain: %s; the core %s carries all messages\n",
		 fi_strerror(-ret), fabric->core_name);
	return ret;
}
