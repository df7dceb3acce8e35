/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Receives of soak.c: posts, cancels, claims and checks them. */

#include "soak.h"

static void ft_check_msg(const struct ft_load *l, const struct ft_op *op,
			 uint8_t *ptr, int kind, struct ft_hdr *hdr)
{
	unsigned int seed;
	size_t len;

	FT_CHECK(op->len >= sizeof(*hdr), "a message of %zu bytes", op->len);
	memcpy(hdr, ptr, sizeof(*hdr));
	FT_CHECK(hdr->from < (uint32_t)ft.opts.nranks &&
		 hdr->seq < (uint32_t)ft_per_pair, "not a header: %u, %u",
		 hdr->from, hdr->seq);
	len = ft_len(l, hdr->from, kind, hdr->seq);
	FT_CHECK(op->len == len, "message %u of rank %u: %zu bytes, not %zu",
		 hdr->seq, hdr->from, op->len, len);
	if (kind)
		FT_CHECK(op->tag == (hdr->seq & FT_TAGS), "tag %lu",
			 (unsigned long)op->tag);
	FT_CHECK(!(op->flags & FI_REMOTE_CQ_DATA) || op->data == hdr->seq,
		 "data %lu", (unsigned long)op->data);
	FT_CHECK(op->src == l->e.peer[hdr->from].addr, "source %ld, rank %u",
		 (long)op->src, hdr->from);
	seed = ft_seed(l, hdr->from, kind, hdr->seq);
	ft_fill(ptr, sizeof(*hdr), seed);
	ft_verify(ptr, len, seed, "soak");
}

/* Handles a completion of a multi-receive buffer. */
static void ft_multi_each(struct ft_op *op,
			  const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	const struct ft_op msg = { .len = entry->len, .flags = entry->flags,
				   .data = entry->data, .src = src };
	struct ft_multi *m = (struct ft_multi *)op;
	struct ft_load *l = m->load;
	uint8_t *ptr = entry->buf;
	struct ft_hdr hdr;

	if (entry->flags & FI_RECV) {
		FT_CHECK(ptr >= m->buf.ptr && ptr + entry->len <=
			 m->buf.ptr + m->buf.len, "a message of %zu bytes "
			 "outside of its buffer", entry->len);
		ft_check_msg(l, &msg, ptr, 0, &hdr);
		FT_CHECK(hdr.seq == l->multi_next[hdr.from], "multi-receive: "
			 "message %u of rank %u, not %u", hdr.seq, hdr.from,
			 l->multi_next[hdr.from]);
		l->multi_next[hdr.from]++;
		l->kinds[0].got++;
		l->in_multi++;
	}
	if (entry->flags & FI_MULTI_RECV)
		m->posted = false;
}

static void ft_multi_post(struct ft_load *l)
{
	struct ft_multi *m = &l->multis[l->multis[0].posted];
	struct iovec iov = { m->buf.ptr, m->buf.len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .desc = &m->buf.desc,
		.addr = FI_ADDR_UNSPEC, .context = &m->op,
	};
	ssize_t ret;

	if (m->posted)
		return;
	ft_op_reset(&m->op);
	m->op.each = ft_multi_each;
	m->posted = true;
	ret = fi_recvmsg(l->e.ep, &msg, FI_MULTI_RECV | FI_COMPLETION);
	FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_recvmsg: %zd", ret);
	if (ret)
		m->posted = false;
}

