/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Each order between messages and RMA (FI_ORDER_*) that the core supports. Rank
 * 1 sends a message, and writes or reads before or after it. When the message
 * arrives, rank 0 checks its memory and changes it. The last cases test
 * FI_FENCE.
 */

#include <rdma/fi_rma.h>

#include "common/region.h"

#define FT_WORDS 512		/* largest number of words in a round */
#define FT_MANY 200		/* number of rounds */
#define FT_TAG 5

static struct ft_ep e;
static struct ft_region region;
static uint64_t ops;
static volatile uint64_t *theirs;	/* the words of rank 0 */
static uint64_t *local;

static const size_t sizes[] = {8, 1024, FT_WORDS * 8};

/* Manual progress: no thread may poll for rank 0 during ft_hold_still(). */
static const struct ft_cfg cfg = {
	.caps = FI_RMA, .raw = true, .data_progress = FI_PROGRESS_MANUAL,
};

static int ft_rounds(void)
{
	return ft.opts.quick ? FT_MANY / 4 : FT_MANY;
}

static void ft_send(uint64_t flags, struct ft_op *op)
{
	const struct iovec iov = {local, 8};
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .desc = &region.desc, .iov_count = 1,
		.addr = e.peer[0].addr, .tag = FT_TAG, .context = op,
	};

	ft_op_reset(op);
	FT_OK(FT_REGION_RETRY(&region, fi_tsendmsg(e.ep, &msg, flags)));
	ft_tx_counted(&e, 0);
}

static void ft_rma(bool read, size_t len, uint64_t flags, struct ft_op *op)
{
	const struct iovec iov = {local + FT_WORDS, len};
	const struct fi_rma_iov to = {region.base[0], len, region.key[0]};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &region.desc, .iov_count = 1,
		.addr = e.peer[0].addr, .rma_iov = &to, .rma_iov_count = 1,
		.context = op,
	};

	ft_op_reset(op);
	if (read)
		FT_OK(FT_REGION_RETRY(&region, fi_readmsg(e.ep, &msg, flags)));
	else
		FT_OK(FT_REGION_RETRY(&region, fi_writemsg(e.ep, &msg, flags)));
	ops++;
}

static void ft_done(struct ft_op *op)
{
	ft_region_wait(&region, op);
	FT_CHECK(!op->err, "%s", fi_strerror(op->err));
}

static void ft_receive(void)
{
	static struct ft_op op;

	ft_op_reset(&op);
	FT_OK(FT_REGION_RETRY(&region,
			      fi_trecv(e.ep, local, 8, region.desc,
				       e.peer[1].addr, FT_TAG, 0, &op)));
	ft_done(&op);
	e.rx_ok++;
}

static void ft_words(volatile uint64_t *at, size_t len, uint64_t value)
{
	size_t i;

	for (i = 0; i < len / 8; i++)
		at[i] = value;
}

static void ft_words_are(volatile uint64_t *at, size_t len, uint64_t value,
			 const char *what)
{
	size_t i;

	for (i = 0; i < len / 8; i++)
		FT_CHECK(at[i] == value, "%s: word %zu of %zu bytes is %lu, "
			 "not %lu", what, i, len, (unsigned long)at[i],
			 (unsigned long)value);
}

/* True if messages of rank 1 reach rank 0 only when rank 0 polls. */
static bool ft_taken_by_polls(void)
{
	return ft_has_prefix(ft.opts.prov, "near") ||
	       ft_path(&e, !ft.opts.rank) == FI_DUO_LOCAL;
}

/* Rank 0 waits 300 us without a poll. Called by both ranks. */
static void ft_hold_still(void)
{
	uint64_t until;

	ft_barrier();
	for (until = ft_now_ns() + 300000; !ft.opts.rank &&
	     ft_now_ns() < until;)
		;
}

static void ft_write_after_send(size_t len, uint64_t round)
{
	static struct ft_op sent, wrote;

	ft_hold_still();
	if (ft.opts.rank) {
		ft_words(local + FT_WORDS, len, round);
		ft_send(0, &sent);
		ft_rma(false, len, FI_COMPLETION, &wrote);
		ft_done(&sent);
		ft_done(&wrote);
		return;
	}
	FT_CHECK(!ft_taken_by_polls() || theirs[0] != round,
		 "round %lu: %zu bytes overtook the message",
		 (unsigned long)round, len);
	ft_receive();
	while (theirs[len / 8 - 1] != round)
		ft_region_poll(&region);
}

/*
 * A read after a send must not return the old contents of rank 0's memory, from
 * before rank 0 received the message.
 */
