/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What there is of this folder with a libfabric before 2.0, whose shm cannot be
 * a peer: near carries local messages, or the core all.
 */

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "peer/shm/device.h"
#include "peer/shm/shm.h"

struct fi_info *duo_shm_getinfo(uint64_t caps)
{
	DUO_WARN(FABRIC, "libfabric %d.%d has no shm that ofi_duo could use; "
		 "the core carries all messages%s\n", FI_MAJOR_VERSION,
		 FI_MINOR_VERSION, caps & FI_HMEM ? " of device memory" :
		 ". Set FI_OFI_DUO_PEER=near");
	return NULL;
}

int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			uint64_t flags)
{
	return 0;
}

void duo_device_forget(struct duo_mr *mr)
{
}

void duo_device_unlist(struct duo_mr *mr)
{
}

int duo_device_list(struct duo_mr *mr)
{
	return 0;
}

void *duo_device_desc(const struct duo_domain *domain, void *desc)
{
	return NULL;
}

void duo_device_receive(struct duo_rx *rx)
{
}

/* Never of a domain: there is no info to open one with. */
const struct duo_peer duo_peer_shm = {
	.name = "shm",
	.limits = DUO_SHM_LIMITS,
	.takes = DUO_SHM_TAKES,
	.same_libfabric = true,
	.fabric_open = duo_shm_fabric_open,
	.domain_open = duo_shm_domain_open,
	.bury = duo_shm_bury,
	.sweep = duo_shm_sweep,
};
