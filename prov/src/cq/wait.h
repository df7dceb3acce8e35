/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Parts that waits for completions and for counters have in common: wait.c. */
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

/* Longest sleep, ms: a near peer that closes does not ring the doorbell. */
#define DUO_SLEEP_MS 1000

/*
 * A blocking call polls for DUO_SPIN_NS, then sleeps. If a source cannot
 * signal, it naps instead: it sleeps for DUO_NAP_NS between two polls.
 */
#define DUO_SPIN_NS 50000	/* ns */
#define DUO_NAP_NS 50000	/* ns */

struct duo_nap {
	uint64_t start, waited;	/* start of the blocking call, and time since
				 * its start; ns */
	int timeout;		/* ms; negative: no timeout */
	int tries; /* failed attempts to sleep (-FI_EAGAIN) in a row */
};

static inline struct duo_nap duo_nap_begin(int timeout)
{
	return (struct duo_nap) { duo_now_ns(), 0, timeout, 0 };
}

static inline bool duo_nap_over(struct duo_nap *nap)
{
	nap->waited = duo_now_ns() - nap->start;
	return nap->timeout >= 0 &&
	       nap->waited >= (uint64_t) nap->timeout * 1000000;
}

/* True if the blocking call had polled for DUO_SPIN_NS at duo_nap_over(). */
static inline bool duo_nap_due(const struct duo_nap *nap)
{
	return nap->waited >= DUO_SPIN_NS;
}

/* Returns the time left, ms, rounded up so that its last part is slept, too. */
static inline int duo_nap_left_ms(const struct duo_nap *nap)
{
	return nap->timeout - (int) (nap->waited / 1000000);
}

static inline void duo_nap(void)
{
	const struct timespec nap = { .tv_nsec = DUO_NAP_NS };

	nanosleep(&nap, NULL);
}

/* True if the local transport can wake a thread, or there is none. */
bool duo_domain_peer_signals(const struct duo_domain *domain);

/*
 * Arm the endpoint's events, or the core's CQ, before a sleep; duo_ep_woken()
 * follows it. The caller must hold the lock. Return 0; -FI_EAGAIN: there are
 * events, and the caller must call duo_cq_force_poll().
 */
int duo_ep_arm(struct duo_ep *ep);
void duo_ep_woken(struct duo_ep *ep);
int duo_cq_arm_core(struct duo_cq *cq);
void duo_cq_force_poll(struct duo_cq *cq);

/*
 * Sleeps according to "ret", the result of arming:
 * - 0: sleeps until the waiter is signaled, at most for the time left and
 *   DUO_SLEEP_MS;
 * - the first -FI_EAGAIN in a row: returns at once;
 * - otherwise: naps, or yields the CPU with FI_WAIT_YIELD.
 */
void duo_waiter_sleep(const struct duo_waiter *waiter, struct duo_nap *nap,
		      int ret);

#endif /* DUO_CQ_WAIT_H */
