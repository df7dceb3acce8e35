/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Waiting for completion queues and counters: wait.c. */
#ifndef DUO_CQ_WAIT_H
#define DUO_CQ_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/proc.h"
#include "obj/waiter.h"

struct duo_cq;
struct duo_domain;
struct duo_ep;

/* longest sleep, ms: a peer that closes its port may fail to wake the thread */
#define DUO_SLEEP_MS 1000

/*
 * A blocking call polls for DUO_SPIN_NS, then sleeps until an event wakes the
 * thread. If some source cannot wake the thread, the call polls between short
 * sleeps.
 */
#define DUO_SPIN_NS 50000	/* ns */
#define DUO_SHORT_SLEEP_NS 50000	/* ns */

/* State of a blocking call. */
struct duo_blocking {
	/* start of the call; duration at the last duo_blocking_over(); ns */
	uint64_t start, waited;
	int timeout;		/* ms; negative: no timeout */
	int tries; /* failed attempts to sleep (-FI_EAGAIN) in a row */
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

/* True if the call had lasted DUO_SPIN_NS at the last duo_blocking_over(). */
static inline bool duo_blocking_sleeps(const struct duo_blocking *call)
{
	return call->waited >= DUO_SPIN_NS;
}

/* Returns the time left, ms, rounded up to avoid spinning at the end. */
static inline int duo_blocking_left_ms(const struct duo_blocking *call)
{
	return call->timeout - (int) (call->waited / 1000000);
}

static inline void duo_short_sleep(void)
{
	const struct timespec time = { .tv_nsec = DUO_SHORT_SLEEP_NS };

	nanosleep(&time, NULL);
}

/* True if the domain has no local transport, or one that can wake a thread. */
bool duo_domain_peer_signals(const struct duo_domain *domain);

/*
 * Arms the endpoint's local transport: new events then wake a sleeping thread.
 * Returns 0; -FI_EAGAIN: there are events already, or operations that only
 * polls continue. After -FI_EAGAIN, the caller must call duo_cq_force_poll().
 * Needs the group's lock.
 */
int duo_ep_arm(struct duo_ep *ep);
/*
 * Ends a sleep for which duo_ep_arm() was called; must follow each such sleep.
 * If this thread has consumed the port's wakeup, wakes the other threads that
 * sleep on CQs of the endpoint. Needs the group's lock.
 */
void duo_ep_woken(struct duo_ep *ep);
/*
 * Arms the core's CQ. Returns 0, -FI_EAGAIN (there are events), or an error. If
 * the result is not 0, the caller must call duo_cq_force_poll(). Needs the
 * group's lock.
 */
int duo_cq_arm_core(struct duo_cq *cq);
/* Makes the next polls poll both paths. Needs the group's lock. */
void duo_cq_force_poll(struct duo_cq *cq);

/*
 * Sleeps after duo_cq_fall_asleep() or duo_cntr_fall_asleep() has returned ret:
 * - 0: sleeps until the wait object is readable, at most max_ms, and not longer
 *   than the timeout of the blocking call
 * - -FI_EAGAIN, if it is the first in the blocking call or the first after a 0:
 *   does not sleep
 * - otherwise: makes a short sleep. If the wait object is FI_WAIT_YIELD, yields
 *   the CPU instead
 */
void duo_waiter_sleep(const struct duo_waiter *waiter,
		      struct duo_blocking *call, int ret, int max_ms);

#endif /* DUO_CQ_WAIT_H */
