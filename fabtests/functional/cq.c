/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion queues: formats, selective completion, sources, separate and
 * shared queues, blocking reads, batches. Rank 0 receives from rank 1. Each
 * case opens an endpoint, and reads the CQs itself.
 */

#include <sched.h>
#include <time.h>

#include "common/ft.h"

#define FT_LEN 64
#define FT_TAG 0x77
#define FT_DATA 0x1122334u
#define FT_RECEIVER (ft.opts.rank == 0)

static struct ft_ep e;
static struct ft_buf buf;
static struct fi_context2 ctx[64];

static void ft_begin(struct ft_cfg *cfg)
{
	cfg->raw = true;
	ft_open(&e, cfg);
	ft_exchange(&e);
	ft_buf_alloc(&e, &buf, 64 * FT_LEN);
	ft_barrier();
}

static void ft_finish(void)
{
	ft_barrier();
	ft_buf_free(&buf);
	ft_close(&e);
}

static void ft_recv_at(int i, bool tagged)
{
	struct ft_xfer x = {
		.buf = buf.ptr + i * FT_LEN, .len = FT_LEN, .desc = buf.desc,
		.tagged = tagged, .tag = FT_TAG, .addr = FI_ADDR_UNSPEC,
	};
	ssize_t ret = FT_RETRY(&e, ft_rx_try(&e, FT_RX_RECV, &x,
					     (struct ft_op *)&ctx[i]));

	FT_CHECK(!ret, "recv: %zd", ret);
}

static void ft_send_to(int rank, int i, bool tagged, enum ft_tx how)
{
	struct ft_xfer x = {
		.buf = buf.ptr + i * FT_LEN, .len = FT_LEN, .desc = buf.desc,
		.tagged = tagged, .tag = FT_TAG, .data = FT_DATA,
	};
	ssize_t ret;

	ft_fill(x.buf, FT_LEN, i);
	ret = FT_RETRY(&e, ft_tx_try(&e, how, e.peer[rank].addr, &x,
				     (struct ft_op *)&ctx[i]));
	FT_CHECK(!ret, "send: %zd", ret);
	ft_tx_counted(&e, rank);
}

/* Reads one entry of any format. src may be NULL. */
static void ft_read_one(struct fid_cq *cq, void *entry, fi_addr_t *src)
{
	ssize_t n;

	do {
		n = src ? fi_cq_readfrom(cq, entry, 1, src) :
			  fi_cq_read(cq, entry, 1);
		if (n == -FI_EAGAIN)
			sched_yield();
	} while (n == -FI_EAGAIN);
	FT_CHECK(n == 1, "fi_cq_read: %zd", n);
}

static void ft_check_entry(enum fi_cq_format format, const void *entry, int i,
			   uint64_t flags, bool tagged)
{
	const struct fi_cq_tagged_entry *t = entry;

	FT_CHECK(t->op_context == &ctx[i], "context %d, not %d",
		 (int)((struct fi_context2 *)t->op_context - ctx), i);
	if (format == FI_CQ_FORMAT_CONTEXT)
		return;
	FT_CHECK((t->flags & (FI_SEND | FI_RECV)) == (flags &
		 (FI_SEND | FI_RECV)), "flags 0x%lx, not 0x%lx",
		 (unsigned long)t->flags, (unsigned long)flags);
	FT_CHECK(!!(t->flags & FI_TAGGED) == tagged, "flags 0x%lx, tagged %d",
		 (unsigned long)t->flags, tagged);
	if (!(flags & FI_RECV))
		return;
	FT_CHECK(t->len == FT_LEN, "length %zu", t->len);
	if (format == FI_CQ_FORMAT_MSG)
		return;
	FT_CHECK((t->flags & FI_REMOTE_CQ_DATA || ft_no_data_flag()) &&
		 t->data == FT_DATA, "flags 0x%lx data 0x%lx",
		 (unsigned long)t->flags, (unsigned long)t->data);
	if (format == FI_CQ_FORMAT_TAGGED && tagged)
		FT_CHECK(t->tag == FT_TAG, "tag 0x%lx",
			 (unsigned long)t->tag);
}

