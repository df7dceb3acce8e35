/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The tables of local transports, struct duo_up, and the choice of calls. */

#include "fi/api.h"
#include "core/lazy.h"
#include "cq/cq.h"
#include "obj/up.h"
#include "transport/transport.h"
#include "rx/arrive.h"
#include "rx/multi.h"

/* Sets the endpoint's tables of calls, with or without a lock. */
void duo_ep_calls(struct duo_ep *ep)
{
	bool locked = ep->domain->group.lock.on;

	ep->ep_fid.msg = locked ? &duo_msg_ops_locked : &duo_msg_ops;
	ep->ep_fid.tagged = locked ? &duo_tagged_ops_locked : &duo_tagged_ops;
}

const struct duo_up duo_up = {
	.known = duo_arrival_identify,
	.moved = duo_lazy_readmit,
	.blocked = duo_multi_blocks,
	.done = duo_multi_core_done,
	.failed = duo_multi_core_failed,
	.rejected = duo_multi_abort,
	.progress = duo_cq_progress,
};

const struct duo_transport *const duo_transports[DUO_TRANSPORT_KINDS] = {
	[DUO_TRANSPORT_SHM] = &duo_transport_shm,
	[DUO_TRANSPORT_NEAR] = &duo_transport_near,
};
