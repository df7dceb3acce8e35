/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* shm's fabric and domain behind ours. */

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "obj/domain.h"
#include "obj/fabric.h"
#include "shm/shm.h"

int duo_shm_fabric_open(struct duo_fabric *fabric)
{
	int ret;

	fabric->shm_info = duo_shm_getinfo();
	if (!fabric->shm_info)
		return -FI_ENODATA;
	ret = fi_fabric(fabric->shm_info->fabric_attr,
			&fabric->path_fabric[FI_DUO_LOCAL], NULL);
	if (!ret)
		return 0;
	DUO_WARN(FABRIC, "shm fabric: %s; the core %s carries all messages\n",
		 fi_strerror(-ret), fabric->core_name);
	fabric->path_fabric[FI_DUO_LOCAL] = NULL;
	fi_freeinfo(fabric->shm_info);
	fabric->shm_info = NULL;
	return ret;
}

int duo_shm_domain_open(struct duo_domain *domain)
{
	struct duo_fabric *fabric = domain->fabric;
	int ret = fi_domain(fabric->path_fabric[FI_DUO_LOCAL],
			    fabric->shm_info,
			    &domain->path_domain[FI_DUO_LOCAL], NULL);

	if (!ret)
		return 0;
	domain->path_domain[FI_DUO_LOCAL] = NULL;
	DUO_WARN(DOMAIN, "shm domain: %s; the core %s carries all messages\n",
		 fi_strerror(-ret), fabric->core_name);
	return ret;
}
