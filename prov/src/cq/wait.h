/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Parts that waiting for completions and waiting for counters have in common:
 * wait.c.
 */
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

/*
 * Longest sleep, ms. It is limited because a near peer that closes its endpoint
 * does not ring the doorbell.
 */
#define DUO_SLEEP_MS 1000

/*
 * A blocking call polls for DUO_SPIN_NS, then sleeps until its wait object is
 * signaled. If a source of events cannot signal, the call instead sleeps for
 * DUO_NAP_NS between polls: it naps.
 */
#define DUO_SPIN_NS 50000	/* ns */
#define DUO_NAP_NS 50000	/* ns */

struct duo_nap {
	uint64_t start, waited;	/* start of the blocking call, and time since
				 * its start; ns */
	int timeout;		/* ms; negative: no timeout */
	int refused;		/* number of attempts to sleep in a row that
				 * returned -FI_EAGAIN */
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

/*
 * Returns the time left, ms, rounded up, because with 0 ms the last part of a
 * millisecond would be polled without a sleep.
 */
static inline int duo_nap_left_ms(const struct duo_nap *nap)
{
	return nap->timeout - (int) (nap->waited / 1000000);
}

static inline void duo_nap(void)
{
	const struct timespec nap = { .tv_nsec = DUO_NAP_NS };

	nanosleep(&nap, NULL);
}

/*
 * True if the local transport can wake a sleeping thread, or if there is no
 * local transport.
 */
bool duo_domain_peer_signals(const struct duo_domain *domain);

/*
 * duo_ep_arm() must be called before a sleep on events of the endpoint, and
 * duo_ep_woken() after it, with the lock held. duo_cq_arm_core() does the same
 * as duo_ep_arm() for the core's CQ. Both arm functions return 0, or -FI_EAGAIN
 * if there are events to process. The caller must then call
 * duo_cq_force_poll(), so that the next polls poll both paths.
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
