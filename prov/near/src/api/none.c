/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What the provider does not do; none of it is advertised. */

#include "api/near_fi.h"

int near_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int near_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int near_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context)
{
	return -FI_ENOSYS;
}
