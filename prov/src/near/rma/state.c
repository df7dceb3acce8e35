/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* One-sided operations of a port: setup, progress in polls, cleanup. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/proc.h"
#include "near/rma/inline.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

struct near_rma_peer *near_rma_peer_new(struct near_peer *peer)
{
	struct near_rma_peer *at = calloc(1, sizeof(*at));

	if (!at)
		return NULL;
	at->peer = peer;
	near_list_init(&at->queue);
	near_list_init(&at->replies);
	near_list_init(&at->delegated);
	peer->rma = at;
	return at;
}

struct near_table_view *near_rma_view_open(struct near_rma_peer *at)
{
	const struct near_segment *segment = at->peer->segment;
	int fd, ret;

	if (at->view_tried || !segment)
		return NULL;
	fd = near_peer_open(at->peer, NEAR_FD_TABLE, segment->table_fd, O_RDWR);
	if (segment->table_fd >= 0)
		near_peer_shut(at->peer, fd);
	if (fd >= 0 && duo_proc_scarce(fd)) {
		/* few file descriptors are left: see NEAR_RMA_TRY */
		close(fd);
		fd = -EMFILE;
	}
	ret = fd < 0 ? fd : near_table_view_open(&at->view, fd,
						 segment->table_nonce);
	at->view_tried = ret != -ENOMEM;
	if (at->view_tried)
		near_fd_drop(at->peer, NEAR_FD_TABLE);
	return at->view;
}

static void near_rma_view_drop(struct near_rma_peer *at)
{
	if (at->view)
		near_table_view_close(at->view);
	at->view = NULL;
}

/*
 * Makes the peer's near_ctl.done the port's poll word, if the peer's first
 * delegated operation is a write. False: the poll word already belongs to
 * another peer. Each poll must then continue this peer's operations.
 */
static bool near_rma_use_poll_word(struct near_port *port,
				   struct near_rma_peer *at)
{
	const struct near_rma_op *first =
		near_container(at->delegated.next, struct near_rma_op, link);

	if (first->args.verb != NEAR_WRITE)
		return true;	/* a reply ends a read, without the poll word */
	if (port->poll_word != &port->poll_value)
		return false;
	near_rma_set_poll_word(port, at);
	return true;
}

/*
 * Continues the operations on a peer's memory and the replies to this peer.
 * Returns 0 if there was no progress.
 */
static int near_rma_peer_step(struct near_port *port,
			      struct near_rma_peer *at)
{
	int n = 0;

	if (near_unlikely(!near_rma_waits(at))) {
		n = 1;
		near_rma_reply_all(port, at);
		if (at->due) {
			near_stage_step(port, at);
			near_mapped_step(port, at);
		}
		near_rma_issue(port, at);
	}
	if (at->delegs)
		n += near_delegs_step(port, at);
	return n;
}

static int near_rma_work(struct near_port *port, bool *waits)
{
	struct near_rma_peer *at, *next;
	struct near_peer *peer;
	int n = 0;

	near_port_clear_poll_word(port);
	near_list_each_safe(at, next, &port->onesided_work, link) {
		/* needs a reference, because the step may drop all others */
		peer = at->peer;
		near_peer_hold(peer);
		n += near_rma_peer_step(port, at);
		if (!near_rma_waits(at) ||
		    (at->delegs && !near_rma_use_poll_word(port, at)))
			*waits = false;
		near_rma_drop_work(port, at);
		near_peer_put(port, peer);
	}
	return n;
}

static void near_rma_drained(struct near_port *port, struct near_peer *peer)
{
	near_delegs_drained(port, peer);
	near_stage_close(peer->rma, false);
}

static void near_rma_fail(struct near_port *port, struct near_peer *peer)
{
	struct near_rma_peer *at = peer->rma;
	struct near_rma_reply *reply;
	struct near_rma_op *op;
	uint32_t i = 0;

	while (!near_list_empty(&at->replies)) {
		reply = near_container(at->replies.next, struct near_rma_reply,
				       link);
		near_list_remove(&reply->link);
		near_pool_put(&port->rma->replies, reply);
	}
	at->replies_queued = 0;
	while ((op = near_pool_next(&port->rma->ops, &i)))
		if (op->to == at)
			near_rma_end(port, op, ECONNRESET);
	near_rma_drop_work(port, at);
	/*
	 * closes the view now: near_rma_forget() also closes it, but is called
	 * later, when the embedder has no unexpected message of the peer left
	 */
	near_rma_view_drop(at);
}

static void near_rma_forget(struct near_peer *peer)
{
	if (peer->rma->working)
		near_list_remove(&peer->rma->link);
	near_stage_close(peer->rma, true);
	near_rma_view_drop(peer->rma);
	free(peer->rma);
}

static void near_rma_close(struct near_port *port)
{
	struct near_rma_op *op;
	uint32_t at = 0;

	while ((op = near_pool_next(&port->rma->ops, &at)))
		free(op->copy);
	near_pool_fini(&port->rma->ops);
	near_pool_fini(&port->rma->replies);
	free(port->rma);
}

static const struct near_onesided near_rma_onesided = {
	.request = near_rma_request,
	.answered = near_rma_answered,
	.work = near_rma_work,
	.advanced = near_delegs_advanced,
	.drained = near_rma_drained,
	.fail = near_rma_fail,
	.forget = near_rma_forget,
	.share = near_mapped_share,
	.shared = near_mapped_shared,
	.close = near_rma_close,
};

int near_rma_open(struct near_port *port, const struct near_rma_sink *sink,
		  struct near_table *table, bool messages_only)
{
	struct near_rma *rma = calloc(1, sizeof(*rma));

	if (!rma)
		return -ENOMEM;
	rma->sink = sink;
	rma->table = table;
	near_pool_init(&rma->ops, sizeof(struct near_rma_op), NEAR_RMA_OPS);
	near_pool_init(&rma->replies, sizeof(struct near_rma_reply),
		       NEAR_RMA_OPS);
	port->rma = rma;
	port->onesided = &near_rma_onesided;
	if (!messages_only)
		port->addr.flags |= NEAR_ADDR_RMA;
	if (table->staged)
		port->addr.flags |= NEAR_ADDR_DEVICE;
	port->segment->table_nonce = table->shared->nonce;
	port->segment->table_fd = port->table_fd = table->fd;
	return 0;
}

void near_rma_events(struct near_port *port, bool reads, bool writes)
{
	port->rma->events = (reads ? NEAR_MAY_READ : 0) |
			    (writes ? NEAR_MAY_WRITE : 0);
	__atomic_store_n(&port->segment->events, port->rma->events,
			 __ATOMIC_RELAXED);
}

bool near_rma_uses(const struct near_port *port, const void *device)
{
	const struct near_rma_op *op;
	uint32_t at = 0;
	size_t i;

	while (port->rma && (op = near_pool_next(&port->rma->ops, &at))) {
		if (op->small || !op->on_device || !op->args.local.device)
			continue;
		for (i = 0; i < op->args.local.count; i++)
			if (op->device[i] == device)
				return true;
	}
	return false;
}
