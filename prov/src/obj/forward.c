/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <rdma/fi_errno.h>

#include "obj/av.h"
#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "obj/mr.h"

/* Returns the object of the core that fid wraps. */
static struct fid *duo_core_fid(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_FABRIC:
		return &duo_container_of(fid, struct duo_fabric,
					 fabric_fid.fid)
				->path_fabric[FI_DUO_CORE]->fid;
	case FI_CLASS_DOMAIN:
		return &duo_container_of(fid, struct duo_domain,
					 domain_fid.fid)
				->path_domain[FI_DUO_CORE]->fid;
	case FI_CLASS_AV:
		return &duo_container_of(fid, struct duo_av, av_fid.fid)
				->core->fid;
	case FI_CLASS_CQ:
		return &duo_container_of(fid, struct duo_cq, cq_fid.fid)
				->path_cq[FI_DUO_CORE]->fid;
	case FI_CLASS_CNTR:
		return &duo_cntr_of(fid)->path_cntr[FI_DUO_CORE]->fid;
	case FI_CLASS_EP:
		return &duo_container_of(fid, struct duo_ep, ep_fid.fid)
				->path_ep[FI_DUO_CORE]->fid;
	default:
		return &duo_container_of(fid, struct duo_mr, mr_fid.fid)
				->core->fid;
	}
}

int duo_core_ops_open(struct fid *fid, const char *name, uint64_t flags,
		      void **ops, void *context)
{
	void *core_ops;
	int ret;

	if (!name || !ops)
		return -FI_EINVAL;
	ret = fi_open_ops(duo_core_fid(fid), name, flags, &core_ops, context);
	if (!ret)
		*ops = core_ops;
	return ret;
}

/*
 * Passes a command to the core. Rejects commands by which the application would
 * use the core's endpoints directly, or change flags that ofi_duo has copied.
 */
int duo_core_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ALIAS:
	case FI_QUEUE_WORK:
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return -FI_ENOSYS;
	default:
		return fi_control(duo_core_fid(fid), command, arg);
	}
}
