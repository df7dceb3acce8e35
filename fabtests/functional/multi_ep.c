/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Several endpoints, AVs, CQs and domains in each process. Each endpoint sends
 * to all endpoints of all ranks, including itself.
 */

#include "common/ft.h"

#define FT_EPS 3
#define FT_LEN 9000
#define FT_ALL (FT_MAX_RANKS * FT_EPS)

static struct ft_ep eps[FT_EPS];
static struct ft_buf tx[FT_EPS], rx[FT_EPS];
static struct ft_op txop[FT_EPS][FT_ALL], rxop[FT_EPS][FT_ALL];
/* address of rank r's endpoint k in the AV of this rank's endpoint i */
static fi_addr_t addr[FT_EPS][FT_MAX_RANKS][FT_EPS];

static size_t ft_len(int from, int to)
{
	return (from + to) % 3 ? 8 + from * 5 + to : FT_LEN;
}

static uint64_t ft_tag(int from, int to)
{
	return 0x10000u + from * 1000 + to;
}

static int ft_id(int rank, int k)
{
	return rank * FT_EPS + k;
}

static void ft_insert_all(struct ft_ep *e, int i, bool shared_av)
{
	int r, k;

	for (k = 0; k < FT_EPS; k++) {
		for (r = 0; r < ft.opts.nranks; r++) {
			if (shared_av && i > 0) {
				addr[i][r][k] = addr[0][r][k];
				continue;
			}
			FT_CHECK(fi_av_insert(e->av, eps[k].peer[r].name, 1,
					      &addr[i][r][k], 0, NULL) == 1,
				 "inserting endpoint %d of rank %d", k, r);
		}
	}
}

static void ft_open_all(struct ft_cfg cfg, bool share_domain)
{
	int i, r;

	for (i = 0; i < FT_EPS; i++) {
		struct ft_cfg c = cfg;

		c.share = i && share_domain ? &eps[0] : NULL;
		c.share_av = i && cfg.share_av;
		c.share_cq = i && cfg.share_cq;
		ft_open(&eps[i], &c);
		ft_gather(&eps[i]);
	}
	for (i = 0; i < FT_EPS; i++)
		ft_insert_all(&eps[i], i, cfg.share_av);
	for (i = 0; i < FT_EPS; i++) {
		for (r = 0; r < ft.opts.nranks; r++)
			eps[i].peer[r].addr = addr[i][r][i];
		ft_buf_alloc(&eps[i], &tx[i], (size_t)FT_ALL * FT_LEN);
		ft_buf_alloc(&eps[i], &rx[i], (size_t)FT_ALL * FT_LEN);
	}
}

static void ft_post_all(int i)
{
	int me = ft_id(ft.opts.rank, i), from;
	struct ft_xfer x = { .desc = rx[i].desc, .tagged = true,
			     .len = FT_LEN, .addr = FI_ADDR_UNSPEC };

	for (from = 0; from < ft.opts.nranks * FT_EPS; from++) {
		x.buf = rx[i].ptr + (size_t)from * FT_LEN;
		x.tag = ft_tag(from, me);
		ft_rx(&eps[i], FT_RX_RECV, &x, &rxop[i][from]);
	}
}

static void ft_send_all(int i)
{
	int me = ft_id(ft.opts.rank, i), r, k, to;
	struct ft_xfer x = { .desc = tx[i].desc, .tagged = true };

	for (r = 0; r < ft.opts.nranks; r++) {
		for (k = 0; k < FT_EPS; k++) {
			to = ft_id(r, k);
			x.buf = tx[i].ptr + (size_t)to * FT_LEN;
			x.len = ft_len(me, to);
			x.tag = ft_tag(me, to);
			ft_fill(x.buf, x.len, me * 77 + to);
			eps[i].peer[r].addr = addr[i][r][k];
			ft_tx(&eps[i], FT_TX_SEND, r, &x, &txop[i][to]);
			eps[i].peer[r].addr = addr[i][r][i];
		}
	}
}

