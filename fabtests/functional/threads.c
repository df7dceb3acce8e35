/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Several threads per rank, at each threading level that lets them: on one
 * endpoint (FI_THREAD_SAFE), on an endpoint and CQ each in one domain
 * (FI_THREAD_COMPLETION), on a domain each (FI_THREAD_DOMAIN). Thread t of a
 * rank exchanges messages with thread t of the other.
 */

#include <pthread.h>

#include "common/ft.h"

#define FT_THREADS 4
#define FT_WINDOW 8
#define FT_LEN 6000

struct ft_worker {
	pthread_t thread;
	struct ft_ep *e;
	struct ft_buf tx, rx;
	struct ft_op txop[FT_WINDOW], rxop[FT_WINDOW];
	int id;
	int rounds;
	bool tagged;
};

static struct ft_ep eps[FT_THREADS];
static struct ft_worker worker[FT_THREADS];
static atomic_int stop;

static size_t ft_len(int i, int round)
{
	return (i + round) % 4 ? 8 + i : FT_LEN;
}

static unsigned int ft_seed(int id, int i, int round)
{
	return id * 1000 + i * 50 + round;
}

static void ft_round(struct ft_worker *w, int round)
{
	struct ft_xfer x = { .tagged = w->tagged, .tag = w->id,
			     .addr = FI_ADDR_UNSPEC };
	int i;

	for (i = 0; i < FT_WINDOW; i++) {
		x.buf = w->rx.ptr + (size_t)i * FT_LEN;
		x.desc = w->rx.desc;
		x.len = FT_LEN;
		ft_rx(w->e, FT_RX_RECV, &x, &w->rxop[i]);
	}
	for (i = 0; i < FT_WINDOW; i++) {
		x.buf = w->tx.ptr + (size_t)i * FT_LEN;
		x.desc = w->tx.desc;
		x.len = ft_len(i, round);
		ft_fill(x.buf, x.len, ft_seed(w->id, i, round));
		ft_tx(w->e, FT_TX_SEND, !ft.opts.rank, &x, &w->txop[i]);
	}
	for (i = 0; i < FT_WINDOW; i++) {
		ft_wait(w->e, &w->txop[i]);
		ft_wait(w->e, &w->rxop[i]);
		FT_CHECK(w->rxop[i].len == ft_len(i, round),
			 "thread %d: %zu bytes, not %zu", w->id,
			 w->rxop[i].len, ft_len(i, round));
		ft_verify(w->rx.ptr + (size_t)i * FT_LEN, ft_len(i, round),
			  ft_seed(w->id, i, round), "threads");
	}
}

static void *ft_work(void *arg)
{
	struct ft_worker *w = arg;
	int round;

	for (round = 0; round < w->rounds; round++)
		ft_round(w, round);
	return NULL;
}

/* Reads the same CQ all the time, and cancels what it posts itself. */
static void *ft_disturb(void *arg)
{
	struct ft_worker *w = arg;
	struct ft_op op = { 0 };
	struct ft_xfer x = { .buf = w->rx.ptr, .len = 8, .desc = w->rx.desc,
			     .tagged = true, .tag = 1u << 20,
			     .addr = FI_ADDR_UNSPEC };

	while (!atomic_load(&stop)) {
		ft_rx(w->e, FT_RX_RECV, &x, &op);
		fi_cancel(&w->e->ep->fid, &op.ctx);
		ft_wait_err(w->e, &op, FI_ECANCELED);
	}
	return NULL;
}

static void ft_start(int t, struct ft_ep *e, bool tagged, int rounds)
{
	struct ft_worker *w = &worker[t];

	w->e = e;
	w->id = t;
	w->tagged = tagged;
	w->rounds = rounds;
	ft_buf_alloc(e, &w->tx, FT_WINDOW * FT_LEN);
	ft_buf_alloc(e, &w->rx, FT_WINDOW * FT_LEN);
}

static void ft_go(int n)
{
	int t;

	ft_barrier();
	for (t = 0; t < n; t++)
		FT_CHECK(!pthread_create(&worker[t].thread, NULL, ft_work,
					 &worker[t]), "pthread_create");
	for (t = 0; t < n; t++)
		pthread_join(worker[t].thread, NULL);
	ft_barrier();
	for (t = 0; t < n; t++) {
		ft_buf_free(&worker[t].tx);
		ft_buf_free(&worker[t].rx);
	}
}

static int ft_rounds(void)
{
	return ft.opts.quick ? 50 : 500;
}

static void ft_safe(bool disturbed)
{
	struct ft_cfg cfg = { .threading = FI_THREAD_SAFE };
	struct ft_worker *extra = &worker[FT_THREADS - 1];
	int t, n = disturbed ? FT_THREADS - 1 : FT_THREADS;

	ft_open(&eps[0], &cfg);
	ft_exchange(&eps[0]);
	for (t = 0; t < n; t++)
		ft_start(t, &eps[0], true, ft_rounds());
	if (disturbed) {
		atomic_store(&stop, 0);
		ft_start(n, &eps[0], true, 0);
		FT_CHECK(!pthread_create(&extra->thread, NULL, ft_disturb,
					 extra), "pthread_create");
	}
	ft_go(n);
	if (disturbed) {
		atomic_store(&stop, 1);
		pthread_join(extra->thread, NULL);
		ft_buf_free(&extra->tx);
		ft_buf_free(&extra->rx);
	}
	ft_close(&eps[0]);
}

static void ft_each(enum fi_threading threading, bool share, bool tagged)
{
	struct ft_cfg cfg = { .threading = threading };
	int t;

	for (t = 0; t < FT_THREADS; t++) {
		cfg.share = t && share ? &eps[0] : NULL;
		ft_open(&eps[t], &cfg);
		ft_exchange(&eps[t]);
		ft_start(t, &eps[t], tagged, ft_rounds());
	}
	ft_go(FT_THREADS);
	for (t = FT_THREADS - 1; t >= 0; t--)
		ft_close(&eps[t]);
}

static void ft_case_safe(void)
{
	ft_safe(false);
}

static void ft_case_safe_disturbed(void)
{
	ft_safe(true);
}

static void ft_case_completion(void)
{
	ft_each(FI_THREAD_COMPLETION, true, true);
}

static void ft_case_completion_msg(void)
{
	ft_each(FI_THREAD_COMPLETION, true, false);
}

static void ft_case_domain(void)
{
	ft_each(FI_THREAD_DOMAIN, false, true);
}

static void ft_case_domain_msg(void)
{
	ft_each(FI_THREAD_DOMAIN, false, false);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "safe", ft_case_safe },
		{ "safe, with cancels", ft_case_safe_disturbed },
		{ "completion", ft_case_completion },
		{ "completion, msg", ft_case_completion_msg },
		{ "domain", ft_case_domain },
		{ "domain, msg", ft_case_domain_msg },
	};

	ft_run_cases(cases, FT_COUNT(cases));
}

int main(int argc, char **argv)
{
	static const struct ft_spec spec = {
		.name = "threads", .nranks = 2, .min_ranks = 2, .run = ft_run,
	};

	return ft_main(argc, argv, &spec);
}
