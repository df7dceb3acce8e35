/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Ranks receive into a few FI_MULTI_RECV buffers, and post each again when it
 * is released. Each message must arrive once, complete, and in the order of its
 * sender. A buffer must have no gaps, and be released when it is full, not
 * earlier. Every receive must complete.
 */

#include <sched.h>

#include "common/ft.h"

#define FT_BUFS_MAX 8
#define FT_DEPTH 8
#define FT_SEQ_MAX 8000

struct ft_hdr {
	uint32_t rank;
	uint32_t seq;
	uint32_t len;
	uint32_t seed;
};

struct ft_mbuf {
	struct ft_op op;	/* first member: the context of the receive */
	struct ft_buf mem;
	size_t used;		/* number of bytes of complete messages */
	size_t end;		/* end of the last complete message, offset */
	/* lowest sequence number that each rank may send next */
	uint32_t next_seq[FT_MAX_RANKS];
	bool posted;
	bool canceling;
};

struct ft_mode {
	int nbufs;
	int fits; /* number of largest messages that fit in a buffer */
	size_t max_len;
	int per_pair;		/* number of messages to each peer */
	int only;		/* the only rank that sends; 0: all send */
	bool to_all; /* each rank sends to all; false: to rank 0 only */
	bool late; /* post the buffers after messages have arrived */
	bool cancel;		/* cancel receives at intervals, under load */
};

struct ft_slot {
	struct ft_op op;
	struct ft_buf mem;
};

static struct ft_ep e;
static struct ft_mode mode;
static struct ft_mbuf bufs[FT_BUFS_MAX];
static struct ft_slot slots[FT_DEPTH];
static uint32_t next_seq[FT_MAX_RANKS];
static bool seen[FT_MAX_RANKS][FT_SEQ_MAX];
static int received, expected, releases, cancels;
static unsigned int salt;

/*
 * True if "rank" sends to "to". Ranks without ofi_duo only send: they would
 * receive by util_srx of libfabric, which may write outside of the buffer.
 */
static bool ft_sends(int rank, int to)
{
	return rank != to && (!to || (mode.to_all && e.peer[to].duo)) &&
	       (!mode.only || mode.only == rank);
}

static size_t ft_len(int rank, int seq)
{
	size_t len = sizeof(struct ft_hdr) + (seq * 131 + rank * 17) % 97;

	return seq % 5 == 4 ? mode.max_len - seq % 13 : len;
}

/*
 * Checks that a sender's messages complete in order. Exception: if a canceled
 * buffer still receives a message of several packets, later messages may
 * complete in the next buffer. Then each message must arrive once, and in order
 * within each buffer.
 */
static void ft_in_order(struct ft_mbuf *buf, const struct ft_hdr *hdr)
{
	uint32_t *next = mode.cancel ? buf->next_seq : next_seq;

	FT_CHECK(hdr->seq < FT_SEQ_MAX && !seen[hdr->rank][hdr->seq],
		 "message %u of rank %u once more", hdr->seq, hdr->rank);
	FT_CHECK(mode.cancel ? hdr->seq >= next[hdr->rank] :
			       hdr->seq == next[hdr->rank],
		 "message %u of rank %u where %u is next", hdr->seq,
		 hdr->rank, next[hdr->rank]);
	seen[hdr->rank][hdr->seq] = true;
	next[hdr->rank] = hdr->seq + 1;
}

static void ft_message(struct ft_mbuf *buf,
		       const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	const uint8_t *at = entry->buf;
	struct ft_hdr hdr;

	FT_CHECK(at >= buf->mem.ptr &&
		 at + entry->len <= buf->mem.ptr + buf->mem.len,
		 "a message of %zu bytes outside of its buffer", entry->len);
	FT_CHECK(entry->len >= sizeof(hdr), "%zu bytes", entry->len);
	memcpy(&hdr, at, sizeof(hdr));
	FT_CHECK(hdr.rank < (uint32_t)ft.opts.nranks && hdr.seed == salt,
		 "rank %u, seed %u: not a header", hdr.rank, hdr.seed);
	ft_in_order(buf, &hdr);
	FT_CHECK(entry->len == hdr.len &&
		 hdr.len == ft_len(hdr.rank, hdr.seq),
		 "message %u of rank %u: %zu bytes, not %zu", hdr.seq,
		 hdr.rank, entry->len, ft_len(hdr.rank, hdr.seq));
	ft_verify(at + sizeof(hdr), hdr.len - sizeof(hdr),
		  hdr.rank * 1000 + hdr.seq, "multi_recv");
	if (e.info->caps & FI_SOURCE)
		FT_CHECK(src == e.peer[hdr.rank].addr, "source %ld, not %ld",
			 (long)src, (long)e.peer[hdr.rank].addr);
	received++;
	buf->used += entry->len;
	if (buf->end < (size_t)(at - buf->mem.ptr) + entry->len)
		buf->end = at - buf->mem.ptr + entry->len;
}

/*
 * Checks a released buffer. Checks its unused space with ofi_duo only: other
 * providers may ignore an FI_OPT_MIN_MULTI_RECV that is set after fi_enable().
 */
