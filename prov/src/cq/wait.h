/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Common parts of waiting for completions and for counters: wait.c. */
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

/* A blocking call polls, then sleeps, or naps if a source cannot signal. */
#define DUO_SPIN_NS 50000	/* polling before the first sleep */
#define DUO_NAP_NS 50000	/* sleep between polls */

struct duo_nap {
	uint64_t start, waited;	/* time of the start, duration; ns */
	int timeout;		/* ms; negative: none */
	int refused;		/* consecutive sleeps with -FI_EAGAIN */
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

/* True if the call had polled for DUO_SPIN_NS at the last duo_nap_over(). */
static inline bool duo_nap_due(const struct duo_nap *nap)
{
	return nap->waited >= DUO_SPIN_NS;
}

/* Returns the time left, rounded up: 0 ms would spin until the end. */
static inline int duo_nap_left_ms(const struct duo_nap *nap)
{
	return nap->timeout - (int) (nap->waited / 1000000);
}

static inline void duo_nap(void)
{
	const struct timespec nap = { .tv_nsec = DUO_NAP_NS };

	nanosleep(&nap, NULL);
}

/* True if the local transport can wake a sleeping thread, or there is none. */
bool duo_domain_peer_signals(const struct duo_domain *domain);

/*
 * Called before and after a sleep on events of the endpoint, under the lock.
 * -FI_EAGAIN: there are events; the caller then calls duo_cq_force_poll(), and
 * the next polls poll both paths.
 */
int duo_ep_arm(struct duo_ep *ep);
void duo_ep_woken(struct duo_ep *ep);
int duo_cq_arm_core(struct duo_cq *cq);
void duo_cq_force_poll(struct duo_cq *cq);

/*
 * Sleeps as ret, the result of arming, requires. 0: until the waiter rings or
 * the time is over, at most DUO_SLEEP_MS. -FI_EAGAIN: not at all the first
 * time. Otherwise a nap, because not all sources can signal.
 */
void duo_waiter_sleep(const struct duo_waiter *waiter, struct duo_nap *nap,
		      int ret);

#endif /* DUO_CQ_WAIT_H */
