/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * If ofi_duo is built with a libfabric before 2.0, the build uses this file in
 * place of the other source files of this folder, because the provider shm of
 * that libfabric cannot be a peer provider.
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

/*
 * fabric_open() always fails. ofi_duo then calls no other function of the
 * transport, so these are NULL.
 */
const struct duo_transport duo_transport_shm = {
	.name = "shm",
	.takes = DUO_SHM_TAKES,
	.fabric_open = duo_shm_fabric_open,
};
