/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Single copies of RMA at the initiator, with any entry in the target's table.
 * Asserted:
 * - a copy is between the operation's next bytes and the bytes at the same
 *   offset of the range that a look-up has permitted;
 * - the target's process was found alive before the copy;
 * - the operation makes progress and never passes its end;
 * - the operation ends, and notifies the target after the last byte, or the
 *   target executes all of it.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/direct.c near_rma_direct_at near_rma_direct_can
 * C: near/rma/direct.c near_rma_look_up near_rma_copy near_rma_step
 * C: near/rma/direct.c near_rma_notifies near_rma_notify
 * C: near/rma/state.h near_rma_access_to
 * C: near/rma/table.h near_region_check
 * C: near/link/copy.h near_iov_from
 * CBMC: --unwind 4 -DRINGS_CLASS=0 --object-bits 10
 * LONG: 6 s of CPU time
 * CASES: 2
 * EDIT near/near.h: s/NEAR_IOV_MAX 4/NEAR_IOV_MAX 2/
 * MUTANT range-of-one near/rma/direct.c: \
 *   s/near_region_check\(entry, args->addr, args->len/\
 *   near_region_check(entry, args->addr, 1/
 * MUTANT access-of-read near/rma/direct.c: \
 *   s/near_rma_access_to\(entry, args->verb, args->op,\n[\t \
 *   ]*args->flags\), memory\)/NEAR_MAY_READ, memory)/
 * MUTANT unaligned near/rma/direct.c: \
 *   s/return \*memory % near_type_size\(args->type\) \? -EINVAL : 0/return 0/
 * MUTANT from-start near/rma/direct.c: \
 *   s/bufs->count, op->sent, len, here/bufs->count, 0, len, here/
 * MUTANT to-start near/rma/direct.c: s/\(memory \+ op->sent\)/memory/
 * MUTANT step-unlimited near/rma/direct.c: \
 *   s/len > NEAR_STEP \? NEAR_STEP : len/len/
 * MUTANT whole-again near/rma/direct.c: \
 *   s/size_t len = op->args.len - op->sent/size_t len = op->args.len/
 * MUTANT pid-reused near/rma/direct.c: \
 *   s/if \(!near_peer_alive\(port, peer\)\)/if (0)/
 * MUTANT no-progress near/rma/direct.c: \
 *   s/near_likely\(n > 0\)/near_likely(n >= 0)/
 * MUTANT begun-again near/rma/direct.c: \
 *   s/op->sent = 0;\n\t\treturn -EPERM/return -EPERM/
 * MUTANT not-notified near/rma/direct.c: \
 *   s/if \(!slot\)\n\t\t\treturn -EAGAIN;//
 * MUTANT notified-early near/rma/direct.c: \
 *   s/if \(!ret && slot && op->sent == args->len\)/if (!ret \&\& slot)/
 * MUTANT view-unchecked near/rma/direct.c: \
 *   s/if \(near_unlikely\(!near_rma_view\(at\)\)\)\n\t*return[^;]*;/\
 *   near_rma_view(at);/
 */

#include <sys/uio.h>

#include "rings.h"

#include "near/rma/ops.h"

static struct near_port port;
static struct near_peer peer;
static struct near_segment segment;
static struct near_rma_peer at;
static struct near_rma_op op;
static struct near_table_view view;
static struct near_region_entry entry;
static uint64_t target;		/* result of the look-up */
static bool alive, notified, wanted;

/*
 * In place of process_vm_readv() and process_vm_writev(): checks a copy of the
 * operation's bytes from op.sent on. Returns what the system calls may return:
 * the number of bytes, 0, or -1.
 */
static ssize_t copied(const struct iovec *here, unsigned long count,
		      const struct iovec *there)
{
	size_t len = 0, skip = op.sent, n;
	unsigned long i, from = 0;

	check(alive && (uint64_t)there->iov_base == target + op.sent);
	for (i = 0; i < count; i++) {
		check(readable(here[i].iov_base, here[i].iov_len));
		len += here[i].iov_len;
	}
	check(len == there->iov_len && len <= NEAR_STEP);
	check(len && len <= op.args.len - op.sent);
	if (skip >= op.local[0].iov_len)
		skip -= op.local[from++].iov_len;
	check(here[0].iov_base == (char *)op.local[from].iov_base + skip);
	if (any(bool))
		return any(bool) ? 0 : hostile_fails();
	n = any(size_t);
	assume(n && n <= len);
	return (ssize_t)n;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	check(op.args.verb == NEAR_READ);
	return copied(local, count, remote);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
			  unsigned long count, const struct iovec *remote,
			  unsigned long remote_count, unsigned long flags)
{
	check(op.args.verb == NEAR_WRITE);
	return copied(local, count, remote);
}

