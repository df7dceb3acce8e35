/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Endpoints open and close on a shared AV, while addresses are inserted and
 * removed. A fi_addr must mean the same peer for all endpoints.
 */

#include "common/ft.h"

#define FT_EPS 3
#define FT_LEN 9000
#define FT_TAG 0x500

static struct ft_ep eps[FT_EPS];
static bool open_eps[FT_EPS];
static struct ft_buf tx[FT_EPS], rx[FT_EPS];
static struct ft_op txop[FT_EPS][FT_EPS][FT_MAX_RANKS];
static struct ft_op rxop[FT_EPS][FT_EPS][FT_MAX_RANKS];
/* fi_addr of endpoint k of each rank. */
static fi_addr_t addr[FT_EPS][FT_MAX_RANKS];

static size_t ft_len(int from, int to)
{
	return (from + to) % 2 ? 64 : FT_LEN;
}

static size_t ft_at(int k, int rank)
{
	return ((size_t)k * FT_MAX_RANKS + rank) * FT_LEN;
}

static int ft_seed(int from_rank, int from, int to_rank, int to)
{
	return ((from_rank * FT_EPS + from) * FT_MAX_RANKS + to_rank) * FT_EPS +
	       to;
}

/* Opens endpoint i on the shared AV. Called by all ranks. */
static void ft_join(int i)
{
	struct ft_cfg cfg = { .caps = FI_SOURCE | FI_DIRECTED_RECV };
	int r;

	cfg.share = i ? &eps[0] : NULL;
	cfg.share_av = i;
	ft_open(&eps[i], &cfg);
	ft_gather(&eps[i]);
	ft_buf_alloc(&eps[i], &tx[i], FT_EPS * FT_MAX_RANKS * FT_LEN);
	ft_buf_alloc(&eps[i], &rx[i], FT_EPS * FT_MAX_RANKS * FT_LEN);
	for (r = 0; r < FT_MAX_RANKS; r++)
		addr[i][r] = FI_ADDR_NOTAVAIL;
	open_eps[i] = true;
}

/* Checks all paths before a close: a closed endpoint has no defined path. */
static void ft_check_all(void)
{
	int i;

	ft_barrier();
	for (i = 0; i < FT_EPS; i++)
		if (open_eps[i])
			ft_check_tx(&eps[i]);
}

/* Closes endpoint i, but not the objects that it shares. */
static void ft_leave(int i)
{
	ft_barrier();
	eps[i].cfg.share = &eps[0];
	eps[i].cfg.share_av = true;
	ft_buf_free(&tx[i]);
	ft_buf_free(&rx[i]);
	ft_close_fids(&eps[i]);
	open_eps[i] = false;
}

static void ft_leave_all(void)
{
	int i;

	ft_check_all();
	for (i = FT_EPS - 1; i >= 0; i--)
		if (open_eps[i])
			ft_leave(i);
	FT_OK(fi_close(&eps[0].av->fid));
	FT_OK(fi_close(&eps[0].domain->fid));
	FT_OK(fi_close(&eps[0].fabric->fid));
	ft_barrier();
}

static void ft_insert_one(int k, int r)
{
	FT_CHECK(fi_av_insert(eps[0].av, eps[k].peer[r].name, 1, &addr[k][r],
			      0, NULL) == 1, "inserting endpoint %d of rank "
		 "%d", k, r);
	eps[k].peer[r].addr = addr[k][r];
}

static void ft_insert_ranks(int k)
{
	int r;

	for (r = 0; r < ft.opts.nranks; r++)
		ft_insert_one(k, r);
}

/* Checks that the AV has each address, and no fi_addr twice. */
static void ft_check_av(void)
{
	bool seen[256] = { false };
	char name[FT_NAME_MAX];
	size_t len;
	int k, r;

	for (k = 0; k < FT_EPS; k++) {
		for (r = 0; open_eps[k] && r < ft.opts.nranks; r++) {
			len = sizeof(name);
			FT_OK(fi_av_lookup(eps[0].av, addr[k][r], name, &len));
			FT_CHECK(!memcmp(name, eps[k].peer[r].name, len),
				 "endpoint %d of rank %d has another address",
				 k, r);
			FT_CHECK(addr[k][r] < 256 && !seen[addr[k][r]],
				 "fi_addr %lu twice",
				 (unsigned long)addr[k][r]);
			seen[addr[k][r]] = true;
		}
	}
}

static void ft_post_from(int i, int k, int r)
{
	struct ft_xfer x = {
		.buf = rx[i].ptr + ft_at(k, r), .len = FT_LEN,
		.desc = rx[i].desc, .tagged = true, .tag = FT_TAG,
		.addr = addr[k][r],
	};

	ft_rx(&eps[i], FT_RX_RECV, &x, &rxop[i][k][r]);
}

static void ft_send_to(int i, int k, int r)
{
	struct ft_xfer x = {
		.buf = tx[i].ptr + ft_at(k, r), .len = ft_len(i, k),
		.desc = tx[i].desc, .tagged = true, .tag = FT_TAG,
	};

	ft_fill(x.buf, x.len, ft_seed(ft.opts.rank, i, r, k));
	eps[i].peer[r].addr = addr[k][r];
	ft_tx(&eps[i], FT_TX_SEND, r, &x, &txop[i][k][r]);
}

static void ft_take_from(int i, int k, int r)
{
	struct ft_op *op = &rxop[i][k][r];

	ft_wait(&eps[i], op);
	FT_CHECK(op->len == ft_len(k, i), "%zu bytes", op->len);
	FT_CHECK(op->src == addr[k][r], "from fi_addr %lu, not %lu",
		 (unsigned long)op->src, (unsigned long)addr[k][r]);
	ft_verify(rx[i].ptr + ft_at(k, r), op->len,
		  ft_seed(r, k, ft.opts.rank, i), "shared_av");
}