static void ft_released(struct ft_mbuf *buf)
{
	FT_CHECK(buf->used == buf->end, "%zu bytes up to %zu", buf->used,
		 buf->end);
	FT_CHECK(!e.ops || buf->mem.len - buf->end < mode.max_len,
		 "released with %zu bytes left", buf->mem.len - buf->end);
	buf->posted = false;
	releases++;
}

static void ft_each(struct ft_op *op, const struct fi_cq_tagged_entry *entry,
		    fi_addr_t src)
{
	struct ft_mbuf *buf = (struct ft_mbuf *)op;

	FT_CHECK(buf->posted, "a completion for a released buffer");
	if (entry->flags & FI_RECV)
		ft_message(buf, entry, src);
	else
		FT_CHECK(entry->flags == FI_MULTI_RECV, "flags 0x%lx",
			 (unsigned long)entry->flags);
	if (entry->flags & FI_MULTI_RECV)
		ft_released(buf);
}

static void ft_post(struct ft_mbuf *buf)
{
	const struct iovec iov = { buf->mem.ptr, buf->mem.len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .desc = &buf->mem.desc,
		.addr = FI_ADDR_UNSPEC, .context = &buf->op,
	};
	ssize_t ret;

	ft_op_reset(&buf->op);
	buf->op.each = ft_each;
	buf->used = buf->end = 0;
	memset(buf->next_seq, 0, sizeof(buf->next_seq));
	buf->canceling = false;
	buf->posted = true;
	ret = fi_recvmsg(e.ep, &msg, FI_MULTI_RECV | FI_COMPLETION);
	if (ret == -FI_EAGAIN)
		buf->posted = false;
	else
		FT_CHECK(!ret, "fi_recvmsg: %zd (%s)", ret,
			 fi_strerror((int)-ret));
}

static void ft_cancel(struct ft_mbuf *buf)
{
	ssize_t ret = fi_cancel(&e.ep->fid, &buf->op);

	/*
	 * -FI_ENOENT: the buffer may be full, but not released yet, because its
	 * last message is incomplete
	 */
	FT_CHECK(!ret || ret == -FI_ENOENT || ret == -FI_EAGAIN,
		 "fi_cancel: %zd", ret);
	buf->canceling = !ret;
}

static void ft_serve(void)
{
	int i;

	for (i = 0; i < mode.nbufs; i++) {
		struct ft_mbuf *buf = &bufs[i];

		if (buf->posted && atomic_load(&buf->op.done)) {
			FT_CHECK(buf->op.err == FI_ECANCELED &&
				 buf->canceling, "a buffer failed: %d (%s)",
				 buf->op.err, fi_strerror(buf->op.err));
			buf->posted = false;
			cancels++;
		}
		if (!buf->posted)
			ft_post(buf);
		if (mode.cancel && e.ops && !buf->canceling && !ft_rand(100))
			ft_cancel(buf);
	}
}

static void ft_step(void)
{
	if (!ft_progress(&e))
		sched_yield();
	if (expected)
		ft_serve();
}

static void ft_wait_slot(struct ft_slot *slot)
{
	while (!atomic_load(&slot->op.done))
		ft_step();
	FT_CHECK(!slot->op.err, "a send failed: %d (%s)", slot->op.err,
		 fi_strerror(slot->op.err));
}

/* Sends one message, and serves the buffers while the provider is busy. */
static void ft_send_one(struct ft_slot *slot, int to, int seq)
{
	struct ft_hdr hdr = { ft.opts.rank, seq, ft_len(ft.opts.rank, seq),
			      salt };
	ssize_t ret;

	ft_wait_slot(slot);
	memcpy(slot->mem.ptr, &hdr, sizeof(hdr));
	ft_fill(slot->mem.ptr + sizeof(hdr), hdr.len - sizeof(hdr),
		ft.opts.rank * 1000 + seq);
	ft_op_reset(&slot->op);
	while ((ret = fi_send(e.ep, slot->mem.ptr, hdr.len, slot->mem.desc,
			      e.peer[to].addr, &slot->op)) == -FI_EAGAIN)
		ft_step();
	FT_CHECK(!ret, "fi_send: %zd (%s)", ret, fi_strerror((int)-ret));
	ft_tx_counted(&e, to);
}

static void ft_send_all(void)
{
	int seq, to, k = 0;

	for (k = 0; k < FT_DEPTH; k++) {
		ft_op_reset(&slots[k].op);
		atomic_store(&slots[k].op.done, 1);
	}
	for (seq = 0; seq < mode.per_pair; seq++) {
		for (to = 0; to < ft.opts.nranks; to++) {
			if (ft_sends(ft.opts.rank, to))
				ft_send_one(&slots[k++ % FT_DEPTH], to, seq);
		}
		if (!ft_rand(100))
			ft_step();
	}
	for (k = 0; k < FT_DEPTH; k++)
		ft_wait_slot(&slots[k]);
}

