/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Small operations of initiator a, on the fast path and on the slow path */
#ifndef NEAR_RMA_SMALL_SIDE_H
#define NEAR_RMA_SMALL_SIDE_H

#include "near/rma/inline.h"
#include "rma_side.h"

#define OTHER_KEY 77

static uint64_t operand, was;

struct small {
	struct near_rma_args args;
	void *buf, *result;
};

static inline struct small call(enum near_verb verb)
{
	return (struct small) {
		.args = {
			.verb = verb, .len = 8, .addr = SIDE_START,
			.key = SIDE_KEY, .cookie = local, .about = 1,
		},
		.buf = local,
	};
}

static inline struct small adding(void)
{
	struct small fetch = call(NEAR_FETCH);

	operand = 5;
	fetch.buf = &operand;
	fetch.result = &was;
	fetch.args.op = NEAR_SUM;
	fetch.args.type = NEAR_UINT64;
	return fetch;
}

/* Tries the fast path. Returns false if it is excluded: nothing has changed. */
static inline bool try(struct small what)
{
	const struct iovec iov = { what.buf, what.args.len };
	const struct iovec to = { what.result, what.args.len };

	what.args.local = (struct near_rma_bufs) { &iov, 1, NULL };
	if (what.result)
		what.args.result = (struct near_rma_bufs) { &to, 1, NULL };
	return near_rma_is_small(&what.args) &&
	       near_rma_small(a.rig->port, to_b, &what.args);
}

static inline bool go(struct small what)
{
	to_b->rma->skip = 0;
	return try(what);
}

/* Calls near_rma(): the slow path, which searches the key. */
static inline void usual(enum near_verb verb, uint64_t key)
{
	const struct iovec iov = { &operand, 8 }, result = { &was, 8 };
	const struct near_rma_args args = {
		.verb = verb, .addr = SIDE_START, .key = key,
		.local = { &iov, 1 }, .result = { &result, 1 }, .len = 8,
		.op = verb == NEAR_FETCH ? NEAR_SUM : 0,
		.type = verb == NEAR_FETCH ? NEAR_UINT64 : 0,
	};

	ck_assert_int_ge(near_rma(a.rig->port, to_b, &args), 0);
}

static inline void both_poll(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		rig_poll(b.rig, 1);
		rig_poll(a.rig, 1);
	}
}

static inline void setup_as(bool ring)
{
	side_setup_direct();
	usual(NEAR_READ, SIDE_KEY);
	to_b->rma->skip = 0;
	operand = 0;
	rig_fill(local, SIDE_LARGE, 7);
	if (!ring)
		return;
	usual(NEAR_FETCH, SIDE_KEY);	/* b gets a ring to a for the reply */
	both_poll();
	ck_assert(!near_rma_busy(to_b));
}

static inline void setup(void)
{
	setup_as(true);
}

static inline void setup_without(void)
{
	setup_as(false);
}

#define rma_of(side) ((side)->rig->port->rma)

static inline struct near_peer *to_a(void)
{
	return near_peer_find(b.rig->port, &a.rig->addr);
}

#endif /* NEAR_RMA_SMALL_SIDE_H */
