/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <rdma/fi_errno.h>

#include "base/enosys.h"

#define DUO_NO_DEFINE(name, ...) \
	int duo_no_##name(__VA_ARGS__) \
	{ \
		return -FI_ENOSYS; \
	}

DUO_NO_OPS(DUO_NO_DEFINE)
DUO_NO_XPU(DUO_NO_DEFINE)

ssize_t duo_no_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}