/* Calls act for each endpoint i of this rank and endpoint k of any rank r. */
static void ft_for_all(void (*act)(int i, int k, int r))
{
	int i, k, r;

	for (i = 0; i < FT_EPS; i++)
		for (k = 0; open_eps[i] && k < FT_EPS; k++)
			for (r = 0; open_eps[k] && r < ft.opts.nranks; r++)
				act(i, k, r);
}

static void ft_await_send(int i, int k, int r)
{
	ft_wait(&eps[i], &txop[i][k][r]);
}

/* Exchanges messages of one tag: only the source selects the message. */
static void ft_talk(void)
{
	ft_check_av();
	ft_for_all(ft_post_from);
	ft_barrier();
	ft_for_all(ft_send_to);
	ft_for_all(ft_take_from);
	ft_for_all(ft_await_send);
	ft_barrier();
}

/*
 * The second endpoint opens while the first fi_addr of the AV is free, because
 * the test has removed it. No endpoint sends messages before the test inserts
 * the removed address again: efa numbers the messages to a newly inserted peer
 * from 0.
 */
static void ft_case_ep_gets_av_with_holes(void)
{
	ft_join(0);
	ft_insert_ranks(0);
	FT_OK(fi_av_remove(eps[0].av, &addr[0][0], 1, 0));
	ft_join(1);
	ft_insert_ranks(1);
	ft_insert_one(0, 0);
	ft_talk();
	ft_join(2);
	ft_insert_ranks(2);
	ft_talk();
	ft_leave_all();
}

/* For efa: a second insert must return the same fi_addr. Other cores differ. */
static void ft_case_address_inserted_twice_works(void)
{
	fi_addr_t before[FT_MAX_RANKS];
	int r;

	ft_join(0);
	ft_join(1);
	ft_insert_ranks(0);
	ft_insert_ranks(1);
	memcpy(before, addr[1], sizeof(before));
	ft_insert_ranks(1);
	for (r = 0; r < ft.opts.nranks; r++)
		FT_CHECK(before[r] == addr[1][r], "two fi_addr for one peer");
	ft_talk();
	ft_leave_all();
}

/*
 * Odd ranks send before even ranks have inserted the odd ranks' addresses. Even
 * ranks insert the addresses in another order than odd ranks.
 */
static void ft_case_unknown_senders_arrive(void)
{
	bool odd = ft.opts.rank % 2;
	int k, r, n = ft.opts.nranks;

	ft_join(0);
	ft_join(1);
	if (odd) {
		ft_insert_ranks(0);
		ft_insert_ranks(1);
	}
	ft_barrier();
	for (k = 0; odd && k < 2; k++) {
		for (r = 0; r < n; r += 2) {
			ft_send_to(0, k, r);
			ft_send_to(1, 1 - k, r);
		}
		ft_progress_for(&eps[0], 20);
	}
	ft_progress_for(&eps[1], 50);
	if (!odd) {
		ft_insert_ranks(1);
		ft_insert_ranks(0);
	}
	for (k = 0; !odd && k < 2; k++) {
		for (r = 1; r < n; r += 2) {
			ft_post_from(0, k, r);
			ft_post_from(1, k, r);
			ft_take_from(0, k, r);
			ft_take_from(1, k, r);
		}
	}
	for (k = 0; odd && k < 2; k++) {
		for (r = 0; r < n; r += 2) {
			ft_await_send(0, k, r);
			ft_await_send(1, k, r);
		}
	}
	ft_barrier();
	ft_talk();
	ft_leave_all();
}

static void ft_case_av_outlives_first_ep(void)
{
	int r;

	ft_join(0);
	ft_join(1);
	ft_insert_ranks(0);
	ft_insert_ranks(1);
	ft_talk();
	ft_check_all();
	ft_leave(0);
	for (r = 0; r < ft.opts.nranks; r++)
		FT_OK(fi_av_remove(eps[0].av, &addr[0][r], 1, 0));
	ft_talk();
	ft_leave_all();
}

/*
 * Opens and closes endpoints of one AV, one after the other. Not with tcp: it
 * sometimes hangs, or loses a message to or from the new endpoint.
 */
static void ft_case_av_serves_eps_in_turn(void)
{
	int i;

	for (i = 0; i < FT_EPS; i++) {
		ft_join(i);
		ft_insert_ranks(i);
		ft_talk();
		ft_check_all();
		if (i + 1 < FT_EPS)
			ft_leave(i);
	}
	ft_leave_all();
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "endpoint gets addresses of an AV with holes",
		  ft_case_ep_gets_av_with_holes },
		{ "messages of unknown senders arrive",
		  ft_case_unknown_senders_arrive },
		{ "AV outlives its first endpoint",
		  ft_case_av_outlives_first_ep },
	};
	static const struct ft_case in_turn[] = {
		{ "AV serves one endpoint after another",
		  ft_case_av_serves_eps_in_turn },
	};
	static const struct ft_case efa[] = {
		{ "address inserted twice reaches its peer",
		  ft_case_address_inserted_twice_works },
	};

	ft.together = true;
	if (!ft_shares_av())
		ft_skip("an AV of efa serves one endpoint");
	ft_run_cases(cases, FT_COUNT(cases));
	if (!ft_over_tcp())
		ft_run_cases(in_turn, FT_COUNT(in_turn));
	if (ft_has_prefix(ft.opts.prov, "efa"))
		ft_run_cases(efa, FT_COUNT(efa));
}

const struct ft_spec ft_spec = {
	.name = "shared_av", .nranks = 2, .run = ft_run,
};
