/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD of tagged messages, by rank 0. Local and
 * remote senders send messages of all sizes, one sender after the other.
 */

#include <sched.h>

#include "common/ft.h"

#define FT_DATA 0xfeedu
#define FT_SENDS 32

static struct ft_ep e;
static struct ft_buf buf;
static struct ft_buf txbuf[FT_SENDS];
static struct ft_op txop[FT_SENDS];
static int nsent;
static size_t len;
static int sender;
static bool directed;

static void ft_post_flags(struct ft_op *op, uint64_t tag, uint64_t ignore,
			  uint64_t flags)
{
	struct iovec iov = { buf.ptr, buf.len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .desc = &buf.desc, .iov_count = 1,
		.addr = directed ? e.peer[sender].addr : FI_ADDR_UNSPEC,
		.tag = tag, .ignore = ignore, .context = op,
	};
	ssize_t ret;

	if (flags & (FI_PEEK | FI_DISCARD)) {
		msg.msg_iov = NULL;
		msg.desc = NULL;
		msg.iov_count = 0;
	}
	op->done = 0;
	op->err = 0;
	op->uncounted = flags & (FI_PEEK | FI_DISCARD);
	ret = FT_RETRY(&e, fi_trecvmsg(e.ep, &msg, flags | FI_COMPLETION));
	FT_CHECK(!ret, "fi_trecvmsg, flags 0x%lx: %zd (%s)",
		 (unsigned long)flags, ret, fi_strerror((int)-ret));
	ft_wait_any(&e, op);
	FT_CHECK(!op->err || op->err == FI_ENOMSG, "flags 0x%lx: %d (%s)",
		 (unsigned long)flags, op->err, fi_strerror(op->err));
}

static bool ft_peek(struct ft_op *op, uint64_t tag, uint64_t ignore,
		    uint64_t flags)
{
	ft_post_flags(op, tag, ignore, FI_PEEK | flags);
	return !op->err;
}

/* Peeks until the message is found, or the program's time limit ends. */
static void ft_peek_found(struct ft_op *op, uint64_t tag, uint64_t ignore,
			  uint64_t flags)
{
	while (!ft_peek(op, tag, ignore, flags))
		sched_yield();
}

static void ft_none(uint64_t tag)
{
	struct ft_op op = { 0 };

	FT_CHECK(!ft_peek(&op, tag, 0, 0), "a message with tag %lu is seen",
		 (unsigned long)tag);
}

static void ft_check_meta(const struct ft_op *op, uint64_t tag)
{
	FT_CHECK(op->len == len, "a peek sees %zu bytes, not %zu", op->len,
		 len);
	FT_CHECK(op->tag == tag, "a peek sees tag %lu, not %lu",
		 (unsigned long)op->tag, (unsigned long)tag);
	FT_CHECK((op->flags & FI_REMOTE_CQ_DATA || ft_no_data_flag()) &&
		 op->data == FT_DATA + tag, "a peek sees flags 0x%lx, data "
		 "0x%lx", (unsigned long)op->flags, (unsigned long)op->data);
	/* cores, and shm alone, report no source for a peek */
	if (ft_path(&e, sender) == FI_DUO_LOCAL)
		FT_CHECK(op->src == e.peer[sender].addr,
			 "a peek sees source %ld, not %ld", (long)op->src,
			 (long)e.peer[sender].addr);
}

static void ft_receive(uint64_t tag, uint64_t flags, struct ft_op *op)
{
	memset(buf.ptr, 0, len);
	ft_post_flags(op, tag, 0, flags);
	FT_CHECK(!op->err && op->len == len, "error %d, %zu bytes", op->err,
		 op->len);
	ft_verify(buf.ptr, len, tag, "after a peek");
}

/*
 * Sends to rank 0. Does not wait for the end of the send: if rank 0 claims the
 * message, the send may end only when rank 0 receives the claimed message.
 */
static void ft_send_one(uint64_t tag)
{
	struct ft_buf *mine = &txbuf[nsent];
	struct ft_xfer x = { .len = len, .tagged = true, .tag = tag,
			     .data = FT_DATA + tag };

	FT_CHECK(nsent < FT_SENDS, "too many sends");
	ft_buf_alloc(&e, mine, len);
	x.buf = mine->ptr;
	x.desc = mine->desc;
	ft_fill(mine->ptr, len, tag);
	ft_tx(&e, FT_TX_SENDDATA, 0, &x, &txop[nsent++]);
}

static void ft_end_sends(void)
{
	while (nsent) {
		ft_wait(&e, &txop[--nsent]);
		ft_buf_free(&txbuf[nsent]);
	}
}

/* In rank 0: requests a message with this tag from the sender. */
static void ft_ask(uint64_t tag)
{
	uint64_t all[FT_MAX_RANKS];

	ft_allgather(&tag, sizeof(tag), all);
}

static bool ft_serve(void)
{
	uint64_t none = 0, all[FT_MAX_RANKS];

	ft_allgather(&none, sizeof(none), all);
	if (!all[0])
		return false;
	if (ft.opts.rank == sender)
		ft_send_one(all[0]);
	return true;
}

static void ft_probe_plain(void)
{
	struct ft_op op = { 0 };

	ft_none(1);
	ft_ask(1);
	ft_peek_found(&op, 1, 0, 0);
	ft_check_meta(&op, 1);
	FT_CHECK(ft_peek(&op, 1, 0, 0), "a second peek sees nothing");
	ft_check_meta(&op, 1);
	ft_none(2);
	FT_CHECK(ft_peek(&op, 77, ~0ull, 0), "any tag");
	ft_check_meta(&op, 1);
	ft_receive(1, 0, &op);
	ft_none(1);
}

