/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Options of an endpoint. */

#include <string.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "fi/api.h"
#include "obj/ep.h"

/* value of FI_OPT_MIN_MULTI_RECV if the core lacks the option, bytes */
#define DUO_MIN_MULTI_RECV 64

void duo_ep_init_opts(struct duo_ep *ep, const struct fi_info *info)
{
	size_t len = sizeof(ep->multi.min_space);

	ep->opts.local_permitted = true;
	ep->rx.op_flags[DUO_MSG] = info->rx_attr->op_flags &
				   (FI_COMPLETION | FI_MULTI_RECV);
	ep->rx.op_flags[DUO_TAGGED] = info->rx_attr->op_flags & FI_COMPLETION;
	if (fi_getopt(&ep->path_ep[FI_DUO_CORE]->fid, FI_OPT_ENDPOINT,
		      FI_OPT_MIN_MULTI_RECV, &ep->multi.min_space, &len))
		ep->multi.min_space = DUO_MIN_MULTI_RECV;
}

static int duo_ep_get(void *to, size_t *space, const void *from, size_t len)
{
	if (!to || !space)
		return -FI_EINVAL;
	if (*space < len)
		return -FI_ETOOSMALL;
	memcpy(to, from, len);
	*space = len;
	return 0;
}

int duo_ep_getopt(fid_t fid, int level, int optname, void *optval,
			 size_t *optlen)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	if (level == FI_OPT_ENDPOINT) {
		switch (optname) {
		case DUO_OPT_SHM_PERMITTED:
			return duo_ep_get(optval, optlen,
					  &ep->opts.local_permitted,
					  sizeof(ep->opts.local_permitted));
		case FI_OPT_MIN_MULTI_RECV:
			return duo_ep_get(optval, optlen, &ep->multi.min_space,
					  sizeof(ep->multi.min_space));
		}
	}
	if (!optval || !optlen)
		return -FI_EINVAL;
	return fi_getopt(&ep->path_ep[FI_DUO_CORE]->fid, level, optname,
			 optval, optlen);
}

static int duo_ep_permit_local(struct duo_ep *ep, const void *optval,
			     size_t optlen)
{
	if (ep->core.carries_nothing)
		return -FI_ENOPROTOOPT;
	if (!optval || optlen != sizeof(bool))
		return -FI_EINVAL;
	if (duo_ep_enabled(ep))
		return -FI_EOPBADSTATE;
	ep->opts.local_permitted = *(const bool *) optval;
	return 0;
}

static int duo_ep_set_min(struct duo_ep *ep, const void *optval, size_t optlen)
{
	if (!optval || optlen != sizeof(size_t))
		return -FI_EINVAL;
	duo_group_lock(&ep->group);
	ep->multi.min_space = *(const size_t *) optval;
	duo_unlock(&ep->group->lock);
	return 0;
}

/*
 * Sets FI_OPT_CUDA_API_PERMITTED. If its value is false, an endpoint with
 * FI_HMEM gets no local side, because near calls CUDA for device memory.
 */
static int duo_ep_permit_cuda(struct duo_ep *ep, const void *optval,
			      size_t optlen)
{
	bool denied;
	int ret;

	if (!optval || optlen != sizeof(bool))
		return -FI_EINVAL;
	denied = !*(const bool *) optval;
	if (denied && ep->domain->device && ep->path_ep[FI_DUO_LOCAL]) {
		DUO_WARN(EP_CTRL, "ep %p: FI_OPT_CUDA_API_PERMITTED must be "
			 "set to false before fi_enable, because near calls "
			 "CUDA\n", (void *) ep);
		return -FI_EOPBADSTATE;
	}
	ret = fi_setopt(&ep->path_ep[FI_DUO_CORE]->fid, FI_OPT_ENDPOINT,
			DUO_OPT_CUDA_PERMITTED, optval, optlen);
	if (!ret)
		ep->opts.cuda_denied = denied;
	return ret;
}

/*
 * Sets the option optname, for which DUO_OPT_IN_ORDER() must be true. If the
 * value of this option is true, the bytes of each block of 128 bytes must
 * arrive in order. The endpoint then gets no local side, because near may copy
 * bytes in any order.
 */
static int duo_ep_set_in_order(struct duo_ep *ep, int optname,
			       const void *optval, size_t optlen)
{
	bool wanted = optval && optlen == sizeof(bool) &&
		      *(const bool *) optval;
	int ret;

	if (wanted && ep->path_ep[FI_DUO_LOCAL]) {
		DUO_WARN(EP_CTRL, "ep %p: FI_OPT_EFA_..._IN_ORDER_ALIGNED_128_"
			 "BYTES must be set before fi_enable\n", (void *) ep);
		return -FI_EOPBADSTATE;
	}
	ret = fi_setopt(&ep->path_ep[FI_DUO_CORE]->fid, FI_OPT_ENDPOINT,
			optname, optval, optlen);
	if (ret || !wanted)
		return ret;
	ep->opts.in_order = true;
	DUO_INFO(EP_CTRL, "ep %p: FI_OPT_EFA_..._IN_ORDER_ALIGNED_128_BYTES is "
		 "true; the core carries all messages\n", (void *) ep);
	return 0;
}

int duo_ep_setopt(fid_t fid, int level, int optname,
			 const void *optval, size_t optlen)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	if (level == FI_OPT_ENDPOINT &&
	    optname == DUO_OPT_SHM_PERMITTED)
		return duo_ep_permit_local(ep, optval, optlen);
	if (level == FI_OPT_ENDPOINT && optname == DUO_OPT_CUDA_PERMITTED)
		return duo_ep_permit_cuda(ep, optval, optlen);
	if (level == FI_OPT_ENDPOINT && optname == FI_OPT_MIN_MULTI_RECV)
		return duo_ep_set_min(ep, optval, optlen);
	if (level == FI_OPT_ENDPOINT && DUO_OPT_IN_ORDER(optname))
		return duo_ep_set_in_order(ep, optname, optval, optlen);
	return fi_setopt(&ep->path_ep[FI_DUO_CORE]->fid, level, optname,
			 optval, optlen);
}
