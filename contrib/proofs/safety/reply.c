/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Replies to RMA and atomics at the initiator, with any bytes in the slot.
 * Asserted:
 * - a result is copied from the ring into the buffers of an operation of this
 *   peer;
 * - an operation ends once;
 * - counts of expected replies do not wrap.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/issue.c near_rma_answered near_rma_answer_take near_rma_accept
 * C: near/rma/issue.c near_rma_accept_small near_rma_end_more near_rma_unqueue
 * C: near/rma/inline.h near_rma_end
 * C: near/link/copy.h near_iov_copy
 * LONG: 8 s of CPU time
 * CBMC: --unwind 4 -DRINGS_CLASS=0 --object-bits 10
 * EDIT near/near.h: s/NEAR_IOV_MAX 4/NEAR_IOV_MAX 2/
 * EDIT near/rma/state.h: s/NEAR_RMA_KEPT 256/NEAR_RMA_KEPT 8/
 * EDIT near/link/copy.h: s/memcpy\(/hostile_bytes(/g
 * EDIT near/rma/issue.c: s/near_copy_small\(/hostile_bytes(/g
 * EDIT near/rma/issue.c: s/near_pool_find\(&port->rma->ops, id\)/found()/
 * EDIT near/rma/inline.h: s/near_pool_put\(&port->rma->ops, op\)/op_put(op)/
 * EDIT near/rma/inline.h: s/port->rma->sink->done\(/done(/
 * MUTANT length-unchecked near/rma/issue.c: s/answer->len > op->sent - op->answered \|\| //
 * MUTANT data-unchecked near/rma/issue.c: s/ \|\| !answer->data//
 * MUTANT replies-unchecked near/rma/issue.c: s/\(!read && !op->expect\)/0/
 * MUTANT operation-of-another near/rma/issue.c: s/op->to->peer != ring->peer \|\| //
 * MUTANT not-begun near/rma/issue.c: s/ring->peer \|\| !op->begun/ring->peer/
 * MUTANT error-unchecked near/rma/issue.c: s/err > 4095/0/
 * MUTANT unknown-operation near/rma/issue.c: s/near_unlikely\(!op \|\| op->to/near_unlikely(op->to/
 * MUTANT small-length near/rma/issue.c: s/ \|\|\n[\t ]*answer->len != op->args.len\)\)/))/
 * MUTANT small-write near/rma/issue.c: s/op->args.verb == NEAR_WRITE \|\|\n[\t ]*answer->len != /answer->len != /
 * MUTANT length-loaded-twice near/rma/issue.c: s/near_rx_data\(&ring->rx, answer.len\)/near_rx_data(\&ring->rx, hostile_load(\&from->len, 0))/
 * MUTANT ended-twice near/rma/issue.c: s/near_rma_end\(port, op, 0\);\n\t\treturn 0;/near_rma_end(port, op, 0);/
 */

#include "rings.h"

#include "near/rma/ops.h"

static struct near_port port;
static struct near_peer peer, other;
static struct near_rma_peer at, at_other;
static struct near_rx_ring rx_ring;
static struct near_rma rma;
/* not an array: CBMC is faster if the offset of each object is 0 */
static struct near_rma_op op_mine, op_other;
static bool ended;

static struct near_rma_op *found(void)
{
	return any(bool) ? NULL : any(bool) ? &op_mine : &op_other;
}

static void op_put(const struct near_rma_op *op)
{
	check(op == &op_mine && op->begun && !ended);
	ended = true;
}

static void done(void *ctx, struct near_peer *with, void *cookie,
		 uint32_t about, int err)
{
	check(with == &peer && err >= 0 && err < 4096);
}

#include "near/rma/issue.c"

/* In place of functions of other files of rma/, and of link/ */

bool near_stage_answered(struct near_port *of, struct near_rma_op *op,
			 size_t offset, int err)
{
	check(op == &op_mine && !ended);
	return any(bool);
}

void near_rx_ring_broken(struct near_port *of, struct near_rx_ring *broken,
			 const char *what, uint64_t value)
{
	check(broken == &rx_ring && !ended);
}

void near_port_wake(struct near_port *of)
{
}

void near_peer_put(struct near_port *of, struct near_peer *put)
{
	check(put == &peer);
}

/* Makes one or two buffers with len bytes in total. */
static void buffers(struct near_rma_bufs *bufs, struct iovec *iov, size_t len)
{
	size_t first = any(bool) ? len : any(size_t);

	assume(first <= len);
	bufs->iov = iov;
	bufs->count = first == len ? 1 : 2;
	iov[0] = (struct iovec){ malloc(first), first };
	iov[1] = (struct iovec){ malloc(len - first), len - first };
}

/*
 * Makes an operation in any state. If op->small is true, the fast path has sent
 * the operation's request.
 */
static void op_any(struct near_rma_op *op)
{
	bool read;

	op->to = &at;
	op->begun = any(bool);
	op->small = any(bool);
	op->on_device = any(bool);
	op->delegated = false;
	op->args.verb = any(uint8_t);
	assume(op->args.verb < NEAR_VERBS);
	op->args.about = any(uint32_t);
	op->args.len = any(size_t);
	op->sent = any(size_t);
	op->answered = any(size_t);
	op->expect = any(uint8_t);
	assume(op->args.len < 1u << 20 && op->sent <= op->args.len &&
	       op->answered <= op->sent);
	read = op->args.verb == NEAR_READ;
	assume(!op->small ||
	       (op->args.verb != NEAR_ATOMIC && op->args.verb != NEAR_COMPARE &&
		op->args.len && op->args.len <= NEAR_RMA_BYTES && op->begun &&
		op->sent == op->args.len && !op->answered && op->expect == 1));
	if (read)
		buffers(&op->args.local, op->local, op->args.len);
	if (op->args.verb == NEAR_FETCH || op->args.verb == NEAR_COMPARE)
		buffers(&op->args.result, op->result, op->args.len);
	/* an operation of the fast path has one buffer */
	assume(!op->small || (op->local[1].iov_len == 0 &&
			      op->result[1].iov_len == 0));
	at.expect = op->expect;
	at.unanswered = op->begun;
}

int main(void)
{
	struct near_slot *slot = malloc(sizeof(*slot));
	int ret;

	near_list_init(&port.onesided_work);
	near_list_init(&at.delegated);
	near_list_init(&at.queue);
	near_list_init(&at.replies);
	ring_made();
	rx_any(&rx_ring.rx);
	near_tx_none(&peer.tx);
	port.rma = &rma;
	rx_ring.peer = &peer;
	peer.rma = &at;
	at.peer = &peer;
	at_other.peer = &other;
	op_any(&op_mine);
	op_other = op_mine;
	op_other.to = &at_other;
	ret = near_rma_answered(&port, &rx_ring, slot);
	check(!ended || !ret);
	if (!ended && !ret && op_mine.begun)
		check(op_mine.answered <= op_mine.sent &&
		      at.expect == op_mine.expect);
	check(at.expect <= UINT8_MAX);
	return 0;
}
