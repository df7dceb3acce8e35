/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * All ranks send random tagged and untagged messages of random sizes to all
 * ranks, including themselves. Receives use wildcards, cancel, peek and claim.
 * No message may be lost, duplicated or changed, or leave its sender's order.
 *
 * -a          also multi-receive buffers, RMA and atomics
 * -t THREADS  each with its endpoint, in one domain (default 1)
 * -m SECONDS  repeats the rounds for this time
 * -w N        the last N ranks use the core only
 */

#include <sched.h>

#include "soak.h"

#define FT_MAX_THREADS 8
#define FT_LEN_BITS 18

int ft_per_pair;
bool ft_all;

static struct ft_load loads[FT_MAX_THREADS];
static int threads = 1, seconds, without;
static atomic_int running;

bool ft_takes_part(const struct ft_load *l, int rank)
{
	return ft_all && (l->e.peer[rank].duo ||
			  ft_has_prefix(ft.opts.prov, "near"));
}

static uint32_t ft_hash(const struct ft_load *l, uint32_t from, int kind,
			uint32_t seq)
{
	uint32_t h = from * 7919 + (uint32_t)kind * 104729 + l->id * 15485863 +
		     l->round * 32452843 + ft.opts.seed * 49979687 + seq + 1;

	h = (h ^ (h >> 16)) * 0x85ebca6bu;
	h = (h ^ (h >> 13)) * 0xc2b2ae35u;
	return h ^ (h >> 16);
}

/* Returns a length by a hash. Each number of bits is equally likely. */
size_t ft_len(const struct ft_load *l, uint32_t from, int kind, uint32_t seq)
{
	uint32_t h = ft_hash(l, from, kind, seq);
	uint32_t bits = h % FT_LEN_BITS;
	size_t len = sizeof(struct ft_hdr) + ((h >> 8) & ((1u << bits) - 1));

	return len > ft.opts.max_size ? ft.opts.max_size : len;
}

unsigned int ft_seed(const struct ft_load *l, uint32_t from, int kind,
		     uint32_t seq)
{
	return ft_hash(l, from, kind + 2, seq);
}

/* Sends the next message, or on -FI_EAGAIN leaves it to a later call. */
static void ft_send_next(struct ft_load *l)
{
	int k = l->sent % FT_DEPTH, kind = ft_rand(FT_KINDS), to, how, i;
	struct ft_hdr hdr = { .from = ft.opts.rank };
	struct ft_op *op = &l->txop[k];
	struct ft_xfer x = { .len = 0 };
	ssize_t ret;

	if (l->sent == l->to_send ||
	    (l->sent >= FT_DEPTH && !atomic_load(&op->done)))
		return;
	FT_CHECK(l->sent < FT_DEPTH || !op->err, "a send failed: %d", op->err);
	to = ft_rand(ft.opts.nranks);
	for (i = 0; l->next_seq[to][kind] == (uint32_t)ft_per_pair; i++) {
		kind = i % FT_KINDS;
		to = i ? (to + kind) % ft.opts.nranks : to;
	}
	x.tagged = kind;
	hdr.seq = l->next_seq[to][kind];
	x.buf = l->txbuf[k].ptr;
	x.desc = l->txbuf[k].desc;
	x.len = ft_len(l, hdr.from, kind, hdr.seq);
	x.tag = hdr.seq & FT_TAGS;
	x.data = hdr.seq;
	ft_fill(x.buf, x.len, ft_seed(l, hdr.from, kind, hdr.seq));
	memcpy(x.buf, &hdr, sizeof(hdr));
	do {
		how = ft_rand(FT_TX_COUNT);
	} while (ft_tx_is_inject(how) &&
		 x.len > l->e.info->tx_attr->inject_size);
	ft_op_reset(op);
	ret = ft_tx_try(&l->e, how, l->e.peer[to].addr, &x, op);
	if (ret == -FI_EAGAIN) {
		op->done = 1;
		return;
	}
	FT_CHECK(!ret, "%s to rank %d: %zd", ft_tx_name[how], to, ret);
	ft_tx_counted(&l->e, to);
	op->done = ft_tx_is_inject(how);
	l->next_seq[to][kind]++;
	l->sent++;
}

/*
 * Makes one random step. Returns false if this endpoint has posted all sends of
 * the round and received all messages. Makes no peeks over rxd, which lacks
 * FI_PEEK, and sockets, where a peek finds a message that is still arriving.
 */
static bool ft_step(struct ft_load *l)
{
	struct ft_kind *kind = &l->kinds[ft_rand(FT_KINDS)];
	bool tame = kind->posted > kind->want * 2;

	switch (ft_rand(12)) {
	case 0:
		if (!tame)
			ft_cancel_one(l, kind);
		break;
	case 1:
		if (!ft_has_prefix(ft.opts.prov, "udp") &&
		    !ft_has_prefix(ft.opts.prov, "sockets"))
			ft_probe(l, &l->kinds[1]);
		break;
	case 2: case 3: case 4:
		ft_post(l, kind - l->kinds);
		break;
	case 5: case 6: case 7:
		ft_send_next(l);
		break;
	case 8:
		if (ft_takes_part(l, ft.opts.rank))
			ft_verbs_step(l);
		/* fall through */
	default:
		if (!ft_progress(&l->e))
			sched_yield();
	}
	ft_sweep(l, kind);
	return l->sent < l->to_send || ft_recv_missing(l);
}

