/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A message goes from rank to rank. Each rank sleeps until the message arrives:
 * on the CQ's file descriptor, in a blocking read, or, without a CQ, on its
 * counters. Prints the times from the send to the wakeup.
 *
 * Afterwards no rank sends. If near and the core can wake a thread for every
 * message (ft_all_signal()), a rank that sleeps on the CQ's file descriptor may
 * then wake at most FT_WAKES times.
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <time.h>

#include "common/ft.h"

#define FT_TAG 77
#define FT_SILENCE_NS 300000000ull
/* Permitted wakeups in FT_SILENCE_NS. A timer would cause 600. */
#define FT_WAKES 30
#define FT_LAPS_MAX 400

struct ft_token {
	uint64_t ns;		/* time of sending, ns */
	uint32_t lap;
	uint32_t from;
};

static struct ft_ep e;
static struct ft_buf rx, tx;
static struct ft_op rx_op, tx_op;
static uint64_t took[FT_LAPS_MAX];

static int ft_trywait(struct fid *fid)
{
	int ret = fi_trywait(e.fabric, &fid, 1);

	FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_trywait: %d", ret);
	return ret;
}

/*
 * Sleeps on the file descriptor. Returns 1: woken, maybe without an event; 0:
 * timeout; -1: fi_trywait() permits no sleep.
 */
static int ft_sleep(struct fid *fid, int ms)
{
	struct pollfd fd = { .events = POLLIN };
	int ret;

	if (ft_trywait(fid))
		return -1;
	FT_OK(fi_control(fid, FI_GETWAIT, &fd.fd));
	do {
		ret = poll(&fd, 1, ms);
	} while (ret < 0 && errno == EINTR);
	FT_CHECK(ret >= 0, "poll: %d", errno);
	return ret;
}

static void ft_wait_count(struct fid_cntr *cntr, uint64_t count)
{
	if (e.cfg.wait_obj != FI_WAIT_FD) {
		FT_OK(fi_cntr_wait(cntr, count, -1));
		return;
	}
	while (fi_cntr_read(cntr) < count)
		ft_sleep(&cntr->fid, -1);
}

/* Reads completions, or sleeps, until the operation is complete. */
static void ft_wait_for(struct ft_op *op)
{
	struct fi_cq_tagged_entry entry;
	struct ft_op *done;
	ssize_t ret;

	while (!op->done) {
		ret = e.cfg.wait_obj == FI_WAIT_FD ?
			fi_cq_read(e.rxcq, &entry, 1) :
			fi_cq_sread(e.rxcq, &entry, 1, NULL, -1);
		if (ret == -FI_EAGAIN && e.cfg.wait_obj == FI_WAIT_FD) {
			ft_sleep(&e.rxcq->fid, -1);
			continue;
		}
		FT_CHECK(ret == 1, "read: %zd (%s)", ret,
			 fi_strerror((int)-ret));
		done = entry.op_context;
		done->done++;
	}
}

static void ft_pass_on(uint32_t lap)
{
	static const struct timespec until_it_sleeps = { .tv_nsec = 1000000 };
	int to = (ft.opts.rank + 1) % ft.opts.nranks;
	struct ft_token *token = (void *)tx.ptr;
	struct ft_xfer x = {
		.buf = tx.ptr, .len = sizeof(*token), .desc = tx.desc,
		.tag = FT_TAG, .tagged = true,
	};

	nanosleep(&until_it_sleeps, NULL);
	token->lap = lap;
	token->from = ft.opts.rank;
	token->ns = ft_now_ns();
	ft_tx(&e, FT_TX_SEND, to, &x, &tx_op);
	if (e.cfg.no_cqs)
		ft_wait_count(e.tx_cntr, lap + 1);
	else
		ft_wait_for(&tx_op);
}

static void ft_await(uint32_t lap)
{
	int from = (ft.opts.rank + ft.opts.nranks - 1) % ft.opts.nranks;
	struct ft_token *token = (void *)rx.ptr;
	struct ft_xfer x = {
		.buf = rx.ptr, .len = sizeof(*token), .desc = rx.desc,
		.tag = FT_TAG, .tagged = true,
		.addr = lap & 1 ? e.peer[from].addr : FI_ADDR_UNSPEC,
	};

	ft_rx(&e, FT_RX_RECV, &x, &rx_op);
	if (e.cfg.no_cqs)
		ft_wait_count(e.rx_cntr, lap + 1);
	else
		ft_wait_for(&rx_op);
	took[lap] = ft_now_ns() - token->ns;
	FT_CHECK(token->lap == lap && token->from == (uint32_t)from,
		 "lap %u of %u, not %u of %d", token->lap, token->from, lap,
		 from);
}