static void ft_multi_end(struct ft_load *l)
{
	int i;

	for (i = 0; i < FT_MULTI_BUFS; i++) {
		if (!l->multis[i].posted)
			continue;
		FT_OK(fi_cancel(&l->e.ep->fid, &l->multis[i].op));
		ft_wait_err(&l->e, &l->multis[i].op, FI_ECANCELED);
		l->multis[i].posted = false;
	}
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

void ft_post(struct ft_load *l, int k)
{
	struct ft_kind *kind = &l->kinds[k];
	struct ft_xfer x = { .len = FT_MAX_LEN, .tagged = k, .ignore = ~0ull,
			     .addr = FI_ADDR_UNSPEC };
	struct ft_slot *slot;

	if (!k && l->multi) {
		ft_multi_post(l);
		return;
	}
	if (!kind->nidle || kind->posted + 1 >= kind->capacity)
		return;
	slot = ft_new_slot(kind);
	x.buf = slot->buf->ptr;
	x.desc = slot->buf->desc;
	ft_rx(&l->e, ft_rand(FT_RX_COUNT), &x, &slot->op);
}

static void ft_settle(struct ft_load *l, struct ft_kind *kind,
		      struct ft_slot *slot)
{
	struct ft_hdr hdr;

	if (slot->op.err) {
		FT_CHECK(slot->op.err == FI_ECANCELED, "%d (%s)", slot->op.err,
			 fi_strerror(slot->op.err));
		slot->from = -2;
		l->cancels++;
	} else {
		ft_check_msg(l, &slot->op, slot->buf->ptr, kind - l->kinds,
			     &hdr);
		slot->from = hdr.from;
		slot->seq = hdr.seq;
		kind->got++;
	}
	kind->idle[kind->nidle++] = slot->buf;
}

void ft_sweep(struct ft_load *l, struct ft_kind *kind)
{
	int i;

	for (i = kind->oldest; i < kind->posted; i++)
		if (kind->slots[i].from == -1 &&
		    atomic_load(&kind->slots[i].op.done))
			ft_settle(l, kind, &kind->slots[i]);
	while (kind->oldest < kind->posted &&
	       kind->slots[kind->oldest].from != -1)
		kind->oldest++;
}

void ft_cancel_one(struct ft_load *l, struct ft_kind *kind)
{
	struct ft_slot *slot;

	if (kind->oldest == kind->posted)
		return;
	slot = &kind->slots[kind->oldest +
			    ft_rand(kind->posted - kind->oldest)];
	if (slot->from != -1)
		return;
	fi_cancel(&l->e.ep->fid, &slot->op.ctx);
	ft_wait_any(&l->e, &slot->op);
}

/*
 * Claims and receives a message found by a peek, as MPI_Mprobe does. A peek
 * finds only messages that no posted receive has matched. So the claim uses the
 * next slot: the order of the slots remains the order of matching.
 */
void ft_probe(struct ft_load *l, struct ft_kind *kind)
{
	struct ft_op op = { .uncounted = true };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .ignore = ~0ull,
				     .context = &op };
	struct ft_ep *e = &l->e;
	struct ft_slot *slot;
	struct iovec iov;

	if (kind->posted + 1 >= kind->capacity || !kind->nidle)
		return;
	FT_OK(FT_RETRY(e, fi_trecvmsg(e->ep, &msg, FI_PEEK | FI_CLAIM |
				      FI_COMPLETION)));
	ft_wait_any(e, &op);
	FT_CHECK(!op.err || op.err == FI_ENOMSG, "a peek: %d", op.err);
	if (op.err)
		return;
	slot = ft_new_slot(kind);
	iov.iov_base = slot->buf->ptr;
	iov.iov_len = FT_MAX_LEN;
	msg.msg_iov = &iov;
	msg.desc = &slot->buf->desc;
	msg.iov_count = 1;
	op.done = 0;
	op.uncounted = false;
	FT_OK(FT_RETRY(e, fi_trecvmsg(e->ep, &msg, FI_CLAIM | FI_COMPLETION)));
	ft_wait(e, &op);
	slot->op = op;
	l->claims++;
}

static void ft_check_order(struct ft_load *l, struct ft_kind *kind)
{
	uint32_t next[FT_MAX_RANKS] = { 0 };
	int i;

	for (i = 0; i < kind->posted; i++) {
		struct ft_slot *slot = &kind->slots[i];

		if (slot->from < 0)
			continue;
		FT_CHECK(slot->seq == next[slot->from], "kind %d, receive %d: "
			 "message %u of rank %d before %u",
			 (int)(kind - l->kinds), i, slot->seq, slot->from,
			 next[slot->from]);
		next[slot->from]++;
	}
}

void ft_recv_open(struct ft_load *l)
{
	size_t min = FT_MAX_LEN;
	int k, i;

	for (k = 0; k < FT_KINDS; k++) {
		struct ft_kind *kind = &l->kinds[k];

		kind->want = ft_per_pair * ft.opts.nranks;
		kind->capacity = kind->want * 3 + FT_KEEP;
		kind->slots = calloc(kind->capacity, sizeof(*kind->slots));
		FT_CHECK(kind->slots, "no memory");
		for (i = 0; i < FT_KEEP; i++) {
			ft_buf_alloc(&l->e, &kind->bufs[i], FT_MAX_LEN);
			kind->idle[kind->nidle++] = &kind->bufs[i];
		}
	}
	if (!ft_all)
		return;
	FT_OK(fi_setopt(&l->e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, sizeof(min)));
	for (i = 0; i < FT_MULTI_BUFS; i++) {
		l->multis[i].load = l;
		ft_buf_alloc(&l->e, &l->multis[i].buf, 4 * FT_MAX_LEN);
	}
}

void ft_recv_begin(struct ft_load *l)
{
	int k;

	for (k = 0; k < FT_KINDS; k++)
		l->kinds[k].posted = l->kinds[k].oldest = l->kinds[k].got = 0;
	memset(l->multi_next, 0, sizeof(l->multi_next));
	l->multi = ft_all && ft_takes_part(l, ft.opts.rank) && (l->round + l->id) % 2;
}

bool ft_recv_missing(const struct ft_load *l)
{
	return l->kinds[0].got < l->kinds[0].want ||
	       l->kinds[1].got < l->kinds[1].want;
}

void ft_recv_end(struct ft_load *l)
{
	struct ft_kind *kind;
	int i;

	ft_multi_end(l);
	for (kind = l->kinds; kind < l->kinds + FT_KINDS; kind++) {
		for (i = kind->oldest; i < kind->posted; i++) {
			struct ft_slot *slot = &kind->slots[i];

			if (slot->from != -1)
				continue;
			fi_cancel(&l->e.ep->fid, &slot->op.ctx);
			ft_wait_err(&l->e, &slot->op, FI_ECANCELED);
			kind->idle[kind->nidle++] = slot->buf;
		}
		ft_check_order(l, kind);
	}
}

void ft_recv_close(struct ft_load *l)
{
	int k, i;

	for (k = 0; k < FT_KINDS; k++) {
		for (i = 0; i < FT_KEEP; i++)
			ft_buf_free(&l->kinds[k].bufs[i]);
		free(l->kinds[k].slots);
	}
	for (i = 0; ft_all && i < FT_MULTI_BUFS; i++)
		ft_buf_free(&l->multis[i].buf);
}
