/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An AV outlives its endpoint and hundreds of peers. Rank 0 keeps its AV, and
 * the other ranks open one endpoint after the other.
 *
 * libfabric's shm has 256 entries for peers, frees none, and does not detect
 * that all are used: it would deliver to a wrong process. So ofi_duo lets only
 * the first 250 endpoints use shm. near has no such limit.
 */

#include "common/ft.h"

/* number of endpoints that may use shm: DUO_SHM_ENDPOINTS */
#define FT_ENDPOINTS 250
#define FT_FIRST 140		/* number of peers of the first endpoint */
#define FT_SECOND 260		/* number of peers of the next endpoint */
#define FT_LEN 512
#define FT_TAG 0xa1

static struct ft_ep eps[2];

static void ft_trip(struct ft_ep *e, int round)
{
	struct ft_xfer x = { .tagged = true, .tag = FT_TAG, .len = FT_LEN };
	struct ft_buf tx, rx;
	struct ft_op txop, rxop;
	int other = !ft.opts.rank;

	ft_buf_alloc(e, &tx, FT_LEN);
	ft_buf_alloc(e, &rx, FT_LEN);
	ft_gather(e);
	ft_insert(e, other);
	ft_fill(tx.ptr, FT_LEN, 2 * round + ft.opts.rank);
	x.addr = e->peer[other].addr;
	x.buf = rx.ptr;
	x.desc = rx.desc;
	ft_op_reset(&rxop);
	ft_rx(e, FT_RX_RECV, &x, &rxop);
	x.buf = tx.ptr;
	x.desc = tx.desc;
	ft_op_reset(&txop);
	ft_tx(e, FT_TX_SEND, other, &x, &txop);
	ft_wait(e, &txop);
	ft_wait(e, &rxop);
	ft_verify(rx.ptr, FT_LEN, 2 * round + other, "another peer's message");
	FT_OK(fi_av_remove(e->av, &e->peer[other].addr, 1, 0));
	ft_buf_free(&tx);
	ft_buf_free(&rx);
	ft_barrier();
}

/*
 * Checks that messages of local peers came over the local path. With
 * libfabric's shm only the first FT_ENDPOINTS endpoints use this path, and
 * fewer if other programs use shm, too.
 */
static void ft_expect(struct ft_ep *e, uint64_t all)
{
	const char *peer = getenv("FI_OFI_DUO_LOCAL");
	bool shm = peer && !strcmp(peer, "shm");
	uint64_t least = shm ? 0 : all, most = shm ? FT_ENDPOINTS : all, near;
	struct fi_duo_stats stats;

	if (!e->ops)
		return;
	if (!e->self.shm || !e->peer[1].shm ||
	    strcmp(e->self.host, e->peer[1].host))
		least = most = 0;
	ft_stats(e, &stats);
	near = stats.path[FI_DUO_LOCAL].rx_msgs;
	FT_CHECK(near >= least && near <= most &&
		 near + stats.path[FI_DUO_CORE].rx_msgs == all,
		 "%lu messages over shm, %lu over the core, wanted %lu to %lu",
		 (unsigned long) near,
		 (unsigned long) stats.path[FI_DUO_CORE].rx_msgs,
		 (unsigned long) least, (unsigned long) most);
}

static void ft_stay(int rounds, int first, struct ft_ep *e)
{
	int i;

	for (i = 0; i < rounds; i++)
		ft_trip(e, first + i);
	ft_expect(e, rounds);
}

/* Closes the endpoint, but not its AV, domain and fabric. */
static void ft_leave_ep(struct ft_ep *e)
{
	struct ft_cfg cfg = e->cfg;

	e->cfg.share = e;
	e->cfg.share_av = true;
	ft_close_fids(e);
	e->cfg = cfg;
}

static void ft_run_stay(void)
{
	const struct ft_cfg first = { .caps = FI_SOURCE | FI_DIRECTED_RECV };
	struct ft_cfg second = first;

	ft_open(&eps[0], &first);
	ft_stay(FT_FIRST, 0, &eps[0]);
	ft_leave_ep(&eps[0]);
	second.share = &eps[0];
	second.share_av = true;
	ft_open(&eps[1], &second);
	ft_stay(FT_SECOND, FT_FIRST, &eps[1]);
	ft_close_fids(&eps[1]);
	FT_OK(fi_close(&eps[0].av->fid));
	FT_OK(fi_close(&eps[0].domain->fid));
	FT_OK(fi_close(&eps[0].fabric->fid));
}

/*
 * Opens each endpoint before it closes the previous one, so that their
 * addresses differ. With equal addresses, tcp would send over the connection of
 * the old endpoint, and report success (contrib/upstream/tcp_reuse.c).
 */
static void ft_run_come(void)
{
	const struct ft_cfg cfg = { .caps = FI_SOURCE | FI_DIRECTED_RECV };
	struct ft_ep *e = NULL, *before;
	int i;

	for (i = 0; i < FT_FIRST + FT_SECOND; i++) {
		before = e;
		e = &eps[i % 2];
		ft_open(e, &cfg);
		if (before)
			ft_close_fids(before);
		ft_trip(e, i);
	}
	ft_close_fids(e);
}

static void ft_run(void)
{
	if (!ft_shares_av())
		ft_skip("an AV of efa serves one endpoint");
	if (ft.opts.rank)
		ft_run_come();
	else
		ft_run_stay();
	ft_barrier();
}

const struct ft_spec ft_spec = {
	.name = "av_life", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