static int ft_compare(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}

static void ft_laps(void)
{
	uint32_t lap, laps = ft.opts.quick ? 40 : FT_LAPS_MAX;

	for (lap = 0; lap < laps; lap++) {
		if (!ft.opts.rank)
			ft_pass_on(lap);
		ft_await(lap);
		if (ft.opts.rank)
			ft_pass_on(lap);
	}
	qsort(took, laps, sizeof(took[0]), ft_compare);
	printf("rank %d: awake after %" PRIu64 " us (median), %" PRIu64
	       " (95 %%)\n", ft.opts.rank, took[laps / 2] / 1000,
	       took[laps * 95 / 100] / 1000);
}

/*
 * True if near and the core can wake a sleeping thread for every message, so
 * that ofi_duo needs no timer.
 */
static bool ft_all_signal(void)
{
	const char *peer = getenv("FI_OFI_DUO_LOCAL");

	return (!peer || strcmp(peer, "shm")) &&
	       ft_has_prefix(ft.opts.prov, "tcp");
}

static int ft_sleep_in_silence(int ms)
{
	int woken = ft_sleep(&e.rxcq->fid, ms);

	fi_cq_read(e.rxcq, NULL, 0);
	return woken == 1;
}

static void ft_silence(void)
{
	uint64_t end = ft_now_ns() + FT_SILENCE_NS, now;
	int wakes = 0;

	while ((now = ft_now_ns()) < end)
		wakes += ft_sleep_in_silence((int)((end - now) / 1000000) + 1);
	printf("rank %d: woken %d times for nothing\n", ft.opts.rank, wakes);
	FT_CHECK(!ft_all_signal() || wakes <= FT_WAKES, "woken %d times",
		 wakes);
}

static void ft_mode(enum fi_wait_obj wait_obj, bool counters)
{
	const struct ft_cfg cfg = {
		.caps = FI_SOURCE | FI_DIRECTED_RECV, .wait_obj = wait_obj,
		.raw = true, .counters = counters, .no_cqs = counters,
	};

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_buf_alloc(&e, &rx, sizeof(struct ft_token));
	ft_buf_alloc(&e, &tx, sizeof(struct ft_token));
	ft_barrier();
	ft_laps();
	ft_barrier();
	if (wait_obj == FI_WAIT_FD && !counters) /* counters have a timer */
		ft_silence();
	ft_buf_free(&rx);
	ft_buf_free(&tx);
	ft_close(&e);
}

static void ft_case_cq_descriptor_wakes(void)
{
	ft_mode(FI_WAIT_FD, false);
}

static void ft_case_blocking_read_wakes(void)
{
	ft_mode(FI_WAIT_UNSPEC, false);
}

static void ft_case_yielding_read_returns(void)
{
	ft_mode(FI_WAIT_YIELD, false);
}

static void ft_case_counter_descriptor_wakes(void)
{
	ft_mode(FI_WAIT_FD, true);
}

static void ft_case_blocking_counter_wait_wakes(void)
{
	ft_mode(FI_WAIT_UNSPEC, true);
}

static void ft_case_yielding_counter_wait_returns(void)
{
	ft_mode(FI_WAIT_YIELD, true);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "CQ's descriptor wakes a thread",
		  ft_case_cq_descriptor_wakes },
		{ "blocking read wakes for a message",
		  ft_case_blocking_read_wakes },
		{ "read with FI_WAIT_YIELD returns the message",
		  ft_case_yielding_read_returns },
		{ "counter's descriptor wakes a thread",
		  ft_case_counter_descriptor_wakes },
		{ "blocking wait for a counter wakes",
		  ft_case_blocking_counter_wait_wakes },
		{ "wait for a counter with FI_WAIT_YIELD returns",
		  ft_case_yielding_counter_wait_returns },
	};
	size_t count = FT_COUNT(cases);

	/* the remaining cases need ofi_duo: not all cores support them */
	if (!ft_wraps())
		count = 2;
	ft_run_cases(cases, count);
}

const struct ft_spec ft_spec = {
	.name = "wait", .nranks = 3, .min_ranks = 2, .run = ft_run,
};
