/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Single copies by process_vm_readv() and process_vm_writev(). */

#include <errno.h>

#include "near/rma/ops.h"

bool near_rma_direct_can(struct near_rma_peer *at,
			 const struct near_rma_args *args)
{
	return (args->verb == NEAR_WRITE || args->verb == NEAR_READ) &&
	       at->peer->reads && near_rma_view(at);
}

int near_rma_look_up(struct near_rma_peer *at, const struct near_rma_args *args,
		     struct near_region_entry *entry, uint64_t *memory)
{
	int ret;

	*memory = entry->device = 0;
	if (near_unlikely(!near_rma_view(at)))
		return at->view_tried ? -ENOENT : -EAGAIN;
	if (!args->len)
		return 0;
	ret = near_table_view_find(at->view, args->key, entry);
	if (ret) {
		entry->device = 0;	/* the entry may be invalid */
		return ret;
	}
	ret = near_region_check(entry, args->addr, args->len,
				near_rma_access_to(entry, args->verb, args->op,
						   args->flags), memory);
	if (ret || args->verb <= NEAR_READ || entry->device)
		return ret;
	return *memory % near_type_size(args->type) ? -EINVAL : 0;
}

static ssize_t near_rma_copy(const struct near_rma_op *op, uint64_t memory,
			     size_t len)
{
	const struct near_rma_bufs *bufs = &op->args.local;
	struct iovec here[NEAR_IOV_MAX], there;
	pid_t pid = op->to->peer->addr.pid;
	size_t n;

	there.iov_base = (void *)(uintptr_t)(memory + op->sent);
	there.iov_len = len;
	n = near_iov_from(bufs->iov, bufs->count, op->sent, len, here);
	return op->args.verb == NEAR_READ ?
		process_vm_readv(pid, here, n, &there, 1, 0) :
		process_vm_writev(pid, here, n, &there, 1, 0);
}

/* Copies the next bytes, at most NEAR_STEP. Returns: see near_rma_direct(). */
static int near_rma_step(struct near_port *port, struct near_rma_op *op,
			 uint64_t memory)
{
	struct near_peer *peer = op->to->peer;
	size_t len = op->args.len - op->sent;
	ssize_t n;
	int err;

	/* when the peer has exited, another process might have its pid */
	if (!near_peer_alive(port, peer)) {
		near_peer_fail(port, peer);
		return -ECONNRESET;
	}
	n = near_rma_copy(op, memory, len > NEAR_STEP ? NEAR_STEP : len);
	if (near_likely(n > 0)) {
		op->sent += n;
		return 0;
	}
	/* near_peer_check_exited() may change errno */
	err = n < 0 ? errno : EFAULT;
	if (err == ESRCH && near_peer_check_exited(peer)) {
		near_peer_fail(port, peer);
		return -ECONNRESET;
	}
	if (err == EPERM || err == ENOSYS || err == ESRCH) {
		/* from now on, near_rma_by_target() is true */
		peer->reads = false;
		op->sent = 0;
		return -EPERM;
	}
	return err == ENOMEM ? -EAGAIN : -EFAULT;
}

bool near_rma_notifies(const struct near_rma_op *op)
{
	return op->args.flags & NEAR_RMA_DATA ||
	       __atomic_load_n(&op->to->peer->segment->events,
			       __ATOMIC_RELAXED) &
		       near_rma_access(op->args.verb, op->args.op);
}

void near_rma_notify(struct near_port *port, const struct near_rma_op *op,
		     struct near_slot *slot)
{
	slot->tag = op->args.addr;
	slot->rma = (struct near_rma_slot) {
		.key = op->args.key,
		.total = op->args.len,
		.offset = op->args.len,
		.data = op->args.data,
		.verb = NEAR_EVENT,
		.op = op->args.verb,
		.flags = op->args.flags & NEAR_RMA_DATA,
	};
	/*
	 * publishes the slot as that of a message, so that near_tx_consumed()
	 * counts it: no reply will show that the target has consumed it
	 */
	near_tx_publish(&op->to->peer->tx, slot,
			near_word(NEAR_KIND_RMA, 0, 0, 0));
	near_sent(port, op->to->peer);
}

/*
 * Copies the next bytes: rma/ops.h. If the target must be notified, gets a slot
 * for the notification before the copy. If no slot is free, returns -EAGAIN and
 * copies nothing, so that the caller can retry the whole call.
 */
int near_rma_direct_at(struct near_port *port, struct near_rma_op *op,
		       uint64_t memory)
{
	const struct near_rma_args *args = &op->args;
	struct near_peer *peer = op->to->peer;
	struct near_slot *slot = NULL;
	int ret = 0;

	/* the slot of a delegated operation already notifies the target */
	if (!op->delegated && near_rma_notifies(op)) {
		slot = near_control_slot(port, peer);
		if (!slot)
			return -EAGAIN;
	}
	if (args->len)
		ret = near_rma_step(port, op, memory);
	if (!ret && slot && op->sent == args->len)
		near_rma_notify(port, op, slot);
	return ret;
}

int near_rma_direct(struct near_port *port, struct near_rma_op *op)
{
	struct near_region_entry entry;
	uint64_t memory;
	int ret = near_rma_look_up(op->to, &op->args, &entry, &memory);

	if (ret)
		return ret;
	/* a new region with the same key may be in device memory */
	return entry.device ? -EACCES : near_rma_direct_at(port, op, memory);
}
