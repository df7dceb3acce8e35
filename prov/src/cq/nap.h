/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Waiting for what nobody signals: polls, and naps after a while. */
#ifndef DUO_CQ_NAP_H
#define DUO_CQ_NAP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define DUO_SPIN_NS 50000	/* of a blocking call before it sleeps */
#define DUO_NAP_NS 50000	/* between polls after that */

struct duo_nap {
	uint64_t start, waited;	/* ns */
	int timeout;		/* ms; negative: none */
	int refused;		/* sleeps in a row */
};

static inline uint64_t duo_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

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

#endif /* DUO_CQ_NAP_H */
