/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * One-sided operations of soak.c: a rank writes random data into its cell of
 * another rank, reads them back, and adds to the cell's count.
 */

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "soak.h"

enum { FT_WRITE, FT_READ, FT_ADD, FT_VERBS };

void ft_verbs_open(struct ft_load *l)
{
	size_t len = ft.opts.nranks * sizeof(struct ft_cell);
	struct ft_verbs *v = &l->verbs;
	uint64_t mine[2];

	if (!ft_all)
		return;
	v->cells = calloc(ft.opts.nranks, sizeof(*v->cells));
	FT_CHECK(v->cells, "no memory");
	FT_OK(fi_mr_reg(l->e.domain, v->cells, len,
			FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 17 + l->id, 0,
			&v->mr, NULL));
	mine[0] = l->e.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
			  (uintptr_t)v->cells : 0;
	mine[1] = fi_mr_key(v->mr);
	ft_allgather(mine, sizeof(mine), v->at);
	ft_buf_alloc(&l->e, &v->buf, FT_MAX_LEN);
}

static ssize_t ft_write(struct ft_load *l, uint64_t addr)
{
	struct ft_verbs *v = &l->verbs;
	struct iovec iov = { v->buf.ptr, v->len };
	struct fi_rma_iov to = { addr, v->len, v->at[v->to].key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &v->buf.desc, .iov_count = 1,
		.addr = l->e.peer[v->to].addr, .rma_iov = &to,
		.rma_iov_count = 1, .context = &v->op,
	};

	ft_fill(v->buf.ptr, v->len, v->seed);
	return fi_writemsg(l->e.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t ft_verb(struct ft_load *l)
{
	struct ft_verbs *v = &l->verbs;
	uint64_t cell = v->at[v->to].base +
			ft.opts.rank * sizeof(struct ft_cell);
	uint64_t data = cell + offsetof(struct ft_cell, data);
	uint64_t *add = (uint64_t *)v->buf.ptr;

	switch (v->what) {
	case FT_WRITE:
		return ft_write(l, data);
	case FT_READ:
		memset(v->buf.ptr, 0, v->len);
		return fi_read(l->e.ep, v->buf.ptr, v->len, v->buf.desc,
			       l->e.peer[v->to].addr, data, v->at[v->to].key,
			       &v->op);
	default:
		*add = 1;
		return fi_fetch_atomic(l->e.ep, add, 1, v->buf.desc, add + 1,
				       v->buf.desc, l->e.peer[v->to].addr,
				       cell, v->at[v->to].key, FI_UINT64,
				       FI_SUM, &v->op);
	}
}

static void ft_verb_ended(struct ft_load *l)
{
	struct ft_verbs *v = &l->verbs;
	const uint64_t *was = (const uint64_t *)v->buf.ptr + 1;

	FT_CHECK(!v->op.err, "one-sided operation %d: %d (%s)", v->what,
		 v->op.err, fi_strerror(v->op.err));
	v->busy = false;
	if (v->what == FT_WRITE)
		l->writes++;
	if (v->what == FT_READ) {
		ft_verify(v->buf.ptr, v->len, v->seed, "a read");
		l->reads++;
	}
	if (v->what == FT_ADD) {
		FT_CHECK(*was == v->added[v->to], "rank %d had %lu additions, "
			 "not %lu", v->to, (unsigned long)*was,
			 (unsigned long)v->added[v->to]);
		v->added[v->to]++;
		l->additions++;
	}
	v->what = (v->what + 1) % FT_VERBS;
}

void ft_verbs_step(struct ft_load *l)
{
	struct ft_verbs *v = &l->verbs;
	ssize_t ret;

	if (v->busy && atomic_load(&v->op.done))
		ft_verb_ended(l);
	if (v->busy)
		return;
	if (v->what == FT_WRITE) {
		v->to = ft_rand(ft.opts.nranks);
		v->seed = ft_rand(1 << 20);
		v->len = ft_len(l, ft.opts.rank, v->to, v->seed);
	}
	if (!ft_takes_part(l, v->to))
		return;
	ft_op_reset(&v->op);
	ret = ft_verb(l);
	FT_CHECK(!ret || ret == -FI_EAGAIN, "one-sided operation %d: %zd",
		 v->what, ret);
	v->busy = !ret;
}

void ft_verbs_end(struct ft_load *l)
{
	if (!l->verbs.busy)
		return;
	ft_wait(&l->e, &l->verbs.op);
	ft_verb_ended(l);
}

void ft_verbs_check(struct ft_load *l)
{
	uint64_t all[FT_MAX_RANKS * FT_MAX_RANKS];
	struct ft_verbs *v = &l->verbs;
	int n = ft.opts.nranks, r;

	if (!ft_all)
		return;
	ft_allgather(v->added, n * sizeof(v->added[0]), all);
	for (r = 0; r < n; r++)
		FT_CHECK(v->cells[r].count == all[r * n + ft.opts.rank],
			 "%lu additions of rank %d, not %lu",
			 (unsigned long)v->cells[r].count, r,
			 (unsigned long)all[r * n + ft.opts.rank]);
}

void ft_verbs_close(struct ft_load *l)
{
	if (!ft_all)
		return;
	FT_OK(fi_close(&l->verbs.mr->fid));
	ft_buf_free(&l->verbs.buf);
	free(l->verbs.cells);
}
