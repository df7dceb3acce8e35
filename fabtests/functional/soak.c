/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * All ranks send to all ranks, including themselves, random tagged and untagged
 * messages of all sizes, by all calls. They receive with wildcards, cancel,
 * peek and claim at the same time. The test checks order and contents for each
 * sender and kind, and that no message is lost or duplicated.
 */

#include <sched.h>

#include "common/ft.h"

#define FT_MAX_LEN 150000
#define FT_DEPTH 16		/* number of pending sends */
#define FT_KEEP 24 /* largest number of posted receives of each kind */
#define FT_KINDS 2		/* untagged and tagged */
#define FT_TAGS 0xfffffu

struct ft_hdr {
	uint32_t from;
	uint32_t seq;
};

struct ft_slot {
	struct ft_op op;
	struct ft_buf *buf;
	int from;		/* source; -1: not matched yet, -2: canceled */
	uint32_t seq;
};

/* Receives of one kind. */
struct ft_kind {
	struct ft_slot *slots;	/* in the order of posting */
	struct ft_buf bufs[FT_KEEP];
	struct ft_buf *idle[FT_KEEP];
	int nidle, posted, oldest, got, want, capacity;
};

static struct ft_ep e;
static struct ft_kind kinds[FT_KINDS];
static int per_pair, sent, to_send;
static struct ft_buf txbuf[FT_DEPTH];
static struct ft_op txop[FT_DEPTH];
static uint32_t next_seq[FT_MAX_RANKS][FT_KINDS];
static int claims, cancels;

static size_t ft_len(uint32_t from, int kind, uint32_t seq)
{
	static const size_t lens[] = { 8, 9, 64, 200, 1000, 4000, 4096, 9000,
				       30000, 65536, 150000 };
	uint32_t h = (from * 7919 + kind * 104729 + seq * 2654435761u) >> 7;
	size_t len = lens[h % FT_COUNT(lens)];

	return len > ft.opts.max_size ? ft.opts.max_size : len;
}

static unsigned int ft_seed(uint32_t from, int kind, uint32_t seq)
{
	return from * 131 + kind * 7 + seq * 3;
}

/*
 * Sends the next message. If the provider returns -FI_EAGAIN, a later call
 * sends it.
 */
static void ft_send_next(void)
{
	int k = sent % FT_DEPTH, kind = ft_rand(FT_KINDS), to, how, i;
	struct ft_hdr hdr = { .from = ft.opts.rank };
	struct ft_xfer x = { .len = 0 };
	ssize_t ret;

	if (sent == to_send || (sent >= FT_DEPTH &&
				!atomic_load(&txop[k].done)))
		return;
	FT_CHECK(sent < FT_DEPTH || !txop[k].err, "a send failed: %d",
		 txop[k].err);
	to = ft_rand(ft.opts.nranks);
	for (i = 0; next_seq[to][kind] == (uint32_t)per_pair; i++) {
		kind = i % FT_KINDS;
		to = i ? (to + kind) % ft.opts.nranks : to;
	}
	x.tagged = kind;
	hdr.seq = next_seq[to][kind];
	x.buf = txbuf[k].ptr;
	x.desc = txbuf[k].desc;
	x.len = ft_len(hdr.from, kind, hdr.seq);
	x.tag = hdr.seq & FT_TAGS;
	x.data = hdr.seq;
	ft_fill(txbuf[k].ptr, x.len, ft_seed(hdr.from, kind, hdr.seq));
	memcpy(txbuf[k].ptr, &hdr, sizeof(hdr));
	do {
		how = ft_rand(FT_TX_COUNT);
	} while (ft_tx_is_inject(how) && x.len > e.info->tx_attr->inject_size);
	ft_op_reset(&txop[k]);
	ret = ft_tx_try(&e, how, e.peer[to].addr, &x, &txop[k]);
	if (ret == -FI_EAGAIN) {
		txop[k].done = 1;
		return;
	}
	FT_CHECK(!ret, "%s to rank %d: %zd", ft_tx_name[how], to, ret);
	ft_tx_counted(&e, to);
	txop[k].done = ft_tx_is_inject(how);
	next_seq[to][kind]++;
	sent++;
}

static void ft_check_msg(const struct ft_op *op, uint8_t *ptr, int kind,
			 struct ft_hdr *hdr)
{
	size_t len;