/* Waits with progress on all endpoints: they send to each other. */
static void ft_finish_all(int i)
{
	int me = ft_id(ft.opts.rank, i), other;

	for (other = 0; other < ft.opts.nranks * FT_EPS; other++) {
		ft_wait(&eps[i], &txop[i][other]);
		ft_wait(&eps[i], &rxop[i][other]);
		FT_CHECK(rxop[i][other].len == ft_len(other, me),
			 "%zu bytes from endpoint %d", rxop[i][other].len,
			 other);
		ft_verify(rx[i].ptr + (size_t)other * FT_LEN,
			  ft_len(other, me), other * 77 + me, "multi_ep");
	}
}

static void ft_all_to_all(bool expected)
{
	int i;

	if (expected) {
		for (i = 0; i < FT_EPS; i++)
			ft_post_all(i);
		ft_barrier();
	}
	for (i = 0; i < FT_EPS; i++)
		ft_send_all(i);
	if (!expected) {
		ft_barrier();
		for (i = 0; i < FT_EPS; i++)
			ft_post_all(i);
	}
	for (i = 0; i < FT_EPS; i++)
		ft_finish_all(i);
	ft_barrier();
}

static void ft_try(struct ft_cfg cfg, bool share_domain)
{
	int i;

	ft_open_all(cfg, share_domain);
	ft_all_to_all(true);
	ft_all_to_all(false);
	for (i = 0; i < FT_EPS; i++)
		ft_check_tx(&eps[i]);
	ft_barrier();
	for (i = FT_EPS - 1; i >= 0; i--) {
		ft_buf_free(&tx[i]);
		ft_buf_free(&rx[i]);
		ft_close_fids(&eps[i]);
	}
	ft_barrier();
}

static void ft_case_three_domains_exchange(void)
{
	ft_try((struct ft_cfg){ .caps = 0 }, false);
}

static void ft_case_one_domain_exchanges(void)
{
	ft_try((struct ft_cfg){ .caps = 0 }, true);
}

static void ft_case_shared_av_exchanges(void)
{
	ft_try((struct ft_cfg){ .share_av = true }, true);
}

static void ft_case_shared_cq_exchanges(void)
{
	ft_try((struct ft_cfg){ .share_cq = true }, true);
}

static void ft_case_shared_av_and_cq_exchange(void)
{
	ft_try((struct ft_cfg){ .share_cq = true, .share_av = true }, true);
}

static void ft_case_av_map_exchanges(void)
{
	ft_try((struct ft_cfg){ .av_type = FI_AV_MAP }, true);
}

static void ft_case_av_table_exchanges(void)
{
	ft_try((struct ft_cfg){ .av_type = FI_AV_TABLE }, true);
}

/* Opens endpoints, exchanges messages and closes, repeatedly. */
static void ft_case_reopened_eps_exchange(void)
{
	int i, times = ft.opts.quick ? 3 : 15;

	for (i = 0; i < times; i++)
		ft_try((struct ft_cfg){ .caps = FI_SOURCE }, i & 1);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "endpoints of three domains exchange messages",
		  ft_case_three_domains_exchange },
		{ "endpoints of one domain exchange messages",
		  ft_case_one_domain_exchanges },
		{ "endpoints of one CQ exchange messages",
		  ft_case_shared_cq_exchanges },
		{ "endpoints with an AV map exchange messages",
		  ft_case_av_map_exchanges },
		{ "endpoints with an AV table exchange messages",
		  ft_case_av_table_exchanges },
		{ "reopened endpoints exchange messages",
		  ft_case_reopened_eps_exchange },
	};
	static const struct ft_case shared_av[] = {
		{ "endpoints of one AV exchange messages",
		  ft_case_shared_av_exchanges },
		{ "endpoints of one AV and CQ exchange messages",
		  ft_case_shared_av_and_cq_exchange },
	};

	ft.together = true;
	ft_run_cases(cases, FT_COUNT(cases));
	if (ft_shares_av())
		ft_run_cases(shared_av, FT_COUNT(shared_av));
}

const struct ft_spec ft_spec = {
	.name = "multi_ep", .nranks = 2, .run = ft_run,
};
