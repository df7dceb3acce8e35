/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Lent operations, at both ends: docs/near/rma.md, *Lent operations*. The
 * initiator lends its device memory by a loan in a chunk of the stage. The
 * target maps this memory, and the target's device copies.
 */

#include <errno.h>
#include <sched.h>

#include "base/proc.h"
#include "near/rma/inline.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

/*
 * Stores the region key and the RMA address of the local buffer. False: the
 * buffer cannot be lent.
 */
static bool near_loan_name(const struct near_port *port,
			   const struct near_rma_args *args, uint64_t *key,
			   uint64_t *addr)
{
	const struct near_device *device = port->rma->sink->device;
	const struct near_rma_bufs *local = &args->local;

	return device->lend && local->device && local->count == 1 &&
	       local->device[0] &&
	       device->lend(local->device[0], local->iov->iov_base, args->len,
			    key, addr);
}

bool near_loan_can(const struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry)
{
	size_t min = at->unanswered ? NEAR_STAGE_CHUNK : NEAR_LOAN_MIN;
	uint64_t key, addr;

	if (entry->device || args->len < min ||
	    !near_loan_name(port, args, &key, &addr))
		return false;
	if (at->loan_skip) {
		at->loan_skip--;
		return false;
	}
	return true;
}

/*
 * Makes a lent operation a staged one. Suspends lending for the next
 * NEAR_LOAN_SKIP operations to this peer that could be lent.
 */
static void near_loan_to_stage(struct near_port *port, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;

	op->args.flags &= ~NEAR_RMA_LENT;
	op->sent = 0;
	at->loan_skip = NEAR_LOAN_SKIP;
	port->rma->device_ops[NEAR_DEVICE_LENT]--;
	port->rma->device_ops[NEAR_DEVICE_HOST]++;
	at->device_path = NEAR_DEVICE_HOST;
}

int near_loan_issue(struct near_port *port, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;
	struct near_staging *staging = at->staging;
	struct near_loan *loan;
	struct near_chunk *chunk;
	uint64_t key, addr;
	uint32_t index;

	if (op->sent || at->unanswered != at->device_pending ||
	    near_mapped_pending(&staging->mapped) ||
	    staging->filled - staging->freed == NEAR_STAGE_CHUNKS)
		return -EAGAIN;
	if (!near_loan_name(port, &op->args, &key, &addr)) {
		/* the region was removed after the call of near_rma() */
		near_loan_to_stage(port, op);
		return -EAGAIN;
	}
	near_stage_begin(op);
	index = staging->filled++ % NEAR_STAGE_CHUNKS;
	loan = (void *)(staging->ours.memory + index * NEAR_STAGE_CHUNK);
	*loan = (struct near_loan) { NEAR_LOAN_OPEN, key, addr };
	chunk = &staging->chunk[index];
	chunk->op = op;
	chunk->state = NEAR_CHUNK_FILLS;
	chunk->offset = 0;
	chunk->len = op->sent = op->args.len;
	at->due++;
	return -EAGAIN;
}

int near_loan_answered(struct near_port *port, struct near_chunk *chunk,
		       int err)
{
	if (err != NEAR_LOAN_REJECTED)
		return err;
	near_loan_to_stage(port, chunk->op);
	chunk->len = 0;
	return 0;
}

/*
 * Sets local->iov_base to the target's memory that the request names: the only
 * buffer of a message, or bytes of a region of host memory. Returns 0 or an
 * errno value, > 0. NEAR_LOAN_REJECTED: the bytes of the message are in several
 * buffers, or the region is in device memory.
 */
static int near_loan_local(const struct near_port *port,
			   const struct near_peer *peer,
			   const struct near_rma_reply *reply,
			   struct iovec *local)
{
	const struct near_tx_op *op;
	uint8_t *memory = NULL;
	void *device = NULL;
	int ret;

	if (reply->req.flags & NEAR_RMA_BY_ID) {
		op = near_stage_message(port, peer, reply);
		if (!op)
			return EKEYREJECTED;
		local->iov_base = op->iov[0].iov_base;
		return local->iov_len <= op->iov[0].iov_len ?
		       0 : NEAR_LOAN_REJECTED;
	}
	ret = near_stage_where(port, &reply->req, reply->addr, &memory,
			       &device);
	local->iov_base = memory;
	return ret ? ret : device ? NEAR_LOAN_REJECTED : 0;
}

/*
 * Maps the lent memory at the target. Returns its address in this process;
 * NULL: the region is not found or not lent, or the mapping has failed.
 */
