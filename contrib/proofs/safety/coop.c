/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Both ends of a cooperative copy, with any values in near_ctl and in the COOP
 * slot. Asserted:
 * - all copied bytes are within the buffers of the message;
 * - each step of an operation ends;
 * - the counters of an operation stay within the message.
 *
 * Lines for ./run, which explains their keys:
 * C: near/msg/coop.h near_coop_step near_coop_take near_coop_end
 * C: near/msg/coop.h near_coop_sender_ended
 * C: near/msg/large_coop.c near_tx_coop_requested near_tx_coop near_tx_push
 * C: near/msg/large_coop.c near_rx_coop near_rx_coop_steps near_rx_coop_end
 * C: near/msg/large_coop.c near_rx_coop_finish
 * C: near/msg/large_rx.c near_rx_pull near_rx_copy near_rx_read
 * CBMC: --unwind 5 --object-bits 10
 * LONG: 5 s of CPU time
 * EDIT near/msg/coop.h: s/128u << 10/8192u/
 * MUTANT length-trusted near/msg/large_coop.c: s/len > op->len \|\| //
 * MUTANT empty-copy near/msg/large_coop.c: s/!step \|\| //
 * MUTANT vector-copied near/msg/large_coop.c: s/op->iov_count != 1 \|\|/0 ||/
 * MUTANT steps-unchecked near/msg/coop.h: \
 *   s/word >> 32 != round \|\|\n\t\t *near_coop_low\(word\) \+ \
 *   near_coop_high\(word\) >= all/word >> 32 != round/
 * MUTANT claims-trusted near/msg/large_coop.c: \
 *   s/if \(op->sender_steps > left\)/if (0)/
 * MUTANT steps-trusted near/msg/coop.h: s/if \(\*steps > sender_steps\)/if (0)/
 * MUTANT one-step-on near/msg/large_coop.c: s/op->steps - 1 - n/op->steps - n/
 */

#include <stdlib.h>

#include "hostile.h"
#include "near/msg/large.h"

static char *buffer;		/* of the message, at this end */
static size_t buffer_len;

/* Asserts that a copy accesses only bytes of this end's buffer. */
static ssize_t copied(const struct iovec *local, unsigned long count)
{
	size_t len = 0;
	unsigned long i;

	for (i = 0; i < count; i++) {
		check(readable(local[i].iov_base, local[i].iov_len));
		len += local[i].iov_len;
	}
	return any(bool) ? (ssize_t)len : any(bool) ? 0 : hostile_fails();
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	return copied(local, count);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
			  unsigned long count, const struct iovec *remote,
			  unsigned long remote_count, unsigned long flags)
{
	check(remote->iov_len == local->iov_len);
	return copied(local, count);
}

struct near_slot *near_control_slot_other(struct near_port *port,
					  struct near_peer *peer)
{
	return NULL;
}

bool near_peer_alive(struct near_port *port, const struct near_peer *peer)
{
	return any(bool);
}

bool near_peer_closed(struct near_port *port, struct near_peer *peer)
{
	return any(bool);
}

#include "near/msg/large_coop.c"
#include "near/msg/large_rx.c"

#define MOST 40000	/* bytes of a message */

static struct near_port port;
static struct near_peer peer;
static struct near_rx_ring ring;
static struct near_ctl ctl;

static void sender(void)
{
	struct near_slot *slot = malloc(sizeof(*slot));
	struct near_tx_op op = { .state = any(enum near_tx_state) };
	size_t budget = any(size_t);

	op.peer = &peer;
	op.len = buffer_len;
	op.iov_count = any(uint32_t);
	assume(op.iov_count > 0 && op.iov_count <= NEAR_IOV_MAX);
	op.iov[0].iov_base = buffer;
	op.iov[0].iov_len = op.iov_count == 1 ? op.len : any(size_t);
	assume(op.iov[0].iov_len <= op.len);
	if (op.iov_count != 1)
		op.iov[0].iov_base = malloc(op.iov[0].iov_len);
	assume(op.state != NEAR_TX_FRAGS && op.state != NEAR_TX_COOP);
	if (!near_tx_coop_requested(&port, &op, slot))
		return;
	/*
	 * Limits the passes of the loop in near_tx_coop(): each pass copies at
	 * least one byte, and subtracts the copied bytes from the budget.
	 */
	assume(budget <= 3);
	near_tx_coop(&port, &op, &budget);
	if (op.state == NEAR_TX_COOP)
		near_tx_coop_finish(&op);
}

/* True if the operation's counters are within its message. */
static bool rx_valid(const struct near_rx_op *op)
{
	uint32_t done = (uint32_t)((op->done + op->step - 1) / op->step);

	if (op->done > op->stop || op->stop > op->len)
		return false;
	if (op->state != NEAR_RX_READ && op->state != NEAR_RX_CTS &&
	    (op->stop != op->len || done > op->steps))
		return false;
	return op->state != NEAR_RX_COOP_RUNNING ||
	       op->sender_steps <= op->steps - done;
}

static void receiver(void)
{
	struct near_rx_op op = { .state = any(enum near_rx_state) };
	size_t budget = any(size_t);

	op.peer = &peer;
	op.iov_count = 1;
	op.iov[0] = (struct iovec){ buffer, buffer_len };
	op.len = any(size_t);
	assume(op.len && op.len <= buffer_len);
	op.step = near_coop_step(op.len);
	op.steps = near_coop_steps(op.len, op.step);
	op.stop = any(size_t);
	op.done = any(size_t);
	op.sender_steps = any(uint32_t);
	op.failed = any(bool);
	op.rndv.addr = any(uint64_t);
	assume(op.state >= NEAR_RX_COOP_PENDING &&
	       op.state <= NEAR_RX_COOP_RUNNING && rx_valid(&op));
	assume(budget <= 2);
	near_rx_coop(&port, &op, &budget);
	check(rx_valid(&op));
	if (op.state == NEAR_RX_READ)
		near_rx_read(&port, &op, &budget);
	check(op.done <= op.stop && op.stop <= op.len);
}

static void received(void *ctx, void *cookie, int err)
{
}

int main(void)
{
	static const struct near_sink sink = { .received = received };

	buffer_len = any(size_t);
	assume(buffer_len <= MOST);
	buffer = malloc(buffer_len);
	port.sink = &sink;
	near_list_init(&port.sending);
	near_list_init(&port.receiving);
	near_list_init(&peer.waiting);
	peer.ring = &ring;
	ring.rx.ctl = &ctl;
	peer.tx.ctl = any(bool) ? &ctl : NULL;
	peer.far = any(bool);
	if (any(bool))
		sender();
	else
		receiver();
	return 0;
}
