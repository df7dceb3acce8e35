/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 1 sends thousands of messages before rank 0 posts a receive. Rank 0
 * receives them in order, or by tag in reverse order.
 */

#include <sched.h>

#include "common/ft.h"

#define FT_MANY 5000
/*
 * number of unexpected messages that every core can hold; tcp holds 64 of each
 * peer
 */
#define FT_SAVED 60

static struct ft_ep e;
static struct ft_buf buf;
static struct ft_op *op;

struct ft_flood {
	int count;
	size_t len;
	bool tagged;
	bool reverse;
	enum ft_tx how;
};

static struct ft_xfer ft_at(const struct ft_flood *f, int i)
{
	struct ft_xfer x = {
		.buf = buf.ptr + (size_t)i * f->len, .len = f->len,
		.desc = buf.desc, .tagged = f->tagged,
		.tag = f->reverse ? i : 1, .addr = FI_ADDR_UNSPEC,
	};

	return x;
}

/*
 * Sends all messages. The provider may return -FI_EAGAIN until messages are
 * consumed. So the receiver does not wait until all are sent, but starts to
 * receive after 300 ms.
 */
static void ft_send_flood(const struct ft_flood *f)
{
	struct ft_xfer x;
	int i;

	for (i = 0; i < f->count; i++) {
		x = ft_at(f, i);
		ft_fill(x.buf, x.len, i);
		ft_tx(&e, f->how, 0, &x, &op[i]);
	}
	for (i = 0; i < f->count; i++)
		ft_wait(&e, &op[i]);
	ft_barrier();
}

static void ft_recv_flood(const struct ft_flood *f)
{
	struct ft_xfer x;
	int i, k;

	ft_progress_for(&e, 300);
	for (k = 0; k < f->count; k++) {
		i = f->reverse ? f->count - 1 - k : k;
		x = ft_at(f, i);
		ft_rx(&e, FT_RX_RECV, &x, &op[i]);
		if (k % 3 == 0)
			ft_progress(&e);
	}
	for (i = 0; i < f->count; i++) {
		ft_wait(&e, &op[i]);
		FT_CHECK(op[i].len == f->len, "%zu bytes", op[i].len);
		ft_verify(buf.ptr + (size_t)i * f->len, f->len, i, "flood");
	}
	ft_barrier();
}

static void ft_run_flood(struct ft_flood f)
{
	bool small = f.len <= e.info->tx_attr->inject_size;

	/*
	 * the first receive matches the last message, so all messages must be
	 * stored, and the core may have no space for more
	 */
	if (f.reverse && ft_path(&e, !ft.opts.rank) == FI_DUO_CORE &&
	    f.count > FT_SAVED)
		f.count = FT_SAVED;
	f.how = small ? FT_TX_INJECT : FT_TX_SEND;
	op = calloc(f.count, sizeof(*op));
	FT_CHECK(op, "no memory");
	ft_buf_alloc(&e, &buf, f.count * f.len);
	ft_barrier();
	if (ft.opts.rank)
		ft_send_flood(&f);
	else
		ft_recv_flood(&f);
	ft_buf_free(&buf);
	free(op);
}

#define FT_FLOOD(fn, ...) \
	static void fn(void) \
	{ \
		ft_run_flood((struct ft_flood){ __VA_ARGS__ }); \
	}

FT_FLOOD(ft_small_msg, .count = FT_MANY, .len = 32)
FT_FLOOD(ft_small_tagged, .count = FT_MANY, .len = 32, .tagged = true)
FT_FLOOD(ft_small_reverse, .count = FT_MANY, .len = 32, .tagged = true,
	 .reverse = true)
FT_FLOOD(ft_medium_tagged, .count = FT_MANY, .len = 2000, .tagged = true)
FT_FLOOD(ft_large_msg, .count = 700, .len = 65536)
FT_FLOOD(ft_large_tagged, .count = 700, .len = 65536, .tagged = true)
FT_FLOOD(ft_large_reverse, .count = 250, .len = 65536, .tagged = true,
	 .reverse = true)

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "5000 small", ft_small_msg },
		{ "5000 small, tagged", ft_small_tagged },
		{ "5000 small, tagged, reverse", ft_small_reverse },
		{ "5000 of 2000 bytes, tagged", ft_medium_tagged },
		{ "700 of 64 KiB", ft_large_msg },
		{ "700 of 64 KiB, tagged", ft_large_tagged },
		{ "250 of 64 KiB, tagged, reverse", ft_large_reverse },
	};

	ft_open(&e, NULL);
	ft_exchange(&e);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "unexpected", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
