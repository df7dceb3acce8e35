/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 0 keeps a window of receives posted, and all other ranks send. Each
 * sender's messages must match receives in the order of posting. No message may
 * be lost, duplicated, changed or reported with another source.
 */

#include <sched.h>

#include "common/ft.h"

#define FT_MAX_LEN 200000
#define FT_TAG 0x500u
#define FT_TAG_BITS 0xffu

struct ft_hdr {
	uint32_t rank;
	uint32_t seq;
	uint32_t len;
	uint32_t seed;
};

/* A posted receive; the array is in the order of posting. */
struct ft_slot {
	struct ft_op op;
	struct ft_buf *buf;
	int only;		/* rank that may match; -1: any rank */
	int from; /* rank that matched; -1: none yet */
	uint32_t seq;
};

struct ft_mode {
	int window;
	size_t max_len;
	bool tagged;
	bool mask; /* receives ignore some bits of tags */
	bool directed;		/* every third receive is directed */
	int per_sender;
};

static struct ft_ep e;
static struct ft_mode mode;
static struct ft_slot *slots;
static int posted, matched, total;
static int directed; /* number of directed receives that are posted */
static unsigned int salt;

static size_t ft_len(int rank, int seq)
{
	static const size_t lens[] = { 16, 17, 100, 1000, 5000, 20000,
				       70000, 200000 };
	size_t len = lens[(seq * 7 + rank * 3 + seq / 8) % FT_COUNT(lens)];

	return len < mode.max_len ? len : mode.max_len - seq % 13;
}

static void ft_post_slot(struct ft_buf *buf)
{
	struct ft_slot *slot = &slots[posted];
	struct ft_xfer x = {
		.buf = buf->ptr, .len = mode.max_len, .desc = buf->desc,
		.tagged = mode.tagged, .tag = FT_TAG,
		.ignore = mode.mask ? FT_TAG_BITS : 0,
		.addr = FI_ADDR_UNSPEC,
	};

	slot->buf = buf;
	slot->from = slot->only = -1;
	/*
	 * most receives stay wildcards: a directed receive never ends if its
	 * sender has no more messages
	 */
	if (mode.directed && posted % 3 == 1 && directed < mode.window / 3) {
		directed++;
		slot->only = 1 + ft_rand(ft.opts.nranks - 1);
		x.addr = e.peer[slot->only].addr;
	}
	ft_rx(&e, posted % FT_RX_COUNT, &x, &slot->op);
	posted++;
}

/* Checks a completed receive, but not the order. */
static void ft_match_slot(struct ft_slot *slot)
{
	struct ft_hdr hdr;

	FT_CHECK(!slot->op.err, "a receive failed: %d (%s)", slot->op.err,
		 fi_strerror(slot->op.err));
	memcpy(&hdr, slot->buf->ptr, sizeof(hdr));
	FT_CHECK(hdr.rank > 0 && hdr.rank < (uint32_t)ft.opts.nranks &&
		 hdr.seq < (uint32_t)mode.per_sender && hdr.seed == salt,
		 "rank %u, message %u, seed %u: not a header", hdr.rank,
		 hdr.seq, hdr.seed);
	FT_CHECK(slot->op.len == hdr.len &&
		 hdr.len == ft_len(hdr.rank, hdr.seq),
		 "message %u of rank %u: %zu bytes, not %zu", hdr.seq,
		 hdr.rank, slot->op.len, ft_len(hdr.rank, hdr.seq));
	ft_verify(slot->buf->ptr + sizeof(hdr), hdr.len - sizeof(hdr),
		  hdr.rank * 1000 + hdr.seq, "any source");
	FT_CHECK(slot->only < 0 || slot->only == (int)hdr.rank,
		 "a receive for rank %d has a message of rank %u", slot->only,
		 hdr.rank);
	if (e.info->caps & FI_SOURCE)
		FT_CHECK(slot->op.src == e.peer[hdr.rank].addr,
			 "source %ld, not %ld (rank %u)", (long)slot->op.src,
			 (long)e.peer[hdr.rank].addr, hdr.rank);
	if (mode.mask)
		FT_CHECK(slot->op.tag == (FT_TAG | (hdr.seq & FT_TAG_BITS)),
			 "tag 0x%lx", (unsigned long)slot->op.tag);
	directed -= slot->only >= 0;
	slot->from = hdr.rank;
	slot->seq = hdr.seq;
	matched++;
}

/* Handles completed receives, and posts the same number of new ones. */
static void ft_sweep(int *oldest)
{
	int i, end = posted;

	for (i = *oldest; i < end; i++) {
		if (slots[i].from >= 0 || !atomic_load(&slots[i].op.done))
			continue;
		ft_match_slot(&slots[i]);
		if (matched < total)
			ft_post_slot(slots[i].buf);
	}
	while (*oldest < posted && slots[*oldest].from >= 0)
		(*oldest)++;
}

static void ft_check_order(void)
{
	int next[FT_MAX_RANKS] = { 0 }, i;

	for (i = 0; i < posted; i++) {
		struct ft_slot *slot = &slots[i];

		if (slot->from < 0)
			continue;
		FT_CHECK((int)slot->seq == next[slot->from],
			 "receive %d has message %u of rank %d before %d", i,
			 slot->seq, slot->from, next[slot->from]);
		next[slot->from]++;
	}
}

