/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What all embedders do of a call. */

#include "fi/onesided.h"

int near_onesided_prepare(struct near_onesided_call *call)
{
	struct near_rma_args *args = &call->args;

	if (args->local.count > NEAR_IOV_MAX ||
	    args->result.count > NEAR_IOV_MAX ||
	    args->compare.count > NEAR_IOV_MAX)
		return -FI_EINVAL;
	args->flags = (call->flags & FI_REMOTE_CQ_DATA ? NEAR_RMA_DATA : 0) |
		      (call->flags & FI_FENCE ? NEAR_RMA_FENCE : 0) |
		      (call->flags & FI_INJECT ? NEAR_RMA_COPY : 0);
	return 0;
}

bool near_onesided_reported(int ret)
{
	return ret == -FI_EKEYREJECTED || ret == -FI_EACCES ||
	       ret == -FI_EFAULT || ret == -FI_EINVAL;
}
