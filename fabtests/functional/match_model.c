/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Random scripts of sends and receives, selected by a seed. The results must
 * equal a model of MPI's matching: a receive matches the earliest message that
 * fits, and a message the earliest receive that fits.
 *
 * The message that a receive matches must not depend on timing. So a script has
 * either one sender and wildcards, or several senders and directed receives
 * only.
 */

#include <sched.h>

#include "common/ft.h"

#define FT_SCRIPT 120 /* number of messages, and of receives, for each sender */
#define FT_LATER 12 /* receive i is swapped with i + ft_rand(FT_LATER) */
#define FT_SLOT_LEN 70000
#define FT_TAGS 5

struct ft_send_step {
	int rank;
	uint64_t tag;
	size_t len;
	bool taken;		/* matched in the model */
};

struct ft_recv_step {
	uint64_t tag;
	uint64_t ignore;
	int rank;		/* source; -1: any */
	int match; /* index of the send that matches in the model; -1: none */
	struct ft_op op;
};

static struct ft_ep e;
static struct ft_buf buf;
static struct ft_send_step sends[FT_SCRIPT * FT_MAX_RANKS];
static struct ft_recv_step recvs[FT_SCRIPT * FT_MAX_RANKS];
static int nsends, nrecvs;

static void ft_swap_recvs(int i, int j)
{
	struct ft_recv_step tmp = recvs[i];

	recvs[i] = recvs[j];
	recvs[j] = tmp;
}

/* Adds a receive that matches the message. Tag, mask and source vary. */
static void ft_script_recv(const struct ft_send_step *send, bool directed)
{
	struct ft_recv_step *recv = &recvs[nrecvs++];

	recv->tag = send->tag;
	recv->ignore = 0;
	recv->rank = directed || ft_rand(3) == 0 ? send->rank : -1;
	switch (ft_rand(4)) {
	case 0:
		recv->ignore = 1;
		recv->tag ^= ft_rand(2);
		break;
	case 1:
		recv->ignore = ~0ull;
		recv->tag = ft_rand(100);
		break;
	default:
		break;
	}
}

static void ft_script(int nsenders, unsigned int round)
{
	static const size_t lens[] = { 8, 64, 1000, 4096, 9000, 65536 };
	int i, s;

	ft_rand_seed(7777 + round);
	nsends = nrecvs = 0;
	for (i = 0; i < FT_SCRIPT; i++) {
		for (s = 1; s <= nsenders; s++) {
			struct ft_send_step *send = &sends[nsends++];

			send->rank = s;
			send->tag = ft_rand(FT_TAGS);
			send->len = lens[ft_rand(FT_COUNT(lens))];
			send->taken = false;
			ft_script_recv(send, nsenders > 1);
		}
	}
	for (i = 0; i < nrecvs; i++) {
		s = i + ft_rand(FT_LATER);
		if (s < nrecvs)
			ft_swap_recvs(i, s);
	}
}

static bool ft_fits(const struct ft_recv_step *recv,
		    const struct ft_send_step *send)
{
	return !send->taken && (recv->rank < 0 || recv->rank == send->rank) &&
	       !((recv->tag ^ send->tag) & ~recv->ignore);
}

static void ft_model(void)
{
	int i, k;

	for (i = 0; i < nrecvs; i++) {
		recvs[i].match = -1;
		for (k = 0; k < nsends; k++) {
			if (!ft_fits(&recvs[i], &sends[k]))
				continue;
			sends[k].taken = true;
			recvs[i].match = k;
			break;
		}
	}
}

static void ft_run_sender(void)
{
	static struct ft_op op[FT_SCRIPT];
	struct ft_xfer x = { .tagged = true, .desc = buf.desc };
	int k, n = 0;

	ft_rand_seed(ft_rand(1000) + ft.opts.rank);
	for (k = 0; k < nsends; k++) {
		if (sends[k].rank != ft.opts.rank)
			continue;
		x.buf = buf.ptr + (size_t)n * FT_SLOT_LEN;
		x.len = sends[k].len;
		x.tag = sends[k].tag;
		ft_fill(x.buf, x.len, k);
		ft_tx(&e, x.len <= e.info->tx_attr->inject_size && ft_rand(2) ?
		      FT_TX_INJECT : FT_TX_SEND, 0, &x, &op[n++]);
		if (!ft_rand(6))
			ft_progress_for(&e, ft_rand(3));
	}
	for (k = 0; k < n; k++)
		ft_wait(&e, &op[k]);
	ft_barrier();
}