	memcpy(hdr, ptr, sizeof(*hdr));
	FT_CHECK(hdr->from < (uint32_t)ft.opts.nranks &&
		 hdr->seq < (uint32_t)per_pair, "not a header: %u, %u",
		 hdr->from, hdr->seq);
	len = ft_len(hdr->from, kind, hdr->seq);
	FT_CHECK(op->len == len, "message %u of rank %u: %zu bytes, not %zu",
		 hdr->seq, hdr->from, op->len, len);
	if (kind)
		FT_CHECK(op->tag == (hdr->seq & FT_TAGS), "tag %lu",
			 (unsigned long)op->tag);
	FT_CHECK(!(op->flags & FI_REMOTE_CQ_DATA) || op->data == hdr->seq,
		 "data %lu", (unsigned long)op->data);
	FT_CHECK(op->src == e.peer[hdr->from].addr, "source %ld, rank %u",
		 (long)op->src, hdr->from);
	ft_fill(ptr, sizeof(*hdr), ft_seed(hdr->from, kind, hdr->seq));
	ft_verify(ptr, len, ft_seed(hdr->from, kind, hdr->seq), "soak");
}

static struct ft_slot *ft_new_slot(struct ft_kind *kind)
{
	struct ft_slot *slot = &kind->slots[kind->posted];

	FT_CHECK(kind->posted < kind->capacity, "too many slots");
	slot->from = -1;
	slot->buf = kind->idle[--kind->nidle];
	kind->posted++;
	return slot;
}

static void ft_post(int k)
{
	struct ft_kind *kind = &kinds[k];
	struct ft_xfer x = { .len = FT_MAX_LEN, .tagged = k, .ignore = ~0ull,
			     .addr = FI_ADDR_UNSPEC };
	struct ft_slot *slot;

	if (!kind->nidle || kind->posted + 1 >= kind->capacity)
		return;
	slot = ft_new_slot(kind);
	x.buf = slot->buf->ptr;
	x.desc = slot->buf->desc;
	ft_rx(&e, ft_rand(FT_RX_COUNT), &x, &slot->op);
}

static void ft_settle(struct ft_kind *kind, struct ft_slot *slot)
{
	struct ft_hdr hdr;

	if (slot->op.err) {
		FT_CHECK(slot->op.err == FI_ECANCELED, "%d (%s)", slot->op.err,
			 fi_strerror(slot->op.err));
		slot->from = -2;
		cancels++;
	} else {
		ft_check_msg(&slot->op, slot->buf->ptr, kind - kinds, &hdr);
		slot->from = hdr.from;
		slot->seq = hdr.seq;
		kind->got++;
	}
	kind->idle[kind->nidle++] = slot->buf;
}

static void ft_sweep(struct ft_kind *kind)
{
	int i;

	for (i = kind->oldest; i < kind->posted; i++)
		if (kind->slots[i].from == -1 &&
		    atomic_load(&kind->slots[i].op.done))
			ft_settle(kind, &kind->slots[i]);
	while (kind->oldest < kind->posted &&
	       kind->slots[kind->oldest].from != -1)
		kind->oldest++;
}

static void ft_cancel_one(struct ft_kind *kind)
{
	struct ft_slot *slot;

	if (kind->oldest == kind->posted)
		return;
	slot = &kind->slots[kind->oldest +
			    ft_rand(kind->posted - kind->oldest)];
	if (slot->from != -1)
		return;
	fi_cancel(&e.ep->fid, &slot->op.ctx);
	ft_wait_any(&e, &slot->op);
}

/*
 * Claims and receives a message that a peek has found, as MPI_Mprobe does. In
 * the order of matching the claim is after all receives posted before.
 */
static void ft_probe(struct ft_kind *kind)
{
	struct ft_op op = { .uncounted = true };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .ignore = ~0ull,
				     .context = &op };
	struct ft_slot *slot;
	struct iovec iov;

	if (kind->posted + 1 >= kind->capacity || !kind->nidle)
		return;
	FT_OK(FT_RETRY(&e, fi_trecvmsg(e.ep, &msg, FI_PEEK | FI_CLAIM |
				       FI_COMPLETION)));
	ft_wait_any(&e, &op);
	FT_CHECK(!op.err || op.err == FI_ENOMSG, "a peek: %d", op.err);
	if (op.err)
		return;
	slot = ft_new_slot(kind);
	iov.iov_base = slot->buf->ptr;
	iov.iov_len = FT_MAX_LEN;
	msg.msg_iov = &iov;
	msg.desc = &slot->buf->desc;
	msg.iov_count = 1;
	/* The claim has the same context as the peek: op. */
	op.done = 0;
	op.uncounted = false;
	FT_OK(FT_RETRY(&e, fi_trecvmsg(e.ep, &msg, FI_CLAIM | FI_COMPLETION)));
	ft_wait(&e, &op);
	slot->op = op;
	claims++;
}