static uint8_t *near_loan_map(struct near_port *port, struct near_rma_peer *at,
			      const struct near_loan *loan,
			      const struct iovec *local,
			      struct near_mapping **mapping)
{
	const struct near_rma_args args = {
		.local = { local, 1, NULL }, .len = local->iov_len,
	};
	struct near_region_entry entry;
	uint64_t memory;

	if (!near_rma_view(at) ||
	    near_table_view_find(at->view, loan->key, &entry) ||
	    near_region_check(&entry, loan->addr, args.len, NEAR_MAY_LEND,
			      &memory))
		return NULL;
	near_mapping_get(port, at, &args, &entry, memory, mapping);
	return *mapping ? near_mapping_at(*mapping, memory, args.len) : NULL;
}

/* Sets the loan to NEAR_LOAN_TAKEN and starts the copy. Returns 0 or -errno. */
static int near_loan_copy(struct near_port *port, struct near_rma_reply *reply,
			  struct near_loan *loan, const struct iovec *local,
			  uint8_t *lent)
{
	const struct near_rma_bufs bufs = { local, 1, NULL };
	void *device = near_mapped_handle(port, &bufs, 0);
	bool read = reply->req.verb == NEAR_READ;
	uint32_t open = NEAR_LOAN_OPEN;
	int ret;

	if (!device || !__atomic_compare_exchange_n(&loan->state, &open,
						    NEAR_LOAN_TAKEN, false,
						    __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED))
		return -ENOENT;
	ret = port->rma->sink->device->start(device,
					     read ? lent : local->iov_base,
					     read ? local->iov_base : lent,
					     local->iov_len, &reply->copy);
	if (ret)
		__atomic_store_n(&loan->state, NEAR_LOAN_ENDED,
				 __ATOMIC_RELEASE);
	return ret;
}

int near_loan_serve(struct near_port *port, struct near_rma_peer *at,
		    struct near_rma_reply *reply, struct near_loan *loan)
{
	const struct near_loan named = {
		.key = __atomic_load_n(&loan->key, __ATOMIC_RELAXED),
		.addr = __atomic_load_n(&loan->addr, __ATOMIC_RELAXED),
	};
	struct iovec local = { .iov_len = reply->req.total };
	struct near_mapping *mapping = NULL;
	uint8_t *lent;
	int ret = near_loan_local(port, at->peer, reply, &local);

	if (ret)
		return ret;
	lent = near_loan_map(port, at, &named, &local, &mapping);
	if (!lent || near_loan_copy(port, reply, loan, &local, lent))
		return NEAR_LOAN_REJECTED;
	mapping->ops++;
	reply->mapping = mapping;
	reply->loan = loan;
	return 0;
}

void near_loan_end(struct near_rma_reply *reply)
{
	if (!reply->mapping)
		return;
	__atomic_store_n(&reply->loan->state, NEAR_LOAN_ENDED,
			 __ATOMIC_RELEASE);
	reply->mapping->ops--;
	reply->mapping = NULL;
}

void near_rma_settle(struct near_port *port)
{
	struct near_rma_reply *reply;
	uint32_t at = 0;

	while (port->rma && (reply = near_pool_next(&port->rma->replies, &at)))
		while (reply->staged && reply->mapping &&
		       !near_stage_copied(port, reply))
			;
}

/*
 * Revokes a loan if it is open. If the target has taken the loan, waits until
 * the target ends it. The wait is limited to NEAR_STOP_MS, because the target
 * ends the loan only in a poll, and perhaps does not poll.
 */
static void near_loan_revoke(const struct near_peer *peer,
			     struct near_loan *loan)
{
	uint64_t end_ms = duo_now_ms() + NEAR_STOP_MS;
	uint32_t state = NEAR_LOAN_OPEN;

	if (__atomic_compare_exchange_n(&loan->state, &state,
					NEAR_LOAN_REVOKED, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	while (__atomic_load_n(&loan->state, __ATOMIC_ACQUIRE) ==
	       NEAR_LOAN_TAKEN && !near_peer_check_exited(peer) &&
	       duo_now_ms() < end_ms)
		sched_yield();
}

void near_loans_revoke(const struct near_rma_peer *at)
{
	const struct near_staging *staging = at->staging;
	uint32_t i, index;

	for (i = staging->freed; i != staging->filled; i++) {
		index = i % NEAR_STAGE_CHUNKS;
		if (staging->chunk[index].op->args.flags & NEAR_RMA_LENT &&
		    staging->chunk[index].state == NEAR_CHUNK_POSTED)
			near_loan_revoke(at->peer,
					 (void *)(staging->ours.memory +
						  index * NEAR_STAGE_CHUNK));
	}
}