static void ft_one_format(enum fi_cq_format format, bool separate)
{
	struct ft_cfg cfg = { .format = format, .separate_cqs = separate };
	uint8_t entry[2 * sizeof(struct fi_cq_tagged_entry)];
	int i;

	ft_begin(&cfg);
	for (i = 0; i < 8; i++) {
		memset(entry, 0xa5, sizeof(entry));
		if (FT_RECEIVER)
			ft_recv_at(i, i & 1);
		ft_barrier();
		if (!FT_RECEIVER) {
			ft_send_to(0, i, i & 1, FT_TX_SENDDATA);
			ft_read_one(e.txcq, entry, NULL);
			ft_check_entry(format, entry, i, FI_SEND, i & 1);
		} else {
			ft_read_one(e.rxcq, entry, NULL);
			ft_check_entry(format, entry, i, FI_RECV, i & 1);
			ft_verify(buf.ptr + i * FT_LEN, FT_LEN, i, "format");
		}
		/* the byte behind the entry is unchanged */
		FT_CHECK(format != FI_CQ_FORMAT_CONTEXT ||
			 entry[sizeof(struct fi_cq_entry)] == 0xa5,
			 "more than one entry written");
		FT_CHECK(format != FI_CQ_FORMAT_MSG ||
			 entry[sizeof(struct fi_cq_msg_entry)] == 0xa5,
			 "more than one entry written");
		FT_CHECK(format != FI_CQ_FORMAT_DATA ||
			 entry[sizeof(struct fi_cq_data_entry)] == 0xa5,
			 "more than one entry written");
	}
	ft_finish();
}

static void ft_case_formats_have_fields(void)
{
	int format;

	for (format = FI_CQ_FORMAT_CONTEXT; format <= FI_CQ_FORMAT_TAGGED;
	     format++) {
		ft_one_format(format, false);
		ft_one_format(format, true);
	}
}

static void ft_expect_nothing(struct fid_cq *cq)
{
	uint64_t end = ft_now_ns() + 50000000;
	struct fi_cq_tagged_entry entry;
	ssize_t n;

	do {
		n = fi_cq_read(cq, &entry, 1);
		FT_CHECK(n == -FI_EAGAIN, "an unrequested entry: %zd", n);
	} while (ft_now_ns() < end);
}

/*
 * With selective completion at both ends, only operations with FI_COMPLETION
 * report completions. For other receives, the test polls the data.
 */
static void ft_selective(bool tagged)
{
	struct ft_cfg cfg = { .tx_bind = FI_SELECTIVE_COMPLETION,
			      .rx_bind = FI_SELECTIVE_COMPLETION };
	struct fi_cq_tagged_entry entry;
	struct ft_xfer x = {
		.buf = buf.ptr, .len = FT_LEN, .tagged = tagged,
		.tag = FT_TAG, .addr = FI_ADDR_UNSPEC,
	};

	ft_begin(&cfg);
	x.buf = buf.ptr;
	x.desc = buf.desc;
	if (FT_RECEIVER) {
		ft_recv_at(1, tagged);
		x.buf = buf.ptr;
		FT_OK(FT_RETRY(&e, ft_rx_try(&e, FT_RX_RECVMSG, &x,
					     (struct ft_op *)&ctx[0])));
		ft_barrier();
		ft_read_one(e.rxcq, &entry, NULL);
		FT_CHECK(entry.op_context == &ctx[0],
			 "the wrong receive completed");
		ft_verify(buf.ptr + FT_LEN, FT_LEN, 1, "silent receive");
		ft_expect_nothing(e.rxcq);
	} else {
		ft_barrier();
		ft_send_to(0, 1, tagged, FT_TX_SEND);
		ft_send_to(0, 0, tagged, FT_TX_SENDMSG);
		ft_read_one(e.txcq, &entry, NULL);
		FT_CHECK(entry.op_context == &ctx[0],
			 "the wrong send completed");
		ft_expect_nothing(e.txcq);
	}
	ft_finish();
}

static void ft_case_selective_cq_has_requested(void)
{
	ft_selective(false);
	ft_selective(true);
}

/* Expected and unexpected messages must have their source. */
static void ft_case_source_is_returned(void)
{
	struct ft_cfg cfg = { .caps = FI_SOURCE };
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;
	int i;

	ft_begin(&cfg);
	for (i = 0; i < 8; i++) {
		src = FI_ADDR_NOTAVAIL;
		if (FT_RECEIVER) {
			if (i & 2)
				ft_recv_at(i, i & 1);
			ft_barrier();
			if (!(i & 2)) {
				ft_progress_for(&e, 20);
				ft_recv_at(i, i & 1);
			}
			ft_read_one(e.rxcq, &entry, &src);
			FT_CHECK(src == e.peer[1].addr, "message %d from %ld, "
				 "not %ld", i, (long)src,
				 (long)e.peer[1].addr);
		} else {
			ft_barrier();
			ft_send_to(0, i, i & 1, FT_TX_SEND);
			ft_read_one(e.txcq, &entry, NULL);
		}
	}
	ft_finish();
}

