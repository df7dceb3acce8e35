/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Delegated operations at the initiator, with any counts in near_ctl and any
 * words in the slots. delegate.pml has the protocol. Asserted:
 * - each operation ends once, and is not accessed afterwards;
 * - the list has all operations that have not ended, and no others;
 * - an operation in the list is still marked as sent, with its slot;
 * - no operation ends with success if its copy has failed or was short.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/delegate.c near_rma_delegate near_deleg_wanted
 * C: near/rma/delegate.c near_delegs_step near_delegs_count near_deleg_counted
 * C: near/rma/delegate.c near_delegs_revoke near_deleg_direct
 * C: near/rma/delegate.c near_delegs_change near_delegs_drained
 * C: near/rma/delegate.c near_delegs_advanced near_deleg_no_reply
 * C: near/rma/delegate.h near_deleg_add near_deleg_ended
 * C: near/rma/inline.h near_rma_end
 * LONG: 11 s of CPU time
 * CASES: 4
 * CBMC: --unwind 3 -DRINGS_CLASS=0 --object-bits 10
 * EDIT near/near.h: s/NEAR_IOV_MAX 4/NEAR_IOV_MAX 1/
 * EDIT near/rma/state.h: s/NEAR_RMA_KEPT 256/NEAR_RMA_KEPT 8/
 * EDIT near/rma/state.h: s/NEAR_RMA_PART 256/NEAR_RMA_PART 8/
 * EDIT near/rma/delegate.c: s/near_pool_put\(&port->rma->ops, op\)/op_put(op)/
 * EDIT near/rma/inline.h: s/near_pool_put\(&port->rma->ops, op\)/op_put(op)/
 * EDIT near/rma/inline.h: s/port->rma->sink->done\(/done(/
 * MUTANT ended-in-list near/rma/inline.h: \
 *   s/if \(op->delegated\)\n\t\tnear_deleg_ended\(at, op\);\n//
 * MUTANT ended-is-counted near/rma/delegate.h: s/at->delegs--;\n//
 * MUTANT drained-then-read near/rma/delegate.c: \
 *   s/near_list_each_safe\(op, next, /near_list_each(op, /
 * MUTANT none-is-revoked near/rma/delegate.c: \
 *   s/marked && at->delegs &&/marked \&\&/
 * MUTANT none-is-counted near/rma/delegate.c: \
 *   s/while \(at->delegs\)/while (true)/
 * MUTANT short-is-success near/rma/delegate.c: \
 *   s/if \(!ret && op->sent < op->args.len\)/if (0)/
 * MUTANT failure-is-success near/rma/delegate.c: \
 *   s/near_rma_end\(port, op, -ret\)/near_rma_end(port, op, 0)/
 * MUTANT copied-from-start near/rma/delegate.c: s/op->sent = op->args.len;\n//
 * MUTANT slot-unmasked near/rma/delegate.c: s/tail & tx->mask/tail/
 * MUTANT freed-twice near/rma/delegate.c: \
 *   s/return 0;\n\t*\}\n\t*free\(op->copy\);/}\n\t\tfree(op->copy);/
 */

#include "rings.h"

#include "near/rma/ops.h"

static struct near_port port;
static struct near_peer peer;
static struct near_rma_peer at;
static struct near_rma rma;
/* not an array: CBMC is faster if the offset of each object is 0 */
static struct near_rma_op first_op, second_op;
static bool used[2];		/* operations that have not ended */
/*
 * direct: near_rma_direct(), which executes an operation as a copy between the
 * memory of both processes, has ended the current operation, with success or
 * with an error; whole: this copy has copied all bytes
 */
static bool direct;
static bool whole;

/* Frees an operation that has ended: its list pointers must not be used. */
static void op_put(struct near_rma_op *op)
{
	int i = op != &first_op;

	check(used[i] && !op->delegated);
	used[i] = false;
	op->link = (struct near_link){ NULL, NULL };
	op->slot = NULL;
}

static void done(void *ctx, struct near_peer *with, void *cookie,
		 uint32_t about, int err)
{
	check(with == &peer);
	check(err || !direct || whole);
	direct = false;
}

#include "near/rma/delegate.c"

/* In place of functions of other files of rma/, and of link/ */

int near_rma_direct(struct near_port *of, struct near_rma_op *op)
{
	int ret = any(int);

	check(op->delegated && op->sent == 0);
	op->sent = any(size_t);
	assume(op->sent <= op->args.len && ret <= 0 && ret > -4096);
	direct = ret != -EAGAIN && ret != -EPERM;
	whole = !ret && op->sent == op->args.len;
	return ret;
}

bool near_rma_direct_can(struct near_rma_peer *to,
			 const struct near_rma_args *args)
{
	return any(bool);
}

bool near_rma_behind(struct near_rma_peer *to, const struct near_rma_args *args)
{
	return any(bool);
}

bool near_rma_notifies(const struct near_rma_op *op)
{
	return any(bool);
}

void near_rma_end_more(struct near_rma_op *op, int err)
{
	op->to->unanswered--;
	op->to->expect -= op->expect;
}

int near_rma_part(struct near_port *of, struct near_rma_op *op, size_t len,
		  unsigned int flags)
{
	if (any(bool))
		return -EAGAIN;
	peer.tx.tail++;
	op->sent = len;
	return 0;
}

bool near_port_barrier(struct near_port *of)
{
	return any(bool);
}

void near_port_wake(struct near_port *of)
{
}

/* Does nothing: the peer is connected, so it has further references. */
void near_peer_put(struct near_port *of, struct near_peer *put)
{
	check(put == &peer);
}

uint64_t duo_now_ns(void)
{
	static uint64_t now = 1;

	return now += NEAR_DELEG_BACKOFF;
}

/* Makes an operation of any verb and length, of the fast or the slow path. */
static struct near_rma_op *op_any(int i)
{
	struct near_rma_op *op = i ? &second_op : &first_op;

	used[i] = true;
	op->args.verb = any(enum near_verb);
	op->args.len = op->sent = any(size_t);
	op->args.about = any(uint32_t);
	op->small = any(bool);
	op->to = &at;
	op->expect = 1;
	return op;
}

struct near_rma_op *near_rma_op(struct near_port *of, struct near_rma_peer *to,
				const struct near_rma_args *args)
{
	return any(bool) ? NULL : op_any(0);
}

/* Makes two delegated operations. */
static void delegated(void)
{
	struct near_rma_op *op;
	int i;

	for (i = 0; i < 2; i++) {
		op = op_any(i);
		near_deleg_add(&port, &at, op,
				&peer.tx.slots[i]);
		near_rma_begun(&at, op);
	}
}

/*
 * Asserts that the list has the live operations, whose requests were all sent.
 */
static void check_list(void)
{
	struct near_rma_op *op;
	int n = 0;

	near_list_each(op, &at.delegated, link) {
		check(op->delegated && in_slots(op->slot));
		check(op->sent == op->args.len);
		n++;
	}
	check(n == (int)at.delegs && n == used[0] + used[1]);
}

static void starts(void)
{
	struct near_rma_args args = any(struct near_rma_args);

	near_rma_delegate(&port, &at, &args);
}

static void goes_on(void)
{
	delegated();
	at.delegated_ns = any(uint64_t);
	at.skip = any(uint32_t);
	at.next_skip = any(uint32_t);
	near_rma_set_poll_word(&port, &at);
	switch (CASE) {
	case 0:
		near_delegs_step(&port, &at);
		break;
	case 1:
		near_delegs_advanced(&port);
		break;
	default:
		near_delegs_drained(&port, &peer);
	}
}

int main(void)
{
	struct near_rx_ring from = { .delegs = any(uint64_t) };
	struct near_rma_reply reply = { .err = any(uint32_t) };

	near_list_init(&port.onesided_work);
	near_list_init(&at.delegated);
	near_list_init(&at.queue);
	near_list_init(&at.replies);
	ring_made();
	if (CASE == 3)
		tx_any(&peer.tx);
	else
		near_tx_init(&peer.tx, ring, &place);
	at.peer = &peer;
	at.delegated_last = any(uint32_t);
	peer.rma = &at;
	port.rma = &rma;
	port.fence = any(bool);
	port.polls = any(uint32_t);
	port.tick_at = any(uint32_t);
	near_port_clear_poll_word(&port);
	from.rx.ctl = ring;
	near_deleg_no_reply(&from, any(uint64_t), &reply);
	if (CASE < 3)
		goes_on();
	else
		starts();
	check_list();
	return 0;
}
