/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Staged reads and writes at the initiator, with any reply. Asserted:
 * - each copy is between the buffers and the chunk of one operation;
 * - a reply ends only the request that it answers;
 * - an operation ends once, after all copies for it have ended;
 * - no operation ends with success if a part has failed;
 * - a stage that a live peer may still use is not given to another peer.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/stage.c near_stage_continue near_stage_issue near_chunk_copy
 * C: near/rma/stage.c near_stage_copy
 * C: near/rma/stage.c near_stage_step near_chunk_post
 * C: near/rma/stage.c near_copies_ended near_stage_answered near_stage_close
 * C: near/rma/stage.c near_copy_wait near_stage_unmap
 * LONG: ten cases
 * CASES: 10
 * CBMC: --unwind 4 --object-bits 10
 * EDIT near/near.h: s/NEAR_IOV_MAX 4/NEAR_IOV_MAX 2/
 * EDIT near/rma/table.h: s/NEAR_STAGE_CHUNK \(256u/NEAR_STAGE_CHUNK (1024u/
 * EDIT near/rma/stage.c: s/near_rma_end\(port, /ended(/
 * EDIT near/rma/stage.c: s/free\(staging\);//
 * EDIT near/rma/stage.c: \
 *   s/near_stage_copy_host\(stage, to, from, len\);/copies(to, from, len);/
 * EDIT near/rma/stage.c: \
 *   s/(staging->)?device->(done|start|pin|unpin)\(/device_\2(/g
 * MUTANT chunk-taken-twice near/rma/stage.c: \
 *   s/staging->filled - staging->freed == NEAR_STAGE_CHUNKS/0/
 * MUTANT chunk-unlimited near/rma/stage.c: \
 *   s/if \(chunk->len > NEAR_STAGE_CHUNK\)\n\t\t\tchunk->len = \
 *   NEAR_STAGE_CHUNK;//
 * MUTANT buffer-unlimited near/rma/stage.c: \
 *   s/n = n - skip < left \? n - skip : left;/n = left;/
 * MUTANT offset-unchecked near/rma/stage.c: s/ \|\| chunk->offset != offset//
 * MUTANT operation-unchecked near/rma/stage.c: s/chunk->op != op \|\| //
 * MUTANT unposted-is-answered near/rma/stage.c: \
 *   s/chunk->state == NEAR_CHUNK_POSTED\)/1)/
 * MUTANT ended-while-copied near/rma/stage.c: \
 *   s/ &&\n\t\t    near_copies_ended\(staging->device, chunk->copy,\n[\t ]*\
 *   &chunk->op->err\)//
 * MUTANT freed-while-posted near/rma/stage.c: \
 *   s/if \(chunk->state != NEAR_CHUNK_ENDED\)\n\t\t\tbreak;//
 * MUTANT ended-before-its-chunks near/rma/stage.c: \
 *   s/if \(op->answered == op->args.len\)//
 * MUTANT error-is-success near/rma/stage.c: s/if \(err && !op->err\)/if (0)/
 * MUTANT failed-copy-is-success near/rma/stage.c: \
 *   s/\t\tif \(ret\)\n\t\t\t\*err = -ret;//
 * MUTANT uncounted near/rma/stage.c: \
 *   s/chunk->state = NEAR_CHUNK_DRAINS;\n\tat->due\+\+;/chunk->state = \
 *   NEAR_CHUNK_DRAINS;/
 * MUTANT used-is-passed-on near/rma/stage.c: \
 *   s/ && !\(peer_lives && at->device_pending\)//
 * MUTANT unmapped-while-copied near/rma/stage.c: \
 *   s/near_copy_wait\(staging, &staging->chunk\[i\]/\
 *   near_copy_wait(staging, \&staging->chunk[0]/
 */

#include <stdlib.h>

#include "hostile.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

static struct near_port port;
static struct near_peer peer;
static struct near_rma_peer at;
static struct near_rma rma;
static struct near_staging all, *staging = &all;
static uint8_t *stage;
/* not an array: CBMC is faster if the offset of each object is 0 */
static struct near_rma_op first_op, second_op;
/* NULL: the operation has ended */
static struct near_rma_op *op[2] = { &first_op, &second_op };
static bool lives;		/* the peer is alive */
static bool failed[2];		/* a copy, or the target, has failed */
static char handle[2];		/* handles of the copies of each operation */

static uint32_t pending(const struct near_rma_op *of)
{
	uint32_t i, j, n = 0;

	for (i = 0; i < NEAR_STAGE_CHUNKS; i++)
		for (j = 0; j < NEAR_IOV_MAX; j++)
			n += staging->chunk[i].copy[j] &&
			     (!of || staging->chunk[i].op == of);
	return n;
}

/* In place of near_rma_end(): the application may then free its buffers. */
static void ended(struct near_rma_op *which, int err)
{
	int i = which == op[1];

	check(which && which == op[i] && !pending(which));
	check(which->answered == which->args.len && err >= 0);
	check(err || !failed[i]);
	free(which->local[0].iov_base);
	free(which->local[1].iov_base);
	which->to = NULL;
	which->args.local.iov = NULL;
	op[i] = NULL;
}

/* Checks a copy. Returns the index of the operation that the copy is for. */
static int copies(void *to, const void *from, size_t len)
{
	bool out = __CPROVER_same_object(to, stage);
	const uint8_t *chunk = out ? to : from, *other = out ? from : to;
	int i;

	check(len && __CPROVER_same_object(chunk, stage));
	check((size_t)(chunk - stage) % NEAR_STAGE_CHUNK + len <=
	      NEAR_STAGE_CHUNK);
	check(readable(other, len));
	for (i = 0; i < 2; i++)
		if (op[i] &&
		    (__CPROVER_same_object(other, op[i]->local[0].iov_base) ||
		     __CPROVER_same_object(other, op[i]->local[1].iov_base)))
			return i;
	check(0);
	return 0;
}

static int device_start(void *device, void *to, const void *from, size_t len,
			void **copy)
{
	int i = copies(to, from, len);

	if (any(bool)) {
		failed[i] = true;
		return -EIO;
	}
	*copy = any(bool) ? NULL : &handle[i];
	return 0;
}

/* Returns -EAGAIN for two tests at most; then the copy has ended. */
static int device_done(void *copy)
{
	static int tests;
	int i = copy != &handle[0];

	check(copy == &handle[i]);
	if (any(bool) && tests++ < 2)
		return -EAGAIN;
	if (any(bool))
		return 0;
	failed[i] = true;
	return -EIO;
}

static void *device_pin(void *device, void *memory, size_t len)
{
	check(memory == stage && len == NEAR_STAGE);
	return NULL;
}

static void device_unpin(void *pin)
{
}

#include "near/rma/stage.c"

int munmap(void *memory, size_t len)
{
	check(memory == stage && len == NEAR_STAGE && !pending(NULL));
	return 0;
}

void near_table_stage_put(struct near_table *of, int index)
{
	check(index == staging->ours.index && !(lives && at.device_pending));
}

/* In place of functions of other files of rma/, and of link/ */

void near_loan_end(struct near_rma_reply *reply)
{
}

void near_loans_revoke(const struct near_rma_peer *of)
{
	check(of->staging);
}

void near_mapped_close(struct near_mapped *of, const struct near_device *with)
{
}

void near_rma_unqueue(struct near_rma_op *which)
{
	check(which->queued && which->sent == which->args.len);
	which->queued = false;
}

void near_rma_ungate(struct near_rma_op *which)
{
}

struct near_slot *near_control_slot_other(struct near_port *of,
					  struct near_peer *to)
{
	return any(bool) ? NULL : malloc(sizeof(struct near_slot));
}

/* Makes an operation with two buffers, which together have all its bytes. */
static void op_any(struct near_rma_op *made)
{
	static void *handles[2];
	size_t first = any(size_t), second = any(size_t);

	assume(first && first < 1u << 24 && second && second < 1u << 24);
	handles[0] = any(bool) ? NULL : handles;
	handles[1] = any(bool) ? NULL : handles;
	made->to = &at;
	made->args.verb = any(bool) ? NEAR_READ : NEAR_WRITE;
	made->args.len = any(size_t);
	made->answered = any(size_t);
	assume(made->args.len && made->args.len <= first + second);
	assume(made->answered < made->args.len);
	made->sent = made->answered;
	made->args.local = (struct near_rma_bufs){ made->local, 2,
						   any(bool) ? handles : NULL };
	made->local[0] = (struct iovec){ malloc(first), first };
	made->local[1] = (struct iovec){ malloc(second), second };
	made->err = any(bool) ? 0 : EIO;
}

static void chunk_any(struct near_chunk *chunk, int i, int state)
{
	size_t left = op[i]->args.len - op[i]->sent;
	bool copied;
	int j;

	chunk->state = state < 0 ? any(enum near_chunk_state) :
				   (unsigned int)state;
	chunk->op = op[i];
	chunk->offset = op[i]->sent;
	chunk->len = any(size_t);
	assume(chunk->state <= NEAR_CHUNK_ENDED);
	assume(chunk->len && chunk->len <= left);
	assume(chunk->len <= NEAR_STAGE_CHUNK ||
	       (op[i]->err && chunk->len == left &&
		(chunk->state == NEAR_CHUNK_FILLS ||
		 chunk->state == NEAR_CHUNK_ENDED)));
	op[i]->sent += chunk->len;
	copied = op[i]->args.verb == NEAR_READ ?
			 chunk->state == NEAR_CHUNK_DRAINS :
			 chunk->state == NEAR_CHUNK_FILLS;
	for (j = 0; j < NEAR_IOV_MAX; j++)
		chunk->copy[j] = copied && any(bool) ? &handle[i] : NULL;
}

/*
 * Makes count chunks in use. The chunks with an index below "first" belong to
 * the first operation, and all others to the second one. If there are others,
 * the first operation has sent all its bytes.
 */
static void staging_any(uint32_t first, uint32_t count, const int *state)
{
	uint32_t i;

	stage = malloc(NEAR_STAGE);
	staging->ours.memory = stage;
	staging->ours.index = any(uint8_t);
	staging->freed = UINT32_MAX;
	staging->filled = staging->freed + count;
	at.staging = staging;
	op_any(&first_op);
	op_any(&second_op);
	for (i = 0; i < count; i++)
		chunk_any(&staging->chunk[(staging->freed + i) %
					  NEAR_STAGE_CHUNKS], i >= first,
			  state[i]);
	assume(first == count || op[0]->sent == op[0]->args.len);
	for (i = 0; i < 2; i++) {
		op[i]->queued = op[i]->sent < op[i]->args.len;
		op[i]->begun = any(bool) || op[i]->sent;
		failed[i] = op[i]->err;
	}
}

/*
 * Asserts that all chunks in use belong to live operations, in order. Returns
 * the number of chunks with pending copies.
 */
static uint32_t check_chunks(void)
{
	uint32_t i, due = 0;
	size_t sum[2] = { 0 };
	struct near_chunk *chunk;

	check(staging->filled - staging->freed <= NEAR_STAGE_CHUNKS);
	for (i = staging->freed; i != staging->filled; i++) {
		chunk = &staging->chunk[i % NEAR_STAGE_CHUNKS];
		check(chunk->op && (chunk->op == op[0] || chunk->op == op[1]));
		check(chunk->offset == chunk->op->answered +
				       sum[chunk->op == op[1]]);
		sum[chunk->op == op[1]] += chunk->len;
		due += chunk->state == NEAR_CHUNK_FILLS ||
		       chunk->state == NEAR_CHUNK_DRAINS;
	}
	for (i = 0; i < 2; i++)
		check(!op[i] || op[i]->sent == op[i]->answered + sum[i]);
	return due;
}

/* Returns the chunk whose request this reply answers; NULL: none. */
static struct near_chunk *posted(const struct near_rma_op *of, size_t offset)
{
	struct near_chunk *chunk;
	uint32_t i;

	for (i = staging->freed; i != staging->filled; i++) {
		chunk = &staging->chunk[i % NEAR_STAGE_CHUNKS];
		if (chunk->state == NEAR_CHUNK_POSTED && chunk->op == of &&
		    chunk->offset == offset)
			return chunk;
	}
	return NULL;
}

static void replies(void)
{
	struct near_rma_op *of = op[any(bool) ? 1 : 0];
	size_t offset = any(size_t);
	int err = any(bool) ? 0 : EIO;
	bool valid = posted(of, offset);

	failed[of == op[1]] |= valid && err;
	if (near_stage_answered(&port, of, offset, err))
		check(valid);
}

/*
 * For each CASE: the action, the number of chunks of the first operation, the
 * number of chunks in use, and their states (-1: any). With constant states
 * cbmc is faster. Only the states listed here can precede a posted chunk.
 */
static const struct {
	enum { GO, REPLIES, STEP, CLOSE } action;
	uint32_t first, count;
	int state[NEAR_STAGE_CHUNKS];
} cases[] = {
	{ CLOSE, 1, 2, { -1, -1 } },
	{ REPLIES, 2, 2, { NEAR_CHUNK_FILLS, NEAR_CHUNK_FILLS } },
	{ REPLIES, 1, 2, { NEAR_CHUNK_POSTED, -1 } },
	{ REPLIES, 1, 2, { NEAR_CHUNK_DRAINS, NEAR_CHUNK_POSTED } },
	{ REPLIES, 2, 2, { NEAR_CHUNK_POSTED, -1 } },
	{ STEP, 1, 2, { -1, -1 } },
	{ STEP, 2, 2, { -1, -1 } },
	{ GO, 2, 2, { -1, -1 } },
	{ GO, 0, 0, { -1, -1 } },
	{ GO, 1, 1, { -1, -1 } },
};

int main(void)
{
	near_list_init(&port.onesided_work);
	near_list_init(&at.queue);
	near_list_init(&at.replies);
	at.peer = &peer;
	at.unanswered = any(uint32_t);
	at.device_pending = any(uint32_t);
	port.rma = &rma;
	port.read_left = any(size_t);
	staging_any(cases[CASE].first, cases[CASE].count, cases[CASE].state);
	at.due = check_chunks();
	switch (cases[CASE].action) {
	case GO:
		assume(op[0]->queued || op[1]->queued);
		near_stage_continue(&port, op[op[0]->queued ? 0 : 1]);
		break;
	case REPLIES:
		replies();
		break;
	case STEP:
		near_stage_step(&port, &at);
		break;
	default:
		lives = any(bool);
		near_stage_close(&at, lives);
		check(!at.staging);
		return 0;
	}
	check(at.due == check_chunks());
	return 0;
}
