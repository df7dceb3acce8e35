/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Requests for staged reads and writes at the target, with any bytes in the
 * slot. Each copy is between a chunk of the peer's stage and the region that
 * the request names, if the region permits it. A message is only read, never
 * written. A stage is mapped only if it lies in the peer's file. A message in
 * host memory is copied only for the peer to which it was sent. The target uses
 * a loan, which names a region of the initiator (near/rma/stage.h), only if the
 * loan lies in a chunk and is for all bytes of the request.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/stage_serve.c near_stage_request near_stage_valid
 * C: near/rma/stage_serve.c near_stage_serve near_stage_open_theirs
 * C: near/rma/stage_serve.c near_stage_where
 * C: near/rma/stage_serve.c near_stage_reply near_stage_message
 * C: near/rma/stage_serve.c near_stage_copied near_stage_overlaps
 * C: near/rma/state.h near_rma_access_to
 * CBMC: --unwind 3 --object-bits 10
 * EDIT near/rma/stage_serve.c: s/near_table_find\(/found(/g
 * EDIT near/rma/stage_serve.c: s/near_pool_get\(/reply_get(/
 * EDIT near/rma/stage_serve.c: s/port->rma->sink->device->done\(/copied(/
 * EDIT near/rma/stage_serve.c: s/near_pool_find\(/message_find(/
 * EDIT near/rma/stage_serve.c: s/near_iov_out\(/message_out(/
 * MUTANT chunk-unchecked near/rma/stage_serve.c: \
 *   s/req->op >= NEAR_STAGE_CHUNKS\)/0)/
 * MUTANT length-unchecked near/rma/stage_serve.c: \
 *   s/req->len <= NEAR_STAGE_CHUNK &&/1 \&\&/
 * MUTANT offset-unchecked near/rma/stage_serve.c: \
 *   s/req->offset <= req->total &&/1 \&\&/
 * MUTANT part-unchecked near/rma/stage_serve.c: \
 *   s/req->len <= req->total - req->offset;/1;/
 * MUTANT checked-then-copied near/rma/stage_serve.c: \
 *   s/near_stage_valid\(&req\)/near_stage_valid(\&slot->rma)/
 * MUTANT part-in-region near/rma/stage_serve.c: \
 *   s/near_region_check\(entry, addr, req->total/near_region_check(entry, \
 *   addr, req->len/
 * MUTANT device-as-host near/rma/state.h: \
 *   s/entry->device \? access << NEAR_MAY_DEVICE : access/access/
 * MUTANT message-as-read near/rma/state.h: \
 *   s/flags & NEAR_RMA_MESSAGE \? NEAR_MAY_MESSAGE :/0 ? 0 :/
 * MUTANT message-written near/rma/stage_serve.c: \
 *   s/req->flags & \(NEAR_RMA_MESSAGE \| NEAR_RMA_BY_ID\)/0/
 * MUTANT message-of-another near/rma/stage_serve.c: s/op->peer == peer && //
 * MUTANT message-of-device near/rma/stage_serve.c: \
 *   s/ && !op->device &&\n/ \&\&\n/
 * MUTANT message-length near/rma/stage_serve.c: \
 *   s/ &&\n\t *reply->req.total <= op->len//
 * MUTANT stage-unchecked near/rma/stage_serve.c: \
 *   s/near_table_view_has\(view, index\)/1/
 * MUTANT replies-unlimited near/rma/stage_serve.c: \
 *   s/at && at->replies_queued >= NEAR_RMA_REPLIES_MAX/0/
 */

#include <stdlib.h>

#include "hostile.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

static struct near_port port;
static struct near_peer peer, other;
static struct near_rma_peer at;
static struct near_staging staging;
static struct near_table_view view;
/* The region, of host or device memory. */
static struct near_region_entry entry;
static char *region, *stage;
static struct near_rma_reply earlier;	/* reply to an earlier request */
static struct near_rma_reply *queued;
static struct near_rma_reply *made;	/* reply to the request */
static int in_file = -1;	/* index of a stage that lies in the file */

static void *reply_get(struct near_pool *pool)
{
	made = any(bool) ? NULL : malloc(sizeof(struct near_rma_reply));
	return made;
}

/* Messages to the peer and to another peer. */
static struct near_tx_op message[2];

static struct near_tx_op *message_find(const struct near_pool *pool,
				       uint64_t id)
{
	return any(bool) ? NULL : any(bool) ? message : message + 1;
}

static void message_out(void *chunk, const struct iovec *iov, size_t offset,
			size_t len)
{
	check(made->req.verb == NEAR_READ);
	check(iov == message[0].iov && !message[0].device);
	check(offset <= message[0].len && len <= message[0].len - offset);
	check(__CPROVER_same_object(chunk, stage) && readable(chunk, len));
}

static int copied(void *copy)
{
	return any(bool) ? 0 : any(bool) ? -EAGAIN : -EIO;
}

static const struct near_region_entry *found(const struct near_table *table,
					     uint64_t key)
{
	return any(bool) ? NULL : &entry;
}

#include "near/rma/stage_serve.c"

struct near_staging *near_staging(struct near_port *of,
				  struct near_rma_peer *of_peer)
{
	return any(bool) ? NULL : &staging;
}

struct near_table_view *near_rma_view_open(struct near_rma_peer *of_peer)
{
	return any(bool) ? NULL : &view;
}

bool near_table_view_has(const struct near_table_view *of, int index)
{
	in_file = any(bool) ? index : -1;
	return in_file >= 0;
}

int near_stage_map(struct near_stage *map, int fd, int index)
{
	check(index >= 0 && index == in_file);
	if (any(bool))
		return -ENOMEM;
	map->memory = (uint8_t *)stage;
	map->index = index;
	return 0;
}

int near_stage_copy(struct near_staging *of, struct near_stage *with,
		    void *device, void *to, const void *from, size_t len,
		    void **copy)
{
	bool writes = __CPROVER_same_object(from, stage);
	uint32_t access = writes ? NEAR_MAY_WRITE : NEAR_MAY_READ;
	const void *chunk = writes ? from : to, *other = writes ? to : from;

	if (device)
		access <<= NEAR_MAY_DEVICE;
	if (made->req.flags & NEAR_RMA_MESSAGE) {
		check(!writes);
		access = NEAR_MAY_MESSAGE;
	}
	check(with == &of->theirs && len);
	check(__CPROVER_same_object(chunk, stage) && readable(chunk, len));
	check(__CPROVER_same_object(other, region) && readable(other, len));
	check(entry.access & access);
	if (device && any(bool))
		*copy = stage;
	return any(bool) ? 0 : -EIO;
}

int near_loan_serve(struct near_port *of, struct near_rma_peer *to,
		    struct near_rma_reply *reply, struct near_loan *loan)
{
	const struct near_rma_slot *req = &reply->req;

	check(reply == made && to == &at && req->flags & NEAR_RMA_LENT);
	check(__CPROVER_same_object(loan, stage) &&
	      readable(loan, sizeof(*loan)));
	check(req->total && !req->len && !req->offset);
	check(req->verb == NEAR_READ || (req->verb == NEAR_WRITE &&
	      !(req->flags & (NEAR_RMA_MESSAGE | NEAR_RMA_BY_ID))));
	return any(bool) ? 0 : any(bool) ? EACCES : NEAR_LOAN_REJECTED;
}

void near_loan_end(struct near_rma_reply *reply)
{
	check(reply == queued && !reply->copy);
}

void near_rma_queue_reply(struct near_port *of, struct near_rma_peer *to,
		  struct near_rma_reply *reply)
{
	check(to->replies_queued < NEAR_RMA_REPLIES_MAX);
	check(!queued && reply->staged);
	queued = reply;
}

bool near_rma_answer(struct near_port *of, struct near_rma_peer *to,
		     const struct near_rma_reply *reply, const void *data,
		     size_t len)
{
	check(reply == queued && !len);
	return any(bool);
}

void near_rma_report(struct near_port *of, struct near_peer *from,
		     const struct near_rma_slot *req)
{
}

struct near_rma_peer *near_rma_peer_new(struct near_peer *of)
{
	return any(bool) ? NULL : &at;
}

int near_connect(struct near_port *of, struct near_peer *to)
{
	return any(bool) ? 0 : -EAGAIN;
}

void near_rx_ring_broken(struct near_port *of, struct near_rx_ring *broken,
			 const char *what, uint64_t value)
{
}

void near_log(const struct near_port *of, int level, const char *format, ...)
{
}

static const void *device_queue(void *device)
{
	return any(bool) ? NULL : stage;
}

static void regions(void)
{
	static struct near_table table;
	static struct near_device device;
	static struct near_rma_sink sink = { .device = &device };
	static struct near_rma rma = { .table = &table, .sink = &sink };
	size_t len = any(size_t);

	message[0] = any(struct near_tx_op);
	message[1] = any(struct near_tx_op);
	message[0].peer = &peer;
	message[1].peer = &other;
	assume(len < 1u << 20);
	region = malloc(len);
	entry = any(struct near_region_entry);
	entry.len = len;
	entry.memory = (uintptr_t)region;
	port.rma = &rma;
	port.read_left = any(size_t);
	device.queue = any(bool) ? NULL : device_queue;
	near_list_init(&at.replies);
	if (any(bool))
		return;
	earlier = any(struct near_rma_reply);
	earlier.copy = any(bool) ? NULL : stage;
	earlier.memory = (uint8_t *)region;
	assume(earlier.req.len <= len);
	near_list_append(&at.replies, &earlier.link);
}

int main(void)
{
	struct near_slot *slot = malloc(sizeof(*slot));
	struct near_rx_ring ring = { .peer = &peer };

	regions();
	stage = malloc(NEAR_STAGE);
	at.peer = &peer;
	at.view = any(bool) ? &view : NULL;
	at.replies_queued = any(uint32_t);
	at.rejected = any(uint64_t);
	at.failed = any(uint64_t);
	assume(at.replies_queued <= NEAR_RMA_REPLIES_MAX);
	at.staging = &staging;
	if (any(bool)) {
		staging.theirs.memory = (uint8_t *)stage;
		staging.theirs.index = any(uint8_t);
	}
	peer.rma = any(bool) ? &at : NULL;
	near_stage_request(&port, &ring, slot);
	if (queued)
		near_stage_reply(&port, &at, queued);
	return 0;
}
