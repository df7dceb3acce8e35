/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Several threads per rank, at each threading level that permits them:
 *
 * FI_THREAD_SAFE          on one endpoint, or on endpoints with one CQ
 * FI_THREAD_COMPLETION    each with its endpoint and CQ, in one domain
 * FI_THREAD_DOMAIN        each with its own domain
 *
 * Thread t of one rank exchanges messages with thread t of the other. In some
 * cases, the last thread instead cancels receives, or opens and closes
 * endpoints.
 */

#include <pthread.h>

#include "common/ft.h"

#define FT_THREADS 4
#define FT_WINDOW 8
#define FT_LEN 6000
#define FT_MIN_LIVES 4	/* least number of endpoints of ft_come_and_go() */
/* largest number of these: libfabric's shm can hold 250 peers */
#define FT_MAX_LIVES 40

struct ft_worker {
	pthread_t thread;
	void *(*run)(void *worker);
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

/*
 * Thread: reads the other threads' CQ without pause, and cancels its own
 * receives.
 */
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

/*
 * Sends a message from endpoint e to itself. No other rank has inserted e. The
 * tag is used by no other endpoint: tcp 2.1 alone would deliver messages of
 * another endpoint with the same tag to e.
 */
static void ft_talk(struct ft_worker *w, struct ft_ep *e)
{
	struct ft_ep *reader = e->cfg.share_cq ? w->e : e;
	struct ft_xfer x = { .tagged = true, .tag = 1u << 21,
			     .addr = FI_ADDR_UNSPEC };

	x.len = 8;
	x.buf = w->rx.ptr;
	x.desc = w->rx.desc;
	ft_rx(e, FT_RX_RECV, &x, &w->rxop[0]);
	w->rxop[0].uncounted = true;
	x.buf = w->tx.ptr;
	x.desc = w->tx.desc;
	ft_tx(e, FT_TX_SEND, ft.opts.rank, &x, &w->txop[0]);
	ft_wait(reader, &w->txop[0]);
	ft_wait(reader, &w->rxop[0]);
}

/*
 * Opens and closes an endpoint and a region while other threads use endpoints
 * of the same domain. Inserts the new endpoint's address into their AV.
 */
static void ft_live(struct ft_worker *w, bool share_av, bool share_cq)
{
	struct ft_cfg cfg = w->e->cfg;
	static struct ft_ep e;
	struct ft_buf region;
	fi_addr_t addr;

	cfg.share = w->e;
	cfg.share_av = share_av;
	cfg.share_cq = share_cq;
	ft_open(&e, &cfg);
	e.peer[ft.opts.rank] = e.self;
	ft_insert(&e, ft.opts.rank);
	FT_CHECK(fi_av_insert(w->e->av, e.self.name, 1, &addr, 0, NULL) == 1,
		 "fi_av_insert of a further endpoint");
	ft_buf_alloc(&e, &region, FT_LEN);
	ft_talk(w, &e);
	ft_buf_free(&region);
	ft_check_tx(&e);
	/*
	 * removes one fi_addr only: with a shared AV, ft_insert() may have
	 * returned this fi_addr, too
	 */
	FT_OK(fi_av_remove(w->e->av, &addr, 1, 0));
	/* e may have read messages to w->e from a shared CQ */
	atomic_fetch_add(&w->e->rx_ok, e.rx_ok);
	ft_close_fids(&e);
}

/*
 * True if an endpoint may be bound to a CQ while another thread reads the CQ.
 * ofi_rxd then crashes, also without ofi_duo (libfabric 2.1 to 2.6):
 * rxd_ep_bind() adds the endpoint to the CQ's list before the endpoint's
 * functions are valid, and rxd_ep_close() removes it after they are invalid.
 */
static bool ft_shares_cq_in_use(void)
{
	return !strstr(ft.opts.prov, "ofi_rxd");
}

/*
 * Thread: opens and closes endpoints until the others end. Not over ofi_rxm,
 * which crashes without ofi_duo, too (libfabric 2.1).
 */
static void *ft_come_and_go(void *arg)
{
	bool share_av = ft_shares_av();
	bool share_cq = ft_shares_cq_in_use();
	struct ft_worker *w = arg;
	int lives;

	if (strstr(ft.opts.prov, "ofi_rxm"))
		return NULL;
	for (lives = 0; lives < FT_MIN_LIVES ||
	     (lives < FT_MAX_LIVES && !atomic_load(&stop)); lives++)
		ft_live(w, share_av && lives & 1, share_cq && lives & 2);
	return NULL;
}

static void ft_start(int t, struct ft_ep *e, void *(*run)(void *), bool tagged)
{
	struct ft_worker *w = &worker[t];

	w->e = e;
	w->id = t;
	w->run = run;
	w->tagged = tagged;
	w->rounds = ft.opts.quick ? 50 : 500;
	ft_buf_alloc(e, &w->tx, FT_WINDOW * FT_LEN);
	ft_buf_alloc(e, &w->rx, FT_WINDOW * FT_LEN);
}

/* Runs the threads. Sets "stop" for the last one when the others have ended. */
static void ft_go(void)
{
	int t;

	atomic_store(&stop, 0);
	ft_barrier();
	for (t = 0; t < FT_THREADS; t++)
		FT_CHECK(!pthread_create(&worker[t].thread, NULL,
					 worker[t].run, &worker[t]),
			 "pthread_create");
	for (t = 0; t < FT_THREADS; t++) {
		if (t == FT_THREADS - 1)
			atomic_store(&stop, 1);
		pthread_join(worker[t].thread, NULL);
	}
	ft_barrier();
	for (t = 0; t < FT_THREADS; t++) {
		ft_buf_free(&worker[t].tx);
		ft_buf_free(&worker[t].rx);
	}
}

/* Tests one endpoint that all threads use. run: function of the last thread. */
static void ft_safe(bool separate_cqs, void *(*run)(void *))
{
	struct ft_cfg cfg = { .threading = FI_THREAD_SAFE,
			      .separate_cqs = separate_cqs };
	int t;

	ft_open(&eps[0], &cfg);
	ft_exchange(&eps[0]);
	for (t = 0; t < FT_THREADS - 1; t++)
		ft_start(t, &eps[0], ft_work, true);
	ft_start(t, &eps[0], run, true);
	ft_go();
	ft_close(&eps[0]);
}

/*
 * Checks and closes all endpoints. With a shared CQ, checks the sends only: the
 * test's counts do not distinguish the endpoints of the receives. The checks
 * are before a barrier, because a closed endpoint has no defined path.
 */
static void ft_close_each(bool share_cq)
{
	int t;

	for (t = 0; share_cq && t < FT_THREADS; t++)
		ft_check_tx(&eps[t]);
	if (share_cq)
		ft_barrier();
	for (t = FT_THREADS - 1; t >= 0; t--) {
		if (share_cq)
			ft_close_fids(&eps[t]);
		else
			ft_close(&eps[t]);
	}
}

/*
 * Tests one endpoint for each thread. share: one domain for all. run: function
 * of the last thread.
 */
static void ft_each(enum fi_threading threading, bool share, bool share_cq,
		    bool tagged, void *(*run)(void *))
{
	struct ft_cfg cfg = { .threading = threading };
	int t;

	for (t = 0; t < FT_THREADS; t++) {
		cfg.share = t && share ? &eps[0] : NULL;
		cfg.share_av = t && run == ft_come_and_go && ft_shares_av();
		cfg.share_cq = t && share_cq;
		ft_open(&eps[t], &cfg);
		ft_exchange(&eps[t]);
		ft_start(t, &eps[t], t < FT_THREADS - 1 ? ft_work : run,
			 tagged);
	}
	ft_go();
	ft_close_each(share_cq);
}

static void ft_case_safe_threads_exchange(void)
{
	ft_safe(false, ft_work);
}

static void ft_case_safe_threads_exchange_beside_cancels(void)
{
	ft_safe(false, ft_disturb);
}

static void ft_case_safe_threads_exchange_by_two_cqs(void)
{
	ft_safe(true, ft_work);
}

static void ft_case_safe_threads_exchange_beside_opens(void)
{
	ft_safe(false, ft_come_and_go);
}

static void ft_case_safe_threads_exchange_by_two_cqs_beside_opens(void)
{
	ft_safe(true, ft_come_and_go);
}

static void ft_case_safe_threads_exchange_by_one_cq(void)
{
	ft_each(FI_THREAD_SAFE, true, true, true, ft_work);
}

static void ft_case_completion_threads_exchange_tagged(void)
{
	ft_each(FI_THREAD_COMPLETION, true, false, true, ft_work);
}

static void ft_case_completion_threads_exchange_untagged(void)
{
	ft_each(FI_THREAD_COMPLETION, true, false, false, ft_work);
}

static void ft_case_completion_threads_exchange_beside_opens(void)
{
	ft_each(FI_THREAD_COMPLETION, true, false, true, ft_come_and_go);
}

static void ft_case_domain_threads_exchange_tagged(void)
{
	ft_each(FI_THREAD_DOMAIN, false, false, true, ft_work);
}

static void ft_case_domain_threads_exchange_untagged(void)
{
	ft_each(FI_THREAD_DOMAIN, false, false, false, ft_work);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "FI_THREAD_SAFE threads exchange",
		  ft_case_safe_threads_exchange },
		{ "FI_THREAD_SAFE threads exchange beside cancels",
		  ft_case_safe_threads_exchange_beside_cancels },
		{ "FI_THREAD_SAFE threads exchange by two CQs",
		  ft_case_safe_threads_exchange_by_two_cqs },
		{ "FI_THREAD_SAFE threads exchange beside opens",
		  ft_case_safe_threads_exchange_beside_opens },
		{ "FI_THREAD_SAFE threads exchange by two CQs beside opens",
		  ft_case_safe_threads_exchange_by_two_cqs_beside_opens },
		{ "FI_THREAD_SAFE threads with one CQ exchange",
		  ft_case_safe_threads_exchange_by_one_cq },
		{ "FI_THREAD_COMPLETION threads exchange tagged",
		  ft_case_completion_threads_exchange_tagged },
		{ "FI_THREAD_COMPLETION threads exchange untagged",
		  ft_case_completion_threads_exchange_untagged },
		{ "FI_THREAD_COMPLETION threads exchange beside opens",
		  ft_case_completion_threads_exchange_beside_opens },
		{ "FI_THREAD_DOMAIN threads exchange tagged",
		  ft_case_domain_threads_exchange_tagged },
		{ "FI_THREAD_DOMAIN threads exchange untagged",
		  ft_case_domain_threads_exchange_untagged },
	};

	ft_run_cases(cases, FT_COUNT(cases));
}

const struct ft_spec ft_spec = {
	.name = "threads", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