static void ft_probe_claim(void)
{
	struct ft_op claim = { 0 }, other = { 0 };

	FT_CHECK(!ft_peek(&claim, 3, 0, FI_CLAIM), "claimed nothing");
	ft_ask(3);
	ft_peek_found(&claim, 3, 0, FI_CLAIM);
	ft_check_meta(&claim, 3);
	ft_none(3); /* a claimed message is not found */
	ft_ask(4); /* another message arrives while this one is claimed */
	ft_peek_found(&other, 4, 0, 0);
	ft_receive(4, 0, &other);
	ft_receive(3, FI_CLAIM, &claim);
	ft_none(3);
}

/* A message found by a wildcard peek can be claimed with any tag. */
static void ft_probe_claim_any(void)
{
	struct ft_op claim = { 0 };

	ft_ask(7);
	ft_peek_found(&claim, 99, ~0ull, FI_CLAIM);
	ft_check_meta(&claim, 7);
	ft_none(7);
	memset(buf.ptr, 0, len);
	ft_post_flags(&claim, 99, ~0ull, FI_CLAIM);
	FT_CHECK(!claim.err && claim.len == len && claim.tag == 7,
		 "error %d, %zu bytes, tag %lu", claim.err, claim.len,
		 (unsigned long)claim.tag);
	ft_verify(buf.ptr, len, 7, "claimed by wildcard");
}

static void ft_probe_discard(void)
{
	struct ft_op op = { 0 };

	ft_ask(5);
	ft_peek_found(&op, 5, 0, FI_DISCARD);
	ft_none(5);
	ft_ask(6);
	ft_peek_found(&op, 6, 0, FI_CLAIM);
	ft_post_flags(&op, 6, 0, FI_CLAIM | FI_DISCARD);
	FT_CHECK(!op.err, "discarding a claimed message: %d", op.err);
	ft_none(6);
}

/* A posted receive matches the message, so no peek may find it. */
static void ft_probe_posted(void)
{
	struct ft_op posted = { 0 }, op = { 0 };
	struct ft_buf mine;
	struct ft_xfer x = { .tagged = true, .addr = FI_ADDR_UNSPEC };
	int i;

	ft_buf_alloc(&e, &mine, len);
	x.buf = mine.ptr;
	x.len = len;
	x.desc = mine.desc;
	for (i = 0; i < 4; i++) {
		x.tag = 10 + i;
		x.ignore = i & 1 ? ~0ull : 0;
		ft_rx(&e, FT_RX_RECV, &x, &posted);
		if (i & 2) {
			/*
			 * Peek before the message is sent. Until then ofi_duo
			 * may defer the receive: the core does not have it.
			 */
			ft_none(10 + i);
			ft_ask(10 + i);
		} else {
			ft_ask(10 + i);
		}
		do {
			ft_none(10 + i);
		} while (!atomic_load(&posted.done));
		ft_wait(&e, &posted);
		ft_verify(mine.ptr, len, 10 + i, "posted before a peek");
		ft_ask(10 + i); /* no receive is posted for this message */
		ft_peek_found(&op, 10 + i, 0, 0);
		ft_check_meta(&op, 10 + i);
		ft_receive(10 + i, 0, &op);
	}
	ft_buf_free(&mine);
}

static bool ft_core_is(const char *core)
{
	return ft_has_prefix(ft.opts.prov, core) &&
	       ft_path(&e, sender) == FI_DUO_CORE;
}

/*
 * False for probes that fail because of a defect of the core:
 * - sockets fails ft_probe_posted. After a discard, its peeks find a later
 *   message before an earlier one, so it fails ft_probe_discard, too.
 * - If a large message is discarded while it is arriving, tcp fails with
 *   EFAULT, and efa's sender waits forever.
 */
static bool ft_can(void (*probe)(void))
{
	if (probe == ft_probe_discard)
		return !ft_core_is("sockets") &&
		       (len <= 4096 ||
			!(ft_core_is("tcp") || ft_core_is("efa")));
	return probe != ft_probe_posted || !ft_core_is("sockets");
}

static void ft_script(void)
{
	static void (*const probes[])(void) = {
		ft_probe_plain, ft_probe_claim, ft_probe_claim_any,
		ft_probe_discard, ft_probe_posted,
	};
	size_t i;

	if (ft.opts.rank) {
		while (ft_serve())
			;
		ft_end_sends();
		return;
	}
	for (i = 0; i < FT_COUNT(probes); i++)
		if (ft_can(probes[i]))
			probes[i]();
	ft_ask(0);
}

static void ft_all_senders(size_t size)
{
	if (size > ft.opts.max_size)
		return;
	len = size;
	ft_buf_alloc(&e, &buf, len);
	for (sender = 1; sender < ft.opts.nranks; sender++) {
		for (directed = false;; directed = true) {
			ft_script();
			ft_barrier();
			if (directed)
				break;
		}
	}
	ft_buf_free(&buf);
}

#define FT_SIZE(fn, size) \
	static void fn(void) \
	{ \
		ft_all_senders(size); \
	}

FT_SIZE(ft_size_1, 1)
FT_SIZE(ft_size_1k, 1024)
FT_SIZE(ft_size_8k, 8192)
FT_SIZE(ft_size_1m, 1 << 20)

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "1 B", ft_size_1 },
		{ "1 KiB", ft_size_1k },
		{ "8 KiB", ft_size_8k },
		{ "1 MiB", ft_size_1m },
	};
	struct ft_cfg cfg = { .caps = FI_DIRECTED_RECV | FI_SOURCE };

	if (ft_has_prefix(ft.opts.prov, "udp"))
		ft_skip("udp;ofi_rxd has no FI_PEEK");
	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "peek_claim", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
