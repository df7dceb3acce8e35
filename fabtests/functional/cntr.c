/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * All ranks send to each other and wait by counters only: with completions,
 * with selective completion, and without a CQ. Injected messages must be
 * counted. Verifies data, counts and paths.
 */

#include "common/ft.h"

#define FT_BUF ((size_t)200000)

static struct ft_ep e;
static struct ft_buf tx, rx[FT_MAX_RANKS];
static struct ft_op tx_op[FT_MAX_RANKS], rx_op[FT_MAX_RANKS];
static uint64_t sent, received;

static size_t ft_len(int round)
{
	static const size_t lens[] = { 1, 48, 500, 5000, 30000, FT_BUF };
	size_t len = lens[round % FT_COUNT(lens)];

	return len < ft.opts.max_size ? len : ft.opts.max_size;
}

/* Posts a receive, directed or with a tag that only this source uses. */
static void ft_post(int round, int r)
{
	struct ft_xfer x = {
		.buf = rx[r].ptr, .len = FT_BUF, .desc = rx[r].desc,
		.tag = (uint64_t)round << 8 | r, .tagged = true,
		.addr = round % 3 ? e.peer[r].addr : FI_ADDR_UNSPEC,
	};

	ft_rx(&e, FT_RX_RECV, &x, &rx_op[r]);
}

static void ft_send(int round, int r)
{
	struct ft_xfer x = {
		.buf = tx.ptr, .len = ft_len(round), .desc = tx.desc,
		.tag = (uint64_t)round << 8 | ft.opts.rank, .tagged = true,
	};
	bool injects = round & 1 && x.len <= e.info->tx_attr->inject_size;

	ft_tx(&e, injects ? FT_TX_INJECT : FT_TX_SEND, r, &x, &tx_op[r]);
	if (injects)
		tx_op[r].done = 1;
}

static void ft_reached(struct fid_cntr *cntr, uint64_t count, const char *what)
{
	int ret = fi_cntr_wait(cntr, count, -1);

	FT_CHECK(!ret, "%s: fi_cntr_wait: %d (%s), at %lu of %lu", what, ret,
		 fi_strerror(-ret), (unsigned long)fi_cntr_read(cntr),
		 (unsigned long)count);
	FT_CHECK(fi_cntr_read(cntr) == count, "%s: %lu, not %lu", what,
		 (unsigned long)fi_cntr_read(cntr), (unsigned long)count);
	FT_CHECK(!fi_cntr_readerr(cntr), "%s: errors are counted", what);
}

static void ft_round(int round)
{
	int r, n = ft.opts.nranks;

	for (r = 0; r < n; r++)
		if (r != ft.opts.rank)
			ft_post(round, r);
	ft_fill(tx.ptr, ft_len(round), ft.opts.rank * 1000 + round);
	for (r = 0; r < n; r++)
		if (r != ft.opts.rank)
			ft_send(round, r);
	sent += n - 1;
	received += n - 1;
	ft_reached(e.rx_cntr, received, "receives");
	ft_reached(e.tx_cntr, sent, "sends");
	for (r = 0; r < n; r++)
		if (r != ft.opts.rank)
			ft_verify(rx[r].ptr, ft_len(round), r * 1000 + round,
				  "a counted message");
}

/* Reads the completions of the counted operations. */
static void ft_drain(void)
{
	struct fi_cq_tagged_entry entry;
	int r;

	if (e.cfg.no_cqs)
		return;
	for (r = 0; r < ft.opts.nranks && !e.cfg.raw; r++) {
		if (r == ft.opts.rank)
			continue;
		ft_wait(&e, &rx_op[r]);
		ft_wait(&e, &tx_op[r]);
	}
	FT_CHECK(!e.cfg.raw || fi_cq_read(e.txcq, &entry, 1) == -FI_EAGAIN,
		 "a completion that was not requested");
}

/* A wait for a count that is not reached must time out. */
static void ft_times_out(void)
{
	uint64_t start = ft_now_ns();

	FT_CHECK(fi_cntr_wait(e.rx_cntr, received + 1, 20) == -FI_ETIMEDOUT,
		 "the wait did not time out");
	/* near's timeouts have a resolution of 1 ms */
	FT_CHECK(ft_now_ns() - start >= 15000000, "the wait was too short");
}

static void ft_mode(const struct ft_cfg *cfg)
{
	int r, round, rounds = ft.opts.quick ? 18 : 300;

	ft_open(&e, cfg);
	ft_exchange(&e);
	sent = received = 0;
	ft_buf_alloc(&e, &tx, FT_BUF);
	for (r = 0; r < ft.opts.nranks; r++)
		ft_buf_alloc(&e, &rx[r], FT_BUF);
	for (round = 0; round < rounds; round++) {
		ft_round(round);
		ft_drain();
	}
	ft_barrier();
	ft_times_out();
	ft_buf_free(&tx);
	for (r = 0; r < ft.opts.nranks; r++)
		ft_buf_free(&rx[r]);
	ft_close(&e);
}

static void ft_case_counters_count_beside_completions(void)
{
	static const struct ft_cfg cfg = {
		.caps = FI_SOURCE | FI_DIRECTED_RECV, .counters = true,
	};

	ft_mode(&cfg);
}

static void ft_case_counters_count_without_completions(void)
{
	static const struct ft_cfg cfg = {
		.caps = FI_SOURCE | FI_DIRECTED_RECV, .counters = true,
		.raw = true, .tx_bind = FI_SELECTIVE_COMPLETION,
		.rx_bind = FI_SELECTIVE_COMPLETION,
	};

	ft_mode(&cfg);
}

/* Binds counters after fi_enable(), as Sandia OpenSHMEM does. */
static void ft_case_late_counters_count(void)
{
	static const struct ft_cfg cfg = {
		.caps = FI_SOURCE | FI_DIRECTED_RECV, .counters = true,
		.bind_late = true,
	};

	ft_mode(&cfg);
}

static void ft_case_counters_count_without_cq(void)
{
	static const struct ft_cfg cfg = {
		.caps = FI_SOURCE | FI_DIRECTED_RECV, .counters = true,
		.raw = true, .no_cqs = true,
	};

	ft_mode(&cfg);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "counters count beside completions",
		  ft_case_counters_count_beside_completions },
		{ "counters count without requested completions",
		  ft_case_counters_count_without_completions },
		{ "counters bound to an enabled endpoint count",
		  ft_case_late_counters_count },
		{ "counters count without a CQ",
		  ft_case_counters_count_without_cq },
	};
	/*
	 * the last two cases need ofi_duo: tcp alone misses counts, and other
	 * cores require a CQ
	 */
	size_t bare = ft_wraps() ? 0 : 2;

	ft_run_cases(cases, FT_COUNT(cases) - bare);
}

const struct ft_spec ft_spec = {
	.name = "cntr", .nranks = 4, .min_ranks = 2, .run = ft_run,
};