static void ft_check_order(struct ft_kind *kind)
{
	uint32_t next[FT_MAX_RANKS] = { 0 };
	int i;

	for (i = 0; i < kind->posted; i++) {
		struct ft_slot *slot = &kind->slots[i];

		if (slot->from < 0)
			continue;
		FT_CHECK(slot->seq == next[slot->from], "kind %d, receive %d: "
			 "message %u of rank %d before %u", (int)(kind - kinds),
			 i, slot->seq, slot->from, next[slot->from]);
		next[slot->from]++;
	}
}

static void ft_setup(void)
{
	int k, i;

	per_pair = ft.opts.quick ? 150 : 1500;
	to_send = per_pair * FT_KINDS * ft.opts.nranks;
	for (k = 0; k < FT_KINDS; k++) {
		struct ft_kind *kind = &kinds[k];

		kind->want = per_pair * ft.opts.nranks;
		kind->capacity = kind->want * 3 + FT_KEEP;
		kind->slots = calloc(kind->capacity, sizeof(*kind->slots));
		FT_CHECK(kind->slots, "no memory");
		for (i = 0; i < FT_KEEP; i++) {
			ft_buf_alloc(&e, &kind->bufs[i], FT_MAX_LEN);
			kind->idle[kind->nidle++] = &kind->bufs[i];
		}
	}
	for (i = 0; i < FT_DEPTH; i++)
		ft_buf_alloc(&e, &txbuf[i], FT_MAX_LEN);
	ft_rand_seed(ft.opts.rank * 17);
}

/*
 * Makes one random step. No peeks over rxd, which has no FI_PEEK, and sockets,
 * where a peek finds a message that is being received.
 */
static bool ft_step(void)
{
	struct ft_kind *kind = &kinds[ft_rand(FT_KINDS)];
	bool tame = kind->posted > kind->want * 2;

	switch (ft_rand(12)) {
	case 0:
		if (!tame)
			ft_cancel_one(kind);
		break;
	case 1:
		if (!ft_has_prefix(ft.opts.prov, "udp") &&
		    !ft_has_prefix(ft.opts.prov, "sockets"))
			ft_probe(&kinds[1]);
		break;
	case 2: case 3: case 4:
		ft_post(kind - kinds);
		break;
	case 5: case 6: case 7:
		ft_send_next();
		break;
	default:
		if (!ft_progress(&e))
			sched_yield();
	}
	ft_sweep(kind);
	return sent < to_send || kinds[0].got < kinds[0].want ||
	       kinds[1].got < kinds[1].want;
}

static void ft_finish(void)
{
	int k, i;

	for (i = 0; i < FT_DEPTH; i++)
		ft_wait(&e, &txop[i]);
	for (k = 0; k < FT_KINDS; k++) {
		for (i = kinds[k].oldest; i < kinds[k].posted; i++) {
			struct ft_slot *slot = &kinds[k].slots[i];

			if (slot->from != -1)
				continue;
			fi_cancel(&e.ep->fid, &slot->op.ctx);
			ft_wait_err(&e, &slot->op, FI_ECANCELED);
		}
		ft_check_order(&kinds[k]);
	}
	ft_barrier();
	for (k = 0; k < FT_KINDS; k++)
		for (i = 0; i < FT_KEEP; i++)
			ft_buf_free(&kinds[k].bufs[i]);
	for (i = 0; i < FT_DEPTH; i++)
		ft_buf_free(&txbuf[i]);
}

static void ft_run(void)
{
	struct ft_cfg cfg = { .caps = FI_SOURCE };

	ft.phase = "soak";
	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_setup();
	ft_barrier();
	while (ft_step())
		;
	printf("rank %d: %d sent, %d and %d received, %d canceled, "
	       "%d claimed\n", ft.opts.rank, sent, kinds[0].got, kinds[1].got,
	       cancels, claims);
	ft_finish();
	ft_close(&e);
}

int main(int argc, char **argv)
{
	static const struct ft_spec spec = {
		.name = "soak", .nranks = 4, .min_ranks = 1, .run = ft_run,
	};

	return ft_main(argc, argv, &spec);
}