/* Thread: one round of an endpoint, then progress until all threads end. */
static void *ft_round(void *arg)
{
	struct ft_load *l = arg;
	int i;

	ft_rand_seed(ft.opts.rank * 17 + l->id * 1000 + l->round * 100000);
	while (ft_step(l))
		;
	for (i = 0; i < FT_DEPTH; i++)
		ft_wait(&l->e, &l->txop[i]);
	ft_verbs_end(l);
	ft_recv_end(l);
	l->all_sent += l->sent;
	atomic_fetch_sub(&running, 1);
	while (atomic_load(&running))
		if (!ft_progress(&l->e))
			sched_yield();
	return NULL;
}

static void ft_begin(struct ft_load *l, unsigned int round)
{
	l->round = round;
	l->sent = 0;
	memset(l->next_seq, 0, sizeof(l->next_seq));
	ft_recv_begin(l);
}

static bool ft_again(uint64_t end_ns)
{
	bool mine = ft_now_ns() < end_ns, all[FT_MAX_RANKS];

	ft_allgather(&mine, sizeof(mine), all);
	return all[0];
}

static void ft_rounds(void)
{
	uint64_t end_ns = ft_now_ns() + seconds * 1000000000ull;
	unsigned int round = 0;
	int t;

	do {
		for (t = 0; t < threads; t++)
			ft_begin(&loads[t], round);
		ft_barrier();
		atomic_store(&running, threads);
		for (t = 0; t < threads; t++)
			FT_CHECK(!pthread_create(&loads[t].thread, NULL,
						 ft_round, &loads[t]),
				 "pthread_create");
		for (t = 0; t < threads; t++)
			pthread_join(loads[t].thread, NULL);
		ft_barrier();
		for (t = 0; t < threads; t++)
			ft_verbs_check(&loads[t]);
		round++;
	} while (ft_again(end_ns));
}

static void ft_setup(struct ft_load *l)
{
	struct ft_cfg cfg = {
		.caps = FI_SOURCE | (ft_all ? FI_MULTI_RECV | FI_RMA |
				     FI_ATOMIC : 0),
		.threading = threads > 1 ? FI_THREAD_COMPLETION :
			     FI_THREAD_UNSPEC,
		.share = l == loads ? NULL : &loads[0].e,
	};
	int i;

	l->id = l - loads;
	ft_open(&l->e, &cfg);
	ft_exchange(&l->e);
	l->to_send = ft_per_pair * FT_KINDS * ft.opts.nranks;
	ft_recv_open(l);
	ft_verbs_open(l);
	for (i = 0; i < FT_DEPTH; i++)
		ft_buf_alloc(&l->e, &l->txbuf[i], FT_MAX_LEN);
}

static void ft_finish(struct ft_load *l)
{
	bool near = ft_has_prefix(ft.opts.prov, "near");
	int i;

	printf("soak: rank %d: %lu messages sent, %lu of them over the core, "
	       "%lu received in multi-receive buffers, %lu receives canceled, "
	       "%lu claimed, %lu writes, %lu reads, %lu additions\n",
	       ft.opts.rank, (unsigned long)l->all_sent,
	       near ? 0 : (unsigned long)l->e.tx[FI_DUO_CORE],
	       (unsigned long)l->in_multi,
	       (unsigned long)l->cancels, (unsigned long)l->claims,
	       (unsigned long)l->writes, (unsigned long)l->reads,
	       (unsigned long)l->additions);
	ft_recv_close(l);
	ft_verbs_close(l);
	for (i = 0; i < FT_DEPTH; i++)
		ft_buf_free(&l->txbuf[i]);
	ft_close(&l->e);
}

static void ft_run(void)
{
	int t;

	ft.phase = "soak";
	ft_per_pair = ft.opts.quick ? 150 : 1500;
	if (ft.opts.rank >= ft.opts.nranks - without)
		setenv("FI_OFI_DUO_LOCAL", "off", 1);
	for (t = 0; t < threads; t++)
		ft_setup(&loads[t]);
	ft_rounds();
	ft_barrier();
	for (t = threads - 1; t >= 0; t--)
		ft_finish(&loads[t]);
}

static void ft_opt(int letter, const char *arg)
{
	switch (letter) {
	case 'a': ft_all = true; break;
	case 't': threads = atoi(arg); break;
	case 'm': seconds = atoi(arg); break;
	case 'w': without = atoi(arg); break;
	}
	FT_CHECK(threads > 0 && threads <= FT_MAX_THREADS, "-t: 1 to %d",
		 FT_MAX_THREADS);
}

const struct ft_spec ft_spec = {
	.name = "soak", .nranks = 4, .min_ranks = 1, .run = ft_run,
	.opts = "at:m:w:", .opt = ft_opt,
};
