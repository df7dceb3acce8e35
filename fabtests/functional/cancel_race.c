/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 0 posts a receive and cancels it while rank 1 sends. The receive must
 * end exactly once. The message must be in this receive, or else in the next.
 *
 * After two trials in a fixed order, the cancel races with the message: rank 0
 * waits a random time before the cancel. The maximum of that time adapts, so
 * that both results occur.
 */

#include "common/ft.h"

enum ft_trial {
	FT_CANCEL_FIRST,
	FT_MESSAGE_FIRST,
	FT_RACES,		/* first of the trials with a race */
};

struct ft_race {
	size_t len;
	bool tagged;
	bool directed;
};

static struct ft_ep e;
static struct ft_buf buf;
static int canceled, completed;
static unsigned int max_wait_ns;	/* longest wait before the cancel, ns */

static void ft_spin(unsigned int upto_ns, bool progress)
{
	uint64_t end = ft_now_ns() + ft_rand(upto_ns);

	while (ft_now_ns() < end)
		if (progress)
			ft_progress(&e);
}

static void ft_race_send(const struct ft_race *r, int i)
{
	struct ft_xfer x = { .buf = buf.ptr, .len = r->len, .desc = buf.desc,
			     .tagged = r->tagged, .tag = i };
	struct ft_op op = { 0 };

	ft_fill(buf.ptr, r->len, i);
	ft_barrier();
	if (i == FT_CANCEL_FIRST)
		ft_barrier();
	else
		ft_spin(100000, false);
	ft_tx(&e, FT_TX_SEND, 0, &x, &op);
	ft_wait(&e, &op);
	ft_barrier();
}

/* Cancels the receive, and waits until it has ended. */
static void ft_race_cancel(struct ft_op *first, int i)
{
	if (i == FT_MESSAGE_FIRST)
		ft_wait_any(&e, first);
	else if (i >= FT_RACES)
		ft_spin(max_wait_ns, true);
	fi_cancel(&e.ep->fid, &first->ctx);
	ft_wait_any(&e, first);
	FT_CHECK(!first->err || first->err == FI_ECANCELED, "%d (%s)",
		 first->err, fi_strerror(first->err));
	FT_CHECK(i >= FT_RACES ||
		 (i == FT_CANCEL_FIRST) == (first->err == FI_ECANCELED),
		 "trial %d: %d (%s)", i, first->err, fi_strerror(first->err));
	if (i == FT_CANCEL_FIRST)
		ft_barrier();
}

static void ft_race_recv(const struct ft_race *r, int i)
{
	struct ft_xfer x = {
		.buf = buf.ptr, .len = r->len, .desc = buf.desc,
		.tagged = r->tagged, .tag = i,
		.addr = r->directed ? e.peer[1].addr : FI_ADDR_UNSPEC,
	};
	struct ft_op first = { 0 }, second = { 0 };

	memset(buf.ptr, 0, 2 * r->len);
	ft_rx(&e, FT_RX_RECV, &x, &first);
	ft_barrier();
	ft_race_cancel(&first, i);
	if (first.err) {
		canceled++;
		max_wait_ns += max_wait_ns / 4;
		x.buf = buf.ptr + r->len;
		ft_rx(&e, FT_RX_RECV, &x, &second);
		ft_wait(&e, &second);
		FT_CHECK(second.len == r->len, "%zu bytes", second.len);
	} else {
		completed++;
		max_wait_ns -= max_wait_ns / 4;
		FT_CHECK(first.len == r->len, "%zu bytes", first.len);
	}
	ft_verify(x.buf, r->len, i, first.err ? "after cancel" : "won");
	ft_barrier();
	/* a second completion of "first" would fail the test here */
	ft_progress(&e);
	FT_CHECK(atomic_load(&first.done) == 1, "ended twice");
}

static void ft_run_race(struct ft_race r)
{
	int i, trials = ft.opts.quick ? 100 : 500;

	if (r.len > 100000)
		trials /= 4;
	canceled = completed = 0;
	max_wait_ns = 150000;
	ft_rand_seed(ft.opts.rank);
	for (i = 0; i < trials; i++) {
		if (ft.opts.rank)
			ft_race_send(&r, i);
		else
			ft_race_recv(&r, i);
	}
	if (!ft.opts.rank)
		printf("%s: %d canceled, %d completed\n", ft.phase, canceled,
		       completed);
}

#define FT_RACE(fn, ...) \
	static void fn(void) \
	{ \
		ft_run_race((struct ft_race){ __VA_ARGS__ }); \
	}

FT_RACE(ft_tagged_8, 8, true, false)
FT_RACE(ft_tagged_8k, 8192, true, false)
FT_RACE(ft_tagged_1m, 1 << 20, true, false)
FT_RACE(ft_tagged_8_directed, 8, true, true)
FT_RACE(ft_msg_8, 8, false, false)
FT_RACE(ft_msg_8k, 8192, false, false)
FT_RACE(ft_msg_1m, 1 << 20, false, false)
FT_RACE(ft_msg_8_directed, 8, false, true)

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "tagged, 8 B", ft_tagged_8 },
		{ "tagged, 8 KiB", ft_tagged_8k },
		{ "tagged, 1 MiB", ft_tagged_1m },
		{ "tagged, 8 B, directed", ft_tagged_8_directed },
		{ "msg, 8 B", ft_msg_8 },
		{ "msg, 8 KiB", ft_msg_8k },
		{ "msg, 1 MiB", ft_msg_1m },
	};
	static const struct ft_case directed[] = {
		{ "msg, 8 B, directed", ft_msg_8_directed },
	};
	struct ft_cfg cfg = { .caps = FI_DIRECTED_RECV };

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_buf_alloc(&e, &buf, 2 << 20);
	ft_run_cases(cases, FT_COUNT(cases));
	if (ft_cancels_directed(&e))
		ft_run_cases(directed, FT_COUNT(directed));
	ft_buf_free(&buf);
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "cancel_race", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
