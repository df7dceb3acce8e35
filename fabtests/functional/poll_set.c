/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A poll set of two CQs and two counters. Ranks send to each other, and read a
 * CQ or counter only if fi_poll() has returned its context. If fi_poll() misses
 * an event, the test waits until its time limit, and fails.
 */

#include <sched.h>

#include "common/ft.h"

#define FT_BUF ((size_t)200000)
#define FT_MEMBERS 4

enum { FT_TX, FT_RX, FT_SIDES };

static struct ft_ep e;
static struct fid_poll *set;
static struct ft_buf tx, rx[FT_MAX_RANKS];
static struct ft_op tx_op[FT_MAX_RANKS], rx_op[FT_MAX_RANKS];
static uint64_t ended[FT_SIDES];	/* completions that were read */
static uint64_t counted[FT_SIDES];	/* values of the counters */

static void ft_read_entries(struct fid_cq *cq, int side)
{
	struct fi_cq_tagged_entry entry[4];
	ssize_t i, n = fi_cq_read(cq, entry, FT_COUNT(entry));

	/* only bare cores may return contexts without an event */
	if (n == -FI_EAGAIN && !ft_wraps())
		return;
	FT_CHECK(n > 0, "fi_cq_read after fi_poll: %zd", n);
	for (i = 0; i < n; i++) {
		FT_CHECK(entry[i].flags & (side == FT_TX ? FI_SEND : FI_RECV),
			 "flags 0x%lx in the CQ of the %s",
			 (unsigned long)entry[i].flags,
			 side == FT_TX ? "sends" : "receives");
		atomic_fetch_add(&((struct ft_op *)entry[i].op_context)->done,
				 1);
	}
	ended[side] += n;
}

/* Calls fi_poll() and reads what it returns. Returns the number of contexts. */
static int ft_poll(void)
{
	void *context[FT_MEMBERS];
	int i, n = set->ops->poll(set, context, FT_MEMBERS);

	FT_CHECK(n >= 0 && n <= FT_MEMBERS, "fi_poll: %d", n);
	for (i = 0; i < n; i++) {
		if (context[i] == &e.txcq)
			ft_read_entries(e.txcq, FT_TX);
		else if (context[i] == &e.rxcq)
			ft_read_entries(e.rxcq, FT_RX);
		else if (context[i] == &e.tx_cntr)
			counted[FT_TX] = fi_cntr_read(e.tx_cntr);
		else if (context[i] == &e.rx_cntr)
			counted[FT_RX] = fi_cntr_read(e.rx_cntr);
		else
			FT_DIE("fi_poll: context %p", context[i]);
	}
	return n;
}

/* Checks that fi_poll() returns no context. Cores alone may return some. */
static void ft_quiet(const char *when)
{
	int i, n;

	ft_poll();	/* a counter may change before its read */
	for (i = 0; i < 100; i++) {
		n = ft_poll();
		FT_CHECK(!n || !ft_wraps(), "%s: %d events", when, n);
	}
}

static void ft_until(uint64_t want)
{
	while (ended[FT_TX] < want || ended[FT_RX] < want ||
	       counted[FT_TX] < want || counted[FT_RX] < want)
		if (!ft_poll())
			sched_yield();
	FT_CHECK(ended[FT_TX] == want && ended[FT_RX] == want &&
		 counted[FT_TX] == want && counted[FT_RX] == want,
		 "%lu sends and %lu receives ended, %lu and %lu are counted, "
		 "not %lu", (long)ended[FT_TX], (long)ended[FT_RX],
		 (long)counted[FT_TX], (long)counted[FT_RX], (long)want);
}

static void ft_round(int round, size_t len)
{
	struct ft_xfer x = { .tagged = true };
	int r, n = ft.opts.nranks;

	for (r = 0; r < n; r++) {
		if (r == ft.opts.rank)
			continue;
		x = (struct ft_xfer) {
			.buf = rx[r].ptr, .len = FT_BUF, .desc = rx[r].desc,
			.tag = r, .tagged = true, .addr = FI_ADDR_UNSPEC,
		};
		ft_rx(&e, FT_RX_RECV, &x, &rx_op[r]);
	}
	ft_quiet("before the sends");
	ft_barrier();
	ft_fill(tx.ptr, len, ft.opts.rank * 1000 + round);
	for (r = 0; r < n; r++) {
		if (r == ft.opts.rank)
			continue;
		x = (struct ft_xfer) {
			.buf = tx.ptr, .len = len, .desc = tx.desc,
			.tag = ft.opts.rank, .tagged = true,
		};
		ft_tx(&e, FT_TX_SEND, r, &x, &tx_op[r]);
	}
	ft_until((round + 1) * (n - 1));
	ft_quiet("after the messages");
	for (r = 0; r < n; r++)
		if (r != ft.opts.rank)
			ft_verify(rx[r].ptr, len, r * 1000 + round, "message");
	ft_barrier();
}

static void ft_add(struct fid *fid)
{
	FT_OK(set->ops->poll_add(set, fid, 0));
}

static void ft_case_poll_returns_members_with_events(void)
{
	static const size_t lens[] = { 1, 500, 30000, FT_BUF };
	int round, rounds = ft.opts.quick ? 8 : 100;

	for (round = 0; round < rounds; round++)
		ft_round(round, lens[round % FT_COUNT(lens)]);
}

static void ft_case_deleted_members_are_not_returned(void)
{
	const uint64_t before = counted[FT_RX];

	FT_OK(fi_cntr_add(e.tx_cntr, 1));
	FT_OK(fi_cntr_add(e.rx_cntr, 1));
	FT_OK(set->ops->poll_del(set, &e.tx_cntr->fid, 0));
	while (counted[FT_RX] == before)
		ft_poll();
	ft_quiet("without the counter of sends");
}

static void ft_run(void)
{
	static const struct ft_cfg cfg = {
		.counters = true, .separate_cqs = true, .raw = true,
	};
	static const struct ft_case cases[] = {
		{ "fi_poll returns members with events",
		  ft_case_poll_returns_members_with_events },
		{ "fi_poll does not return deleted members",
		  ft_case_deleted_members_are_not_returned },
	};
	struct fi_poll_attr attr = { 0 };
	int r;

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_buf_alloc(&e, &tx, FT_BUF);
	for (r = 0; r < ft.opts.nranks; r++)
		ft_buf_alloc(&e, &rx[r], FT_BUF);
	/* the functions of fi_poll(3) are deprecated */
	FT_OK(e.domain->ops->poll_open(e.domain, &attr, &set));
	ft_add(&e.txcq->fid);
	ft_add(&e.rxcq->fid);
	ft_add(&e.tx_cntr->fid);
	ft_add(&e.rx_cntr->fid);
	ft_run_cases(cases, FT_COUNT(cases));
	FT_OK(fi_close(&set->fid));
	ft_buf_free(&tx);
	for (r = 0; r < ft.opts.nranks; r++)
		ft_buf_free(&rx[r]);
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "poll_set", .nranks = 4, .min_ranks = 2, .run = ft_run,
};