static void ft_check_recv(struct ft_recv_step *recv, int i)
{
	char what[64];

	if (recv->match < 0) {
		fi_cancel(&e.ep->fid, &recv->op.ctx);
		ft_wait_err(&e, &recv->op, FI_ECANCELED);
		return;
	}
	ft_wait(&e, &recv->op);
	snprintf(what, sizeof(what), "receive %d, message %d", i, recv->match);
	FT_CHECK(recv->op.len == sends[recv->match].len &&
		 recv->op.tag == sends[recv->match].tag,
		 "%s: tag %lu and %zu bytes, not tag %lu and %zu bytes", what,
		 (unsigned long)recv->op.tag, recv->op.len,
		 (unsigned long)sends[recv->match].tag,
		 sends[recv->match].len);
	ft_verify(buf.ptr + (size_t)i * FT_SLOT_LEN, recv->op.len, recv->match,
		  what);
}

/* Receives the remaining messages, in order. */
static void ft_receive_rest(int nsenders)
{
	struct ft_xfer x = { .tagged = true, .desc = buf.desc, .buf = buf.ptr,
			     .len = FT_SLOT_LEN, .ignore = ~0ull };
	struct ft_op op = { 0 };
	int k, s;

	for (s = 1; s <= nsenders; s++) {
		x.addr = e.peer[s].addr;
		for (k = 0; k < nsends; k++) {
			if (sends[k].taken || sends[k].rank != s)
				continue;
			ft_rx(&e, FT_RX_RECV, &x, &op);
			ft_wait(&e, &op);
			FT_CHECK(op.len == sends[k].len, "left over");
			ft_verify(buf.ptr, op.len, k, "left over");
		}
	}
}

static void ft_run_receiver(int nsenders)
{
	struct ft_xfer x = { .tagged = true, .desc = buf.desc,
			     .len = FT_SLOT_LEN };
	int i;

	ft_rand_seed(ft_rand(1000));
	for (i = 0; i < nrecvs; i++) {
		x.buf = buf.ptr + (size_t)i * FT_SLOT_LEN;
		x.tag = recvs[i].tag;
		x.ignore = recvs[i].ignore;
		x.addr = recvs[i].rank < 0 ? FI_ADDR_UNSPEC :
					     e.peer[recvs[i].rank].addr;
		ft_rx(&e, ft_rand(FT_RX_COUNT), &x, &recvs[i].op);
		if (!ft_rand(5))
			ft_progress_for(&e, ft_rand(4));
	}
	for (i = 0; i < nrecvs; i++) /* first the receives that must complete */
		if (recvs[i].match >= 0)
			ft_check_recv(&recvs[i], i);
	for (i = 0; i < nrecvs; i++)
		if (recvs[i].match < 0)
			ft_check_recv(&recvs[i], i);
	ft_receive_rest(nsenders);
	ft_barrier();
}

static void ft_rounds(int nsenders)
{
	unsigned int round, rounds = ft.opts.quick ? 5 : 20;

	for (round = 0; round < rounds; round++) {
		ft_script(nsenders, round);
		ft_model();
		ft_barrier();
		if (!ft.opts.rank)
			ft_run_receiver(nsenders);
		else if (ft.opts.rank <= nsenders)
			ft_run_sender();
		else
			ft_barrier();
	}
}

static void ft_case_wildcards_match_as_model(void)
{
	ft_rounds(1);
}

static void ft_case_directed_recvs_match_as_model(void)
{
	ft_rounds(ft.opts.nranks - 1);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "wildcards match one sender as the model",
		  ft_case_wildcards_match_as_model },
		{ "directed receives match many senders as the model",
		  ft_case_directed_recvs_match_as_model },
	};
	struct ft_cfg cfg = { .caps = FI_DIRECTED_RECV };

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_buf_alloc(&e, &buf, (size_t)FT_SLOT_LEN * FT_SCRIPT *
		     (ft.opts.rank ? 1 : ft.opts.nranks - 1));
	ft_run_cases(cases, FT_COUNT(cases));
	ft_buf_free(&buf);
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "match_model", .nranks = 3, .min_ranks = 2, .run = ft_run,
};