#include "near/rma/direct.c"
#include "near/rma/atomic.c"

/* In place of functions of other files of rma/, and of link/ */

struct near_table_view *near_rma_view_open(struct near_rma_peer *of)
{
	return of->view = any(bool) ? NULL : &view;
}

int near_table_view_find(struct near_table_view *of, uint64_t key,
			 struct near_region_entry *entry_out)
{
	check(of == &view);
	entry = any(struct near_region_entry);
	*entry_out = entry;
	return any(bool) ? 0 : any(bool) ? -EAGAIN : -EKEYREJECTED;
}

bool near_peer_alive(struct near_port *of, const struct near_peer *whom)
{
	return alive = any(bool);
}

bool near_peer_check_exited(const struct near_peer *whom)
{
	return any(bool);
}

void near_peer_fail(struct near_port *of, struct near_peer *failed)
{
	failed->draining = true;
}

struct near_slot *near_control_slot_other(struct near_port *of,
					  struct near_peer *to)
{
	return near_tx_slot_past(&to->tx);
}

void near_doorbell_ring(struct near_peer *to)
{
	notified = true;
}

/*
 * Makes an operation with one or two buffers, whose lengths sum up to the
 * operation's length.
 */
static void op_any(void)
{
	size_t len = any(size_t), first = any(bool) ? len : any(size_t);

	assume(first <= len && len < 1u << 20);
	op.to = &at;
	op.delegated = any(bool);
	op.args = any(struct near_rma_args);
	assume(op.args.verb == NEAR_WRITE || op.args.verb == NEAR_READ);
	op.args.len = len;
	op.args.local.iov = op.local;
	op.args.local.count = first == len ? 1 : 2;
	op.local[0] = (struct iovec){ malloc(first), first };
	op.local[1] = (struct iovec){ malloc(len - first), len - first };
	op.sent = any(size_t);
	assume(op.sent < len || (!len && !op.sent));
}

static void copies(void)
{
	uint64_t tail = peer.tx.tail;
	size_t before = op.sent;
	int ret;

	target = any(uint64_t);
	ret = near_rma_direct_at(&port, &op, target);
	notified = peer.tx.tail != tail;
	wanted = op.args.flags & NEAR_RMA_DATA && !op.delegated;
	check(ret == -EPERM || op.sent >= before);
	check(op.sent <= op.args.len);
	check(ret || op.sent > before || !op.args.len);
	check(ret <= 0 && (ret != -EPERM || !op.sent));
	check(!notified || (!ret && !op.delegated && op.sent == op.args.len));
	check(ret || !wanted || notified || op.sent < op.args.len);
	check(tx_valid(&peer.tx));
}

/*
 * Asserts that a look-up returns a target in the range of the entry and, for an
 * atomic, an aligned one.
 */
static void looks_up(void)
{
	struct near_rma_args args = any(struct near_rma_args);
	struct near_region_entry got;
	uint32_t access;
	uint64_t memory;

	/* for CBMC, an enum is signed */
	assume((unsigned int)args.verb < NEAR_VERBS);
	assume(args.verb == NEAR_WRITE || args.verb == NEAR_READ ||
	       near_type_size(args.type));
	if (near_rma_look_up(&at, &args, &got, &memory) || !args.len)
		return;
	access = near_rma_access_to(&entry, args.verb, args.op, args.flags);
	check((entry.access & access) == access);
	check(memory - entry.memory <= entry.len &&
	      args.len <= entry.len - (memory - entry.memory));
	check(args.verb == NEAR_WRITE || args.verb == NEAR_READ ||
	      entry.device || memory % near_type_size(args.type) == 0);
	check(got.device == entry.device);
}

int main(void)
{
	ring_made();
	tx_any(&peer.tx);
	peer.segment = &segment;
	peer.reads = any(bool);
	peer.rma = &at;
	at.peer = &peer;
	at.view = any(bool) ? &view : NULL;
	op_any();
	near_rma_direct_can(&at, &op.args);
	if (CASE)
		looks_up();
	else
		copies();
	return 0;
}
