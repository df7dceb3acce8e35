/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "common/ft.h"
#include "pingpong.h"

#define FT_TAG 0x1234
#define FT_ALL_VARIANTS_UP_TO 4096
#define FT_LAT_WARMUP 200

struct ft_pp {
	struct ft_ep e;
	struct ft_buf tx;
	struct ft_buf rx;
	struct ft_op txop;
	struct ft_op rxop;
	bool tagged;
	unsigned int count;
	int peer;
};

static struct ft_pp pp;

/*
 * Stores the k-th message size: first 0, then 2^i - 1, 2^i and 2^i + 1 for
 * ascending i. Returns false if that size is larger than the option -S permits.
 */
static bool ft_size(int k, size_t *size)
{
	if (!k) {
		*size = 0;
		return true;
	}
	*size = ((size_t)1 << (k - 1) / 3) + (k - 1) % 3 - 1;
	return *size <= ft.opts.max_size;
}

static void ft_pp_open(bool tagged)
{
	struct ft_cfg cfg = { .threading = FI_THREAD_DOMAIN };

	pp.tagged = tagged;
	pp.peer = !ft.opts.rank;
	ft_open(&pp.e, &cfg);
	ft_exchange(&pp.e);
	if (ft.opts.max_size > pp.e.info->ep_attr->max_msg_size)
		ft.opts.max_size = pp.e.info->ep_attr->max_msg_size;
	ft_buf_alloc(&pp.e, &pp.tx, ft.opts.max_size + 1);
	ft_buf_alloc(&pp.e, &pp.rx, ft.opts.max_size + 1);
}

static void ft_pp_close(void)
{
	ft_barrier();
	ft_buf_free(&pp.tx);
	ft_buf_free(&pp.rx);
	ft_close(&pp.e);
}

static void ft_pp_post(enum ft_rx how, size_t size)
{
	struct ft_xfer x = {
		.buf = pp.rx.ptr, .len = size, .desc = pp.rx.desc,
		.tagged = pp.tagged, .tag = FT_TAG, .addr = FI_ADDR_UNSPEC,
	};

	ft_rx(&pp.e, how, &x, &pp.rxop);
}

static void ft_pp_send(enum ft_tx how, size_t size, unsigned int seed)
{
	struct ft_xfer x = {
		.buf = pp.tx.ptr, .len = size, .desc = pp.tx.desc,
		.tagged = pp.tagged, .tag = FT_TAG,
		.data = 0xabc00000u + seed,
	};

	ft_fill(pp.tx.ptr, size, seed);
	ft_tx(&pp.e, how, pp.peer, &x, &pp.txop);
	/* an inject has copied the buffer: memset() changes no message */
	if (ft_tx_is_inject(how))
		memset(pp.tx.ptr, 0xee, size);
}

static void ft_pp_check(enum ft_tx how, size_t size, unsigned int seed)
{
	struct ft_op *op = &pp.rxop;

	ft_wait(&pp.e, op);
	FT_CHECK(op->len == size, "%s: %zu bytes arrived, not %zu",
		 ft_tx_name[how], op->len, size);
	FT_CHECK(op->flags & FI_RECV, "a receive's flags are 0x%lx",
		 (unsigned long)op->flags);
	if (pp.tagged)
		FT_CHECK(op->tag == FT_TAG, "tag 0x%lx",
			 (unsigned long)op->tag);
	if (ft_tx_has_data(how))
		FT_CHECK((op->flags & FI_REMOTE_CQ_DATA || ft_no_data_flag()) &&
			 op->data == 0xabc00000u + seed,
			 "%s: flags 0x%lx, data 0x%lx", ft_tx_name[how],
			 (unsigned long)op->flags, (unsigned long)op->data);
	else
		FT_CHECK(!(op->flags & FI_REMOTE_CQ_DATA),
			 "%s: data that was not sent", ft_tx_name[how]);
	ft_verify(pp.rx.ptr, size, seed, ft_tx_name[how]);
	memset(pp.rx.ptr, 0x55, size);
}

/*
 * Exchanges expected messages: rank 0 sends first, and rank 1 replies. The
 * caller has posted rank 1's receive before rank 0 sends.
 */
static void ft_pp_expected(enum ft_tx tx, enum ft_rx rx, size_t size)
{
	unsigned int seed = ++pp.count;

	if (ft.opts.rank == 0) {
		ft_pp_post(rx, size);
		ft_pp_send(tx, size, seed);
		ft_pp_check(tx, size, seed + 7);
		ft_wait(&pp.e, &pp.txop);
	} else {
		ft_pp_check(tx, size, seed);
		ft_pp_send(tx, size, seed + 7);
		ft_wait(&pp.e, &pp.txop);
	}
}

static void ft_pp_unexpected(enum ft_tx tx, enum ft_rx rx, size_t size)
{
	unsigned int seed = ++pp.count;

	ft_pp_send(tx, size, seed + ft.opts.rank);
	ft_barrier();
	ft_progress(&pp.e);
	ft_pp_post(rx, size);
	ft_pp_check(tx, size, seed + pp.peer);
	ft_wait(&pp.e, &pp.txop);
}

/* Returns the largest size that both ranks inject: their limits may differ. */
static size_t ft_pp_inject(void)
{
	size_t mine = pp.e.info->tx_attr->inject_size, all[FT_MAX_RANKS];

	ft_allgather(&mine, sizeof(mine), all);
	return all[pp.peer] < mine ? all[pp.peer] : mine;
}

