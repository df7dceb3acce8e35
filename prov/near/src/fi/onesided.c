/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What all embedders do of a call. */

#include "fi/onesided.h"

/* Of atomics there is nothing to say: they go the way of messages. */
static uint32_t near_onesided_order(uint64_t flags, uint64_t msg_order)
{
	bool read = flags & FI_READ;
	uint32_t order = 0;

	if (flags & FI_FENCE)
		order |= NEAR_RMA_FENCE | NEAR_RMA_BEHIND;
	if (msg_order & (read ? FI_ORDER_RAS : FI_ORDER_WAS))
		order |= NEAR_RMA_BEHIND;
	if (read && msg_order & FI_ORDER_SAR)
		order |= NEAR_RMA_HOLD;
	return order;
}

int near_onesided_prepare(struct near_onesided_call *call, uint64_t msg_order)
{
	struct near_rma_args *args = &call->args;

	if (args->local.count > NEAR_IOV_MAX ||
	    args->result.count > NEAR_IOV_MAX ||
	    args->compare.count > NEAR_IOV_MAX)
		return -FI_EINVAL;
	args->flags = (call->flags & FI_REMOTE_CQ_DATA ? NEAR_RMA_DATA : 0) |
		      near_onesided_order(call->flags, msg_order) |
		      (call->flags & FI_INJECT ? NEAR_RMA_COPY : 0);
	return 0;
}

bool near_onesided_reported(int ret)
{
	return ret == -FI_EKEYREJECTED || ret == -FI_EACCES ||
	       ret == -FI_EFAULT || ret == -FI_EINVAL;
}
