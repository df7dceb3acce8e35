/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Blocking calls of completion queues (wait.c) and counters (cntr.c). */
#ifndef DUO_CQ_WAIT_H
#define DUO_CQ_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/proc.h"
#include "obj/waiter.h"

/* time for which a blocking call polls before its first sleep, ns */
#define DUO_SPIN_NS 50000

struct duo_blocking {
	uint64_t start;		/* time of the call, ns */
	/* time from `start` to the last duo_blocking_over(), ns */
	uint64_t waited;
	int timeout;		/* ms; negative: no timeout */
	/* consecutive attempts to sleep that have failed with -FI_EAGAIN */
	int tries;
};

static inline struct duo_blocking duo_blocking_begin(int timeout)
{
	return (struct duo_blocking) { duo_now_ns(), 0, timeout, 0 };
}

/* True if the timeout has passed. Updates call->waited. */
static inline bool duo_blocking_over(struct duo_blocking *call)
{
	call->waited = duo_now_ns() - call->start;
	return call->timeout >= 0 &&
	       call->waited >= (uint64_t) call->timeout * 1000000;
}

/* True if the call has polled long enough, and may sleep. */
static inline bool duo_blocking_sleeps(const struct duo_blocking *call)
{
	return call->waited >= DUO_SPIN_NS;
}

/*
 * Sleeps for 50 us. If the wait object is FI_WAIT_YIELD, yields the CPU
 * instead.
 */
void duo_waiter_pause(const struct duo_waiter *waiter);

#endif /* DUO_CQ_WAIT_H */