static void ft_pp_walk(void (*step)(enum ft_tx, enum ft_rx, size_t))
{
	size_t size, inject = ft_pp_inject();
	int k, tx, rx;

	for (k = 0; ft_size(k, &size); k++) {
		for (tx = 0; tx < FT_TX_COUNT; tx++) {
			if (ft_tx_is_inject(tx) && size > inject)
				continue;
			if (ft.opts.quick && size > FT_ALL_VARIANTS_UP_TO &&
			    tx != k % FT_TX_COUNT)
				continue;
			for (rx = 0; rx < FT_RX_COUNT; rx++) {
				if (size > FT_ALL_VARIANTS_UP_TO &&
				    rx != (k + tx) % FT_RX_COUNT)
					continue;
				step(tx, rx, size);
			}
		}
	}
}

static void ft_pp_prepost(enum ft_tx tx, enum ft_rx rx, size_t size)
{
	ft_barrier();
	if (ft.opts.rank == 1)
		ft_pp_post(rx, size);
	ft_barrier();
	ft_pp_expected(tx, rx, size);
}

static void ft_case_expected(void)
{
	ft_pp_walk(ft_pp_prepost);
}

static void ft_case_unexpected(void)
{
	ft_pp_walk(ft_pp_unexpected);
}

/*
 * Sends windows of 64 messages of 512 bytes, in both directions at the same
 * time.
 */
static void ft_case_windows(void)
{
	enum { WINDOW = 64, SIZE = 512 };
	static struct ft_op txop[WINDOW], rxop[WINDOW];
	int round, rounds = ft.opts.quick ? 20 : 100, i;
	struct ft_xfer x = { .len = SIZE, .tagged = pp.tagged, .tag = FT_TAG,
			     .addr = FI_ADDR_UNSPEC };

	if (WINDOW * SIZE > ft.opts.max_size)
		return;
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < WINDOW; i++) {
			x.buf = pp.rx.ptr + i * SIZE;
			x.desc = pp.rx.desc;
			ft_rx(&pp.e, FT_RX_RECV, &x, &rxop[i]);
		}
		for (i = 0; i < WINDOW; i++) {
			x.buf = pp.tx.ptr + i * SIZE;
			x.desc = pp.tx.desc;
			ft_fill(x.buf, SIZE, round + i);
			ft_tx(&pp.e, FT_TX_SEND, pp.peer, &x, &txop[i]);
		}
		for (i = 0; i < WINDOW; i++) {
			ft_wait(&pp.e, &txop[i]);
			ft_wait(&pp.e, &rxop[i]);
			ft_verify(pp.rx.ptr + i * SIZE, SIZE, round + i,
				  "window");
		}
	}
}

void ft_pingpong(bool tagged)
{
	static const struct ft_case cases[] = {
		{ "expected", ft_case_expected },
		{ "unexpected", ft_case_unexpected },
		{ "windows", ft_case_windows },
	};

	ft_pp_open(tagged);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_pp_close();
}

static int ft_cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void ft_lat_round(size_t size, bool first)
{
	enum ft_tx how = size <= pp.e.info->tx_attr->inject_size ?
			 FT_TX_INJECT : FT_TX_SEND;
	struct ft_xfer x = {
		.buf = pp.tx.ptr, .len = size, .desc = pp.tx.desc,
		.tagged = pp.tagged, .tag = FT_TAG,
	};

	if (first || ft.opts.rank == 0)
		ft_pp_post(FT_RX_RECV, size);
	if (first)
		ft_barrier();
	if (ft.opts.rank == 0)
		ft_tx(&pp.e, how, pp.peer, &x, &pp.txop);
	while (!atomic_load(&pp.rxop.done))
		ft_progress(&pp.e);
	if (ft.opts.rank == 1) {
		ft_pp_post(FT_RX_RECV, size);
		ft_tx(&pp.e, how, pp.peer, &x, &pp.txop);
	}
	while (!atomic_load(&pp.txop.done))
		ft_progress(&pp.e);
}

static void ft_lat_size(size_t size, uint64_t *ns, int iters)
{
	uint64_t start;
	int i;

	for (i = 0; i < FT_LAT_WARMUP; i++)
		ft_lat_round(size, i == 0);
	for (i = 0; i < iters; i++) {
		start = ft_now_ns();
		ft_lat_round(size, false);
		ns[i] = ft_now_ns() - start;
	}
	/* rank 1 has posted one more receive: send a message for it */
	if (ft.opts.rank == 0) {
		struct ft_xfer x = { .buf = pp.tx.ptr, .desc = pp.tx.desc,
				     .tagged = pp.tagged, .tag = FT_TAG };

		ft_tx(&pp.e, FT_TX_SEND, 1, &x, &pp.txop);
		ft_wait(&pp.e, &pp.txop);
		qsort(ns, iters, sizeof(ns[0]), ft_cmp_u64);
		printf("%zu %.2f\n", size, ns[iters / 2] / 2000.0);
	} else {
		ft_wait(&pp.e, &pp.rxop);
	}
	ft_barrier();
}

void ft_latency(bool tagged)
{
	static uint64_t ns[10000];
	size_t size;
	int iters;

	ft_pp_open(tagged);
	for (size = 8; size <= ft.opts.max_size; size *= 8) {
		iters = ft.opts.quick ? 500 : 5000;
		if (size > 65536)
			iters = 100;
		ft_lat_size(size, ns, iters);
	}
	ft_pp_close();
}