static void ft_cancel_rest(void)
{
	int i;

	for (i = 0; i < mode.nbufs; i++) {
		if (!bufs[i].posted)
			continue;
		if (!bufs[i].canceling)
			ft_cancel(&bufs[i]);
		FT_CHECK(bufs[i].canceling, "an idle buffer is not canceled");
		ft_wait_err(&e, &bufs[i].op, FI_ECANCELED);
		bufs[i].posted = false;
	}
}

static void ft_alloc(void)
{
	int i;

	for (i = 0; i < mode.nbufs; i++) {
		memset(&bufs[i], 0, sizeof(bufs[i]));
		ft_buf_alloc(&e, &bufs[i].mem, mode.fits * mode.max_len);
	}
	for (i = 0; i < FT_DEPTH; i++)
		ft_buf_alloc(&e, &slots[i].mem, mode.max_len);
}

static void ft_free(void)
{
	int i;

	for (i = 0; i < mode.nbufs; i++)
		ft_buf_free(&bufs[i].mem);
	for (i = 0; i < FT_DEPTH; i++)
		ft_buf_free(&slots[i].mem);
}

static void ft_count(void)
{
	int r;

	memset(next_seq, 0, sizeof(next_seq));
	memset(seen, 0, sizeof(seen));
	received = expected = releases = cancels = 0;
	for (r = 0; r < ft.opts.nranks; r++)
		expected += ft_sends(r, ft.opts.rank) ? mode.per_pair : 0;
}

static void ft_run_mode(struct ft_mode m)
{
	size_t min;

	m.per_pair = ft.opts.quick ? m.per_pair / 8 : m.per_pair;
	mode = m;
	min = m.max_len;
	salt++;
	ft_rand_seed(ft.opts.rank + salt * 100);
	FT_OK(fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, sizeof(min)));
	ft_alloc();
	ft_count();
	if (expected && !mode.late)
		ft_serve();
	ft_barrier();
	if (expected && mode.late)
		ft_progress_for(&e, 50);
	ft_send_all();
	while (received < expected)
		ft_step();
	ft_barrier();
	ft_progress_for(&e, 5);
	FT_CHECK(received == expected, "%d messages, %d were sent", received,
		 expected);
	FT_CHECK(!expected || cancels || mode.per_pair < 4 * mode.fits ||
		 releases, "no buffer was ever released");
	ft_cancel_rest();
	ft_free();
}

#define FT_MODE(fn, ...) \
	static void fn(void) \
	{ \
		ft_run_mode((struct ft_mode){ __VA_ARGS__ }); \
	}

FT_MODE(ft_case_buffers_take_all_senders, .nbufs = 2, .fits = 16,
	.max_len = 500, .per_pair = 8000)
FT_MODE(ft_case_one_buffer_takes_all, .nbufs = 1, .fits = 8, .max_len = 500,
	.per_pair = 4000)
FT_MODE(ft_case_tight_buffers_are_released, .nbufs = 2, .fits = 1,
	.max_len = 5000, .per_pair = 2000)
FT_MODE(ft_case_buffers_take_large, .nbufs = 3, .fits = 5, .max_len = 150000,
	.per_pair = 1000)
FT_MODE(ft_case_late_buffers_take_unexpected, .nbufs = 4, .fits = 3,
	.max_len = 20000, .per_pair = 1000, .late = true)
FT_MODE(ft_case_buffers_of_all_take_all, .nbufs = 2, .fits = 16,
	.max_len = 500, .per_pair = 4000, .to_all = true)
FT_MODE(ft_case_buffers_of_all_take_large, .nbufs = 8, .fits = 4,
	.max_len = 100000, .per_pair = 500, .to_all = true)
FT_MODE(ft_case_canceled_buffers_are_released, .nbufs = 3, .fits = 8,
	.max_len = 9000, .per_pair = 4000, .cancel = true)

/* One sender after the other: one path carries all messages of a run. */
static void ft_case_buffers_take_each_sender(void)
{
	int r;

	for (r = 1; r < ft.opts.nranks; r++)
		ft_run_mode((struct ft_mode){
			.nbufs = 2, .fits = 16, .max_len = 500,
			.per_pair = 8000, .only = r,
		});
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "buffers take messages of each sender alone",
		  ft_case_buffers_take_each_sender },
		{ "buffers take messages of all senders",
		  ft_case_buffers_take_all_senders },
		{ "one buffer takes all messages",
		  ft_case_one_buffer_takes_all },
		{ "buffers for one message are released each time",
		  ft_case_tight_buffers_are_released },
		{ "buffers take large messages", ft_case_buffers_take_large },
		{ "buffers posted late take unexpected messages",
		  ft_case_late_buffers_take_unexpected },
		{ "buffers of all ranks take all messages",
		  ft_case_buffers_of_all_take_all },
		{ "buffers of all ranks take large messages",
		  ft_case_buffers_of_all_take_large },
		{ "canceled buffers are released under load",
		  ft_case_canceled_buffers_are_released },
	};
	struct ft_cfg cfg = {
		.caps = FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV,
		.threading = FI_THREAD_DOMAIN,
	};

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "multi_recv", .nranks = 4, .min_ranks = 2, .run = ft_run,
};
