/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Who is called: by libfabric, by lower layers, for local messages. */

#include "api/api.h"
#include "core/lazy.h"
#include "cq/cq.h"
#include "obj/up.h"
#include "peer/peer.h"
#include "rx/arrive.h"
#include "rx/multi.h"
#include "rx/recv.h"
#include "tx/send.h"

struct fi_ops_msg duo_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = duo_recv,
	.recvv = duo_recvv,
	.recvmsg = duo_recvmsg,
	.send = duo_short_send,
	.sendv = duo_sendv,
	.sendmsg = duo_sendmsg,
	.inject = duo_short_inject,
	.senddata = duo_short_senddata,
	.injectdata = duo_short_injectdata,
};

struct fi_ops_tagged duo_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = duo_trecv,
	.recvv = duo_trecvv,
	.recvmsg = duo_trecvmsg,
	.send = duo_short_tsend,
	.sendv = duo_tsendv,
	.sendmsg = duo_tsendmsg,
	.inject = duo_short_tinject,
	.senddata = duo_short_tsenddata,
	.injectdata = duo_short_tinjectdata,
};

const struct duo_up duo_up = {
	.known = duo_arrival_identify,
	.moved = duo_lazy_readmit,
	.blocked = duo_multi_blocks,
	.done = duo_multi_core_done,
	.failed = duo_multi_core_failed,
	.refused = duo_multi_abort,
	.progress = duo_cq_progress,
};

const struct duo_peer *const duo_peers[DUO_PEER_KINDS] = {
	[DUO_PEER_SHM] = &duo_peer_shm,
	[DUO_PEER_NEAR] = &duo_peer_near,
};
