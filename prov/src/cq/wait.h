/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What waiting for completions and for counters have in common: wait.c. */
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

/* A peer of near that closes rings no bell: so often it is looked for. */
#define DUO_SLEEP_MS 1000

/* A blocking call: it polls, sleeps, and naps where nobody signals. */
#define DUO_SPIN_NS 50000	/* of a blocking call before it sleeps */
#define DUO_NAP_NS 50000	/* between polls after that */

struct duo_nap {
	uint64_t start, waited;	/* ns */
	int timeout;		/* ms; negative: none */
	int refused;		/* sleeps in a row */
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

/* Has it polled for long enough, as of the last duo_nap_over()? */
static inline bool duo_nap_due(const struct duo_nap *nap)
{
	return nap->waited >= DUO_SPIN_NS;
}

/* Of the timeout, rounded up: it must not end a little early for ever. */
static inline int duo_nap_left_ms(const struct duo_nap *nap)
{
	return nap->timeout - (int) (nap->waited / 1000000);
}

static inline void duo_nap(void)
{
	const struct timespec nap = { .tv_nsec = DUO_NAP_NS };

	nanosleep(&nap, NULL);
}

/* Who carries local messages can wake who sleeps. */
bool duo_domain_peer_signals(const struct duo_domain *domain);

/*
 * Before and after sleeping for what the endpoint does, under the lock.
 * -FI_EAGAIN: something has come; duo_cq_force_poll() has the next polls look.
 */
int duo_ep_arm(struct duo_ep *ep);
void duo_ep_woken(struct duo_ep *ep);
int duo_cq_arm_core(struct duo_cq *cq);
void duo_cq_force_poll(struct duo_cq *cq);

/*
 * Sleeps: ret is 0, until it rings or the time is over, DUO_SLEEP_MS at most;
 * -FI_EAGAIN, not at all, as something has come; else a nap, as nobody signals.
 */
void duo_waiter_sleep(const struct duo_waiter *waiter, struct duo_nap *nap,
		      int ret);

#endif /* DUO_CQ_WAIT_H */
