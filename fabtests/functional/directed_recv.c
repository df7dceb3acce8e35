/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Directed receives of rank 0 for several senders. They are posted before or
 * after the messages arrive, and before or after the sender's address is
 * inserted.
 */

#include "common/ft.h"

#define FT_MSGS 20
#define FT_LEN 6000
#define FT_TAG 9

static struct ft_ep e;
static struct ft_buf buf;
static struct ft_op op[FT_MAX_RANKS][FT_MSGS];

static size_t ft_len(int i)
{
	return i % 3 == 2 ? FT_LEN : 8 + i;
}

static struct ft_xfer ft_at(int rank, int i, bool tagged)
{
	struct ft_xfer x = {
		.buf = buf.ptr + ((size_t)rank * FT_MSGS + i) * FT_LEN,
		.len = FT_LEN, .desc = buf.desc, .tagged = tagged,
		.tag = FT_TAG, .addr = e.peer[rank].addr,
	};

	return x;
}

static void ft_send_all(bool tagged)
{
	struct ft_xfer x;
	int i;

	for (i = 0; i < FT_MSGS; i++) {
		x = ft_at(ft.opts.rank, i, tagged);
		x.len = ft_len(i);
		ft_fill(x.buf, x.len, ft.opts.rank * 100 + i);
		ft_tx(&e, FT_TX_SEND, 0, &x, &op[0][i]);
	}
}

static void ft_wait_sends(void)
{
	int i;

	for (i = 0; i < FT_MSGS; i++)
		ft_wait(&e, &op[0][i]);
}

static void ft_post(int rank, bool tagged)
{
	struct ft_xfer x;
	int i;

	for (i = 0; i < FT_MSGS; i++) {
		x = ft_at(rank, i, tagged);
		ft_rx(&e, FT_RX_RECV, &x, &op[rank][i]);
	}
}

static void ft_take(int rank)
{
	int i;

	for (i = 0; i < FT_MSGS; i++) {
		ft_wait(&e, &op[rank][i]);
		FT_CHECK(op[rank][i].len == ft_len(i), "%zu bytes",
			 op[rank][i].len);
		ft_verify(buf.ptr + ((size_t)rank * FT_MSGS + i) * FT_LEN,
			  ft_len(i), rank * 100 + i, "directed receive");
	}
}

static void ft_posted_before(bool tagged)
{
	int r, n = ft.opts.nranks;

	for (r = n - 1; !ft.opts.rank && r > 0; r--)
		ft_post(r, tagged);
	ft_barrier();
	if (ft.opts.rank) {
		ft_send_all(tagged);
		ft_wait_sends();
	}
	for (r = 1; !ft.opts.rank && r < n; r++)
		ft_take(r);
}

/* Posts receives after the messages have arrived, last sender's first. */
static void ft_posted_after(bool tagged)
{
	int r, n = ft.opts.nranks;

	if (ft.opts.rank)
		ft_send_all(tagged);
	ft_barrier();
	ft_progress_for(&e, 50);
	for (r = n - 1; !ft.opts.rank && r > 0; r--) {
		ft_post(r, tagged);
		ft_take(r);
	}
	if (ft.opts.rank)
		ft_wait_sends();
}

/* Each sender's message must match only the receive that names this sender. */
static void ft_in_turn(bool tagged)
{
	int r, s, n = ft.opts.nranks;

	for (r = 1; !ft.opts.rank && r < n; r++)
		ft_post(r, tagged);
	for (s = n - 1; s > 0; s--) {
		ft_barrier();
		if (ft.opts.rank == s) {
			ft_send_all(tagged);
			ft_wait_sends();
		}
		if (ft.opts.rank)
			continue;
		ft_take(s);
		for (r = 1; r < s; r++)
			FT_CHECK(!atomic_load(&op[r][0].done),
				 "rank %d's receive matched rank %d's message", r,
				 s);
	}
}

#define FT_BOTH(fn, tagged, untagged) \
	static void tagged(void) \
	{ \
		fn(true); \
	} \
	static void untagged(void) \
	{ \
		fn(false); \
	}

FT_BOTH(ft_posted_before, ft_case_early_tagged_recvs_match,
	ft_case_early_untagged_recvs_match)
FT_BOTH(ft_posted_after, ft_case_late_tagged_recvs_match,
	ft_case_late_untagged_recvs_match)
FT_BOTH(ft_in_turn, ft_case_tagged_recvs_match_in_turn,
	ft_case_untagged_recvs_match_in_turn)

static void ft_open_all(bool insert)
{
	struct ft_cfg cfg = { .caps = FI_DIRECTED_RECV };

	ft_open(&e, &cfg);
	if (insert)
		ft_exchange(&e);
	else
		ft_gather(&e);
	ft_buf_alloc(&e, &buf, (size_t)ft.opts.nranks * FT_MSGS * FT_LEN);
}

static void ft_close_all(void)
{
	ft_barrier();
	ft_buf_free(&buf);
	ft_close(&e);
}

static void ft_case_recvs_match_late_sources(void)
{
	int r;

	ft_open_all(false);
	if (ft.opts.rank) {
		ft_insert(&e, 0);
		ft_send_all(true);
	}
	ft_barrier();
	ft_progress_for(&e, 100);
	for (r = ft.opts.nranks - 1; r >= 0; r--)
		if (!ft.opts.rank)
			ft_insert(&e, r);
	for (r = 1; !ft.opts.rank && r < ft.opts.nranks; r++) {
		ft_post(r, true);
		ft_take(r);
	}
	if (ft.opts.rank)
		ft_wait_sends();
	ft_close_all();
}

static void ft_run(void)
{
	static const struct ft_case tagged[] = {
		{ "tagged receives posted early match their sources",
		  ft_case_early_tagged_recvs_match },
		{ "tagged receives posted late match their sources",
		  ft_case_late_tagged_recvs_match },
		{ "tagged receives match one source after another",
		  ft_case_tagged_recvs_match_in_turn },
	};
	static const struct ft_case msg[] = {
		{ "untagged receives posted early match their sources",
		  ft_case_early_untagged_recvs_match },
		{ "untagged receives posted late match their sources",
		  ft_case_late_untagged_recvs_match },
		{ "untagged receives match one source after another",
		  ft_case_untagged_recvs_match_in_turn },
	};
	static const struct ft_case late[] = {
		{ "receives match sources that are inserted late",
		  ft_case_recvs_match_late_sources },
	};

	ft_open_all(true);
	ft_run_cases(tagged, FT_COUNT(tagged));
	if (ft_directs_untagged(&e))
		ft_run_cases(msg, FT_COUNT(msg));
	ft_close_all();
	/* sockets loses the source of messages that arrive before the insert */
	if (!ft_has_prefix(ft.opts.prov, "sockets"))
		ft_run_cases(late, FT_COUNT(late));
}

const struct ft_spec ft_spec = {
	.name = "directed_recv", .nranks = 3, .min_ranks = 2, .run = ft_run,
};