/* A read of several entries returns those that are available. */
static void ft_case_batch_returns_available(void)
{
	struct ft_cfg cfg = { 0 };
	struct fi_cq_tagged_entry entry[64];
	bool seen[48] = { false };
	int i, got = 0, want = 1;
	ssize_t n;

	ft_begin(&cfg);
	for (i = 0; FT_RECEIVER && i < 48; i++)
		ft_recv_at(i, true);
	ft_barrier();
	for (i = 0; !FT_RECEIVER && i < 48; i++)
		ft_send_to(0, i, true, FT_TX_SEND);
	while (got < 48) {
		n = fi_cq_read(FT_RECEIVER ? e.rxcq : e.txcq, entry, 0);
		FT_CHECK(n == 0 || n == -FI_EAGAIN, "read of 0 entries: %zd",
			 n);
		n = fi_cq_read(FT_RECEIVER ? e.rxcq : e.txcq, entry, want);
		if (n == -FI_EAGAIN)
			continue;
		FT_CHECK(n > 0 && n <= want, "read of %d: %zd", want, n);
		for (i = 0; i < n; i++) {
			int k = (struct fi_context2 *)entry[i].op_context -
				ctx;

			FT_CHECK(k >= 0 && k < 48 && !seen[k],
				 "context %d completed twice or is invalid", k);
			seen[k] = true;
		}
		got += n;
		want = want % 7 + 1;
	}
	ft_expect_nothing(FT_RECEIVER ? e.rxcq : e.txcq);
	ft_finish();
}

/* A blocking read ends at its timeout. Without timeout, a message ends it. */
static void ft_sread_with(enum fi_wait_obj wait_obj)
{
	struct ft_cfg cfg = { .wait_obj = wait_obj };
	struct fi_cq_tagged_entry entry;
	struct timespec pause = { .tv_nsec = 100000000 };
	uint64_t start;
	ssize_t n;

	ft_begin(&cfg);
	start = ft_now_ns();
	n = fi_cq_sread(e.rxcq, &entry, 1, NULL, 200);
	FT_CHECK(n == -FI_EAGAIN, "sread of an empty CQ: %zd", n);
	FT_CHECK(ft_now_ns() - start > 150000000, "sread of 200 ms took %lu us",
		 (unsigned long)(ft_now_ns() - start) / 1000);
	if (FT_RECEIVER) {
		ft_recv_at(0, true);
		ft_barrier();
		do {
			n = fi_cq_sread(e.rxcq, &entry, 1, NULL, -1);
		} while (n == -FI_EINTR);
		FT_CHECK(n == 1, "sread: %zd", n);
		ft_verify(buf.ptr, FT_LEN, 0, "sread");
	} else {
		ft_barrier();
		nanosleep(&pause, NULL); /* until the reader sleeps */
		ft_send_to(0, 0, true, FT_TX_SEND);
		n = fi_cq_sread(e.txcq, &entry, 1, NULL, -1);
		FT_CHECK(n == 1, "sread of a send: %zd", n);
	}
	ft_finish();
}

static void ft_case_sread_wakes(void)
{
	ft_sread_with(FI_WAIT_UNSPEC);
}

static void ft_case_sread_fd_wakes(void)
{
	ft_sread_with(FI_WAIT_FD);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "each CQ format has its fields",
		  ft_case_formats_have_fields },
		{ "selective CQ has requested completions only",
		  ft_case_selective_cq_has_requested },
		{ "fi_cq_readfrom() returns the source",
		  ft_case_source_is_returned },
		{ "read of several entries returns those available",
		  ft_case_batch_returns_available },
		{ "fi_cq_sread() wakes for a message", ft_case_sread_wakes },
	};
	static const struct ft_case fd_cases[] = {
		{ "fi_cq_sread() with FI_WAIT_FD wakes for a message",
		  ft_case_sread_fd_wakes },
	};

	ft_run_cases(cases, FT_COUNT(cases));
	/* libfabric's provider shm does not support FI_WAIT_FD */
	if (!ft_has_prefix(ft.opts.prov, "shm"))
		ft_run_cases(fd_cases, FT_COUNT(fd_cases));
}

const struct ft_spec ft_spec = {
	.name = "cq", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