static void ft_cancel_rest(int oldest)
{
	for (; oldest < posted; oldest++) {
		if (slots[oldest].from >= 0)
			continue;
		fi_cancel(&e.ep->fid, &slots[oldest].op.ctx);
		ft_wait_err(&e, &slots[oldest].op, FI_ECANCELED);
	}
}

static void ft_receive(void)
{
	struct ft_buf *bufs = calloc(mode.window, sizeof(*bufs));
	int i, oldest = 0;

	total = mode.per_sender * (ft.opts.nranks - 1);
	posted = matched = directed = 0;
	slots = calloc(total + mode.window + 1, sizeof(*slots));
	FT_CHECK(bufs && slots, "no memory");
	for (i = 0; i < mode.window; i++) {
		ft_buf_alloc(&e, &bufs[i], mode.max_len);
		ft_post_slot(&bufs[i]);
		/* the messages arrive while the second half is posted */
		if (i == mode.window / 2)
			ft_barrier();
	}
	while (matched < total) {
		if (!ft_progress(&e))
			sched_yield();
		ft_sweep(&oldest);
	}
	ft_check_order();
	ft_cancel_rest(oldest);
	ft_barrier();
	for (i = 0; i < mode.window; i++)
		ft_buf_free(&bufs[i]);
	free(bufs);
	free(slots);
}

static void ft_send_all(void)
{
	enum { DEPTH = 8 };
	struct ft_op op[DEPTH] = { 0 };
	struct ft_buf buf[DEPTH];
	struct ft_xfer x = { .tagged = mode.tagged };
	int seq, k;

	for (k = 0; k < DEPTH; k++)
		ft_buf_alloc(&e, &buf[k], FT_MAX_LEN);
	ft_barrier();
	for (seq = 0; seq < mode.per_sender + DEPTH; seq++) {
		k = seq % DEPTH;
		if (seq >= DEPTH)
			ft_wait(&e, &op[k]);
		if (seq >= mode.per_sender)
			continue;
		struct ft_hdr hdr = { ft.opts.rank, seq,
				      ft_len(ft.opts.rank, seq), salt };

		memcpy(buf[k].ptr, &hdr, sizeof(hdr));
		ft_fill(buf[k].ptr + sizeof(hdr), hdr.len - sizeof(hdr),
			ft.opts.rank * 1000 + seq);
		x.buf = buf[k].ptr;
		x.desc = buf[k].desc;
		x.len = hdr.len;
		x.tag = FT_TAG | (mode.mask ? seq & FT_TAG_BITS : 0);
		ft_tx(&e, hdr.len <= e.info->tx_attr->inject_size && seq & 1 ?
		      FT_TX_INJECT : FT_TX_SEND, 0, &x, &op[k]);
		if (!ft_rand(50))
			ft_progress_for(&e, 1);
	}
	ft_barrier();
	for (k = 0; k < DEPTH; k++)
		ft_buf_free(&buf[k]);
}

static void ft_run_mode(struct ft_mode m)
{
	m.per_sender = ft.opts.quick ? 300 : 2000;
	if (m.max_len > ft.opts.max_size)
		m.max_len = ft.opts.max_size;
	mode = m;
	salt++;
	ft_rand_seed(ft.opts.rank + salt * 100);
	if (ft.opts.rank)
		ft_send_all();
	else
		ft_receive();
}

#define FT_MODE(fn, ...) \
	static void fn(void) \
	{ \
		ft_run_mode((struct ft_mode){ __VA_ARGS__ }); \
	}

FT_MODE(ft_msg_64, .window = 64, .max_len = FT_MAX_LEN)
FT_MODE(ft_tag_64, .window = 64, .max_len = FT_MAX_LEN, .tagged = true)
FT_MODE(ft_mask_64, .window = 64, .max_len = FT_MAX_LEN, .tagged = true,
	.mask = true)
FT_MODE(ft_directed_64, .window = 64, .max_len = FT_MAX_LEN, .tagged = true,
	.directed = true)
FT_MODE(ft_msg_directed_64, .window = 64, .max_len = 20000, .directed = true)
FT_MODE(ft_tag_1, .window = 1, .max_len = 20000, .tagged = true)
FT_MODE(ft_msg_1000, .window = 1000, .max_len = 5000)
FT_MODE(ft_tag_1000, .window = 1000, .max_len = 5000, .tagged = true)

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "msg, 64 wildcards", ft_msg_64 },
		{ "tagged, 64 wildcards", ft_tag_64 },
		{ "tagged, 64 wildcards, masked tags", ft_mask_64 },
		{ "tagged, 1 wildcard", ft_tag_1 },
		{ "msg, 1000 wildcards", ft_msg_1000 },
		{ "tagged, 1000 wildcards", ft_tag_1000 },
		{ "tagged, wildcards and directed", ft_directed_64 },
	};
	static const struct ft_case untagged[] = {
		{ "msg, wildcards and directed", ft_msg_directed_64 },
	};
	struct ft_cfg cfg = {
		.caps = FI_SOURCE | FI_DIRECTED_RECV,
		.threading = FI_THREAD_DOMAIN,
	};

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_run_cases(cases, FT_COUNT(cases));
	if (ft_directs_untagged(&e) && ft_cancels_directed(&e))
		ft_run_cases(untagged, FT_COUNT(untagged));
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "any_source", .nranks = 4, .min_ranks = 2, .run = ft_run,
};
