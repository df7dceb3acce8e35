/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Options of endpoints. */

#include "api/near_fi.h"

int near_ep_getopt(struct fid *fid, int level, int name, void *value,
		   size_t *len)
{
	struct near_ep *ep = near_container(fid, struct near_ep, fid.fid);

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = ep->min_multi_recv;
	*len = sizeof(size_t);
	return 0;
}

int near_ep_setopt(struct fid *fid, int level, int name, const void *value,
		   size_t len)
{
	struct near_ep *ep = near_container(fid, struct near_ep, fid.fid);

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (len != sizeof(size_t))
		return -FI_EINVAL;
	near_lock(ep->domain);
	/* a buffer that is empty takes no message */
	ep->min_multi_recv = *(const size_t *)value ? *(const size_t *)value : 1;
	near_unlock(ep->domain);
	return 0;
}