static void ft_read_after_send(size_t len, uint64_t round)
{
	static struct ft_op sent, got;

	ft_words(theirs, len, 0);
	ft_hold_still();
	if (ft.opts.rank) {
		ft_send(0, &sent);
		ft_rma(true, len, FI_COMPLETION, &got);
		ft_done(&sent);
		ft_done(&got);
		FT_CHECK(!ft_taken_by_polls() || local[FT_WORDS] == round ||
				 local[FT_WORDS] == round + FT_MANY,
			 "round %lu: %zu bytes were read as %lu",
			 (unsigned long)round, len,
			 (unsigned long)local[FT_WORDS]);
		return;
	}
	ft_words(theirs, len, round);
	ft_receive();
	ft_words(theirs, len, round + FT_MANY);
}

static void ft_send_after_write(size_t len, uint64_t round)
{
	static struct ft_op sent, wrote;

	if (ft.opts.rank) {
		ft_words(local + FT_WORDS, len, round);
		ft_rma(false, len, FI_COMPLETION, &wrote);
		ft_send(0, &sent);
		ft_done(&wrote);
		ft_done(&sent);
		return;
	}
	ft_receive();
	ft_words_are(theirs, len, round, "send after write");
}

/* A read before a send must not return what rank 0 stored after the receive. */
static void ft_send_after_read(size_t len, uint64_t round)
{
	static struct ft_op sent, got;

	if (ft.opts.rank) {
		ft_rma(true, len, FI_COMPLETION, &got);
		ft_send(0, &sent);
		ft_done(&got);
		ft_done(&sent);
		ft_words_are(local + FT_WORDS, len, round, "send after read");
		return;
	}
	ft_receive();
	ft_words(theirs, len, round + 1);
}

/* A fenced operation must start after all earlier ones have completed. */
static void ft_fenced(size_t len, uint64_t round)
{
	static struct ft_op wrote, fenced, sent;

	if (ft.opts.rank) {
		ft_words(local + FT_WORDS, len, round);
		ft_rma(false, len, FI_COMPLETION, &wrote);
		ft_send(FI_FENCE | FI_COMPLETION, &sent);
		ft_rma(false, 8, FI_FENCE | FI_COMPLETION, &fenced);
		ft_done(&wrote);
		ft_done(&sent);
		ft_done(&fenced);
		return;
	}
	ft_receive();
	ft_words_are(theirs, len, round, "fenced message");
}

static void ft_each(void (*round)(size_t len, uint64_t round), uint64_t first)
{
	size_t i;
	int n;

	for (i = 0; i < FT_COUNT(sizes); i++) {
		ft_words(theirs, sizes[i], first);
		for (n = 1; n <= ft_rounds(); n++) {
			ft_region_barrier(&region);
			round(sizes[i], n);
		}
		ft_region_barrier(&region);
	}
}

static void ft_open_with(uint64_t caps, uint64_t order)
{
	struct ft_cfg with = cfg;

	with.caps |= caps;
	with.order = order;
	ft_open(&e, &with);
	ft_exchange(&e);
	ft_region_open(&e, &region, 16384);
	theirs = (volatile uint64_t *)region.ptr;
	local = (uint64_t *)region.ptr + FT_WORDS;
	ops = 0;
}

static void ft_close_all(void)
{
	ft_region_counted(&region, ops, 0, 0);
	ft_region_barrier(&region);
	ft_region_close(&region);
	ft_close(&e);
}

static void ft_case_of(uint64_t caps, uint64_t order, uint64_t first,
		       void (*round)(size_t len, uint64_t round))
{
	if (!ft_offers(&cfg, caps, order))
		return;
	ft_open_with(caps, order);
	ft_each(round, first);
	ft_close_all();
}

static void ft_was(void)
{
	ft_case_of(0, FI_ORDER_WAS, 0, ft_write_after_send);
}

static void ft_ras(void)
{
	ft_case_of(0, FI_ORDER_RAS, 0, ft_read_after_send);
}

static void ft_saw(void)
{
	ft_case_of(0, FI_ORDER_SAW, 0, ft_send_after_write);
}

static void ft_sar(void)
{
	ft_case_of(0, FI_ORDER_SAR, 1, ft_send_after_read);
}

static void ft_fence(void)
{
	ft_case_of(FI_FENCE, 0, 0, ft_fenced);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{"write after send", ft_was},
		{"read after send", ft_ras},
		{"send after write", ft_saw},
		{"send after read", ft_sar},
		{"fence", ft_fence},
	};
	const char *peer = getenv("FI_OFI_DUO_LOCAL");

	/* ofi_duo has no such orders over libfabric's shm: use the core only */
	if (peer && !strcmp(peer, "shm"))
		setenv("FT_NO_SHM", "1", 1);
	if (!ft_offers(&cfg, 0, FI_ORDER_SAW) &&
	    !ft_offers(&cfg, FI_FENCE, 0))
		ft_skip("%s has no order between messages and RMA",
			ft.opts.prov);
	ft_run_cases(cases, FT_COUNT(cases));
}

const struct ft_spec ft_spec = {
	.name = "order", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
