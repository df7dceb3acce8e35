/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * In a build with a libfabric before 2.0, this file replaces the other source
 * files of this folder, because that libfabric's shm cannot be a peer provider.
 */

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "shm/shm.h"

static int duo_shm_fabric_open(struct duo_fabric *fabric)
{
	DUO_WARN(FABRIC, "libfabric %d.%d has no shm provider that ofi_duo can "
		 "use; the core carries all messages. Set "
		 "FI_OFI_DUO_LOCAL=near\n",
		 FI_MAJOR_VERSION, FI_MINOR_VERSION);
	return -FI_ENODATA;
}

/* The other functions are NULL: ofi_duo calls none if fabric_open() fails. */
const struct duo_transport duo_transport_shm = {
	.name = "shm",
	.limits = DUO_SHM_LIMITS,
	.takes = DUO_SHM_TAKES,
	.fabric_open = duo_shm_fabric_open,
};
