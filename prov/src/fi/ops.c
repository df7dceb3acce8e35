/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Tables of functions by which lower layers call higher ones */

#include "core/lazy.h"
#include "cq/cq.h"
#include "fi/api.h"
#include "obj/up.h"
#include "rx/arrive.h"
#include "rx/multi.h"
#include "rx/recv.h"
#include "transport/transport.h"

/*
 * Implements duo_up.calls(): sets the endpoint's tables of calls to those for
 * the mode of the group's lock, or for FI_MSG_PREFIX. If these are set already,
 * does not store the same pointers again, because other threads may be reading
 * them. The comment of duo_cq_calls() explains why no thread reads the pointers
 * when they change.
 */
static void duo_ep_calls(struct duo_ep *ep)
{
	static struct fi_ops_msg *const msg[] = {
		[DUO_LOCK_OFF] = &duo_msg_ops,
		[DUO_LOCK_SHARED] = &duo_msg_ops_locked,
		[DUO_LOCK_SINGLE] = &duo_msg_ops_single,
	};
	static struct fi_ops_tagged *const tagged[] = {
		[DUO_LOCK_OFF] = &duo_tagged_ops,
		[DUO_LOCK_SHARED] = &duo_tagged_ops_locked,
		[DUO_LOCK_SINGLE] = &duo_tagged_ops_single,
	};
	enum duo_lock_mode mode = duo_lock_mode(&ep->group->lock);
	struct fi_ops_msg *ops = ep->prefix ? &duo_msg_ops_prefix : msg[mode];

	if (ep->ep_fid.msg == ops)
		return;
	ep->ep_fid.msg = ops;
	ep->ep_fid.tagged = ep->prefix ? &duo_tagged_ops_prefix : tagged[mode];
}

const struct duo_up duo_up = {
	.known = duo_arrival_identify,
	.moved = duo_lazy_readmit,
	.blocked = duo_multi_blocks,
	.done = duo_multi_core_done,
	.failed = duo_multi_core_failed,
	.rejected = duo_recv_fail,
	.progress = duo_cq_progress,
	.calls = duo_ep_calls,
};

const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS] = {
	[DUO_TRANSPORT_SHM] = &duo_transport_shm,
	[DUO_TRANSPORT_NEAR] = &duo_transport_near,
};
