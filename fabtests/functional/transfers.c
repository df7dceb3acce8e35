/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Calls of engines that move KV caches: NIXL's libfabric backend, without and
 * with its progress thread, and Mooncake's EFA transport.
 *
 * Several rails (domains with one endpoint each) use FI_MSG and FI_RMA without
 * tags and orders. Rank 1 reads blocks of rank 0 and of itself, or writes them
 * with remote CQ data. Messages with data announce the blocks. A rail has one
 * FI_CQ_FORMAT_DATA queue: only flags distinguish the kinds of completions.
 */

#include <pthread.h>
#include <sched.h>
#include <rdma/fi_rma.h>

#include "transfers.h"

#define FT_POSTERS 2

static struct ft_op op[FT_BLOCKS];

static void ft_end_all(struct ft_op *ops, size_t count, uint64_t flags)
{
	size_t i;

	for (i = 0; i < count; i++) {
		while (!atomic_load(&ops[i].done))
			ft_pause();
		FT_CHECK(ops[i].done == 1 && ops[i].flags & flags,
			 "%d completions, flags 0x%lx", (int)ops[i].done,
			 (long)ops[i].flags);
	}
}

static void ft_notify(struct ft_rail *rail, uint32_t data)
{
	uint8_t *note = rail->note[FT_RECVS];
	struct ft_op sent;
	ssize_t ret;

	ft_op_reset(&sent);
	ft_fill(note, FT_NOTE, data);
	for (;;) {
		pthread_mutex_lock(&rail->lock);
		ret = fi_senddata(rail->e.ep, note, FT_NOTE,
				  fi_mr_desc(rail->note_mr), data,
				  rail->e.peer[0].addr, &sent);
		pthread_mutex_unlock(&rail->lock);
		if (ret != -FI_EAGAIN)
			break;
		ft_pause();
	}
	FT_OK(ret);
	ft_tx_counted(&rail->e, 0);
	ft_end_all(&sent, 1, FI_SEND);
}

/* Writes or reads a block of a rank. Returns -FI_EAGAIN if busy. */
static ssize_t ft_move(struct ft_rail *rail, int rank, int block, bool write,
		       uint64_t flags)
{
	const size_t at = block * FT_BLOCK;
	void *desc = fi_mr_desc(rail->mr);
	const struct iovec iov = { memory + at, FT_BLOCK };
	const struct fi_rma_iov to = {
		rail->base[rank] + FT_HALF + at, FT_BLOCK, rail->key[rank],
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1,
		.addr = rail->e.peer[rank].addr, .rma_iov = &to,
		.rma_iov_count = 1, .context = &op[block], .data = block,
	};
	ssize_t ret;

	pthread_mutex_lock(&rail->lock);
	if (write)
		ret = fi_writemsg(rail->e.ep, &msg, flags);
	else if (ft_threaded)	/* NIXL after 1.4 */
		ret = fi_readmsg(rail->e.ep, &msg, flags);
	else
		ret = fi_read(rail->e.ep, iov.iov_base, FT_BLOCK, desc,
			      msg.addr, to.addr, to.key, &op[block]);
	if (!ret)
		rail->rma++;
	pthread_mutex_unlock(&rail->lock);
	return ret;
}

static void ft_move_all(int rank, bool write, uint64_t flags)
{
	ssize_t ret;
	int b;

	for (b = 0; b < FT_BLOCKS; b++) {
		ft_op_reset(&op[b]);
		/* no FI_MORE: a rail's last operation starts all of the rail */
		if (b >= FT_BLOCKS - FT_RAILS)
			flags &= ~FI_MORE;
		while ((ret = ft_move(&rails[b % FT_RAILS], rank, b, write,
				      flags)) == -FI_EAGAIN)
			ft_pause();
		FT_OK(ret);
	}
	ft_end_all(op, FT_BLOCKS, write ? FI_WRITE : FI_READ);
}

static void ft_notify_all(int count)
{
	int i, r;

	for (i = 0; ft.opts.rank && i < count; i++)
		for (r = 0; r < FT_RAILS; r++)
			ft_notify(&rails[r], i);
	for (r = 0; !ft.opts.rank && r < FT_RAILS; r++) {
		while (rails[r].notes < count)
			ft_pause();
		rails[r].notes = 0;
	}
	ft_meet();
}

/* As NIXL does, sends more messages than the target has posted receives. */
static void ft_case_notes_arrive(void)
{
	ft_notify_all(2 * FT_RECVS);
}

static void ft_case_writes_arrive(void)
{
	int r;

	if (ft.opts.rank) {
		ft_fill(memory, FT_HALF, 1);
		ft_move_all(0, true, FI_REMOTE_CQ_DATA | FI_MORE);
	}
	for (r = 0; !ft.opts.rank && r < FT_RAILS; r++)
		while (rails[r].written < FT_BLOCKS / FT_RAILS)
			ft_pause();
	ft_meet();
	if (!ft.opts.rank)
		ft_verify(memory + FT_HALF, FT_HALF, 1, "written blocks");
}

static void ft_case_reads_return_blocks(void)
{
	if (!ft.opts.rank)
		ft_fill(memory + FT_HALF, FT_HALF, 2);
	ft_meet();
	if (ft.opts.rank) {
		ft_move_all(0, false, 0);
		ft_verify(memory, FT_HALF, 2, "read blocks");
	}
	ft_meet();
}

/* A rank writes blocks to itself, then reads them. */
static void ft_case_blocks_move_within_process(void)
{
	if (ft.opts.rank) {
		ft_fill(memory, FT_HALF, 3);
		ft_move_all(1, true, 0);
		memset(memory, 0, FT_HALF);
		ft_move_all(1, false, 0);
		ft_verify(memory, FT_HALF, 3, "own blocks");
	}
	ft_meet();
}

/* As in Mooncake: threads post under a lock, another thread polls. */
static void *ft_poster(void *arg)
{
	struct ft_rail *rail;
	ssize_t ret;
	int b;

	for (b = (intptr_t)arg; b < FT_BLOCKS; b += FT_POSTERS) {
		rail = &rails[b / FT_POSTERS % FT_RAILS];
		while ((ret = ft_move(rail, 0, b, true, 0)) == -FI_EAGAIN)
			sched_yield();
		FT_OK(ret);
	}
	return NULL;
}

static void ft_case_writes_of_threads_arrive(void)
{
	pthread_t thread[FT_POSTERS];
	int t;

	for (t = 0; t < FT_BLOCKS; t++)
		ft_op_reset(&op[t]);
	if (ft.opts.rank) {
		ft_fill(memory, FT_HALF, 4);
		for (t = 0; t < FT_POSTERS; t++)
			FT_OK(-pthread_create(&thread[t], NULL, ft_poster,
					      (void *)(intptr_t)t));
		ft_end_all(op, FT_BLOCKS, FI_WRITE);
		for (t = 0; t < FT_POSTERS; t++)
			FT_OK(-pthread_join(thread[t], NULL));
	}
	/* sent after the writes, so received after them, over tcp too */
	ft_notify_all(1);
	if (!ft.opts.rank)
		ft_verify(memory + FT_HALF, FT_HALF, 4, "written blocks");
}

static void ft_run_over(const struct ft_cfg *cfg, const struct ft_case *cases,
			size_t count)
{
	ft_rails_open(cfg);
	ft_run_cases(cases, count);
	ft_rails_close();
}

/* As ft_run_over(), while a thread reads this rank's CQs. */
static void ft_run_beside_thread(const struct ft_cfg *cfg,
				 const struct ft_case *cases, size_t count)
{
	ft_rails_open(cfg);
	ft_thread_start();
	ft_run_cases(cases, count);
	ft_meet();
	ft_thread_stop();
	ft_rails_close();
}

static void ft_run(void)
{
	static const struct ft_case nixl[] = {
		{ "NIXL: messages arrive on each rail", ft_case_notes_arrive },
		{ "NIXL: writes with CQ data arrive", ft_case_writes_arrive },
		{ "NIXL: reads return the blocks",
		  ft_case_reads_return_blocks },
		{ "NIXL: blocks move within a process",
		  ft_case_blocks_move_within_process },
	}, thread[] = {
		{ "NIXL, thread: messages arrive on each rail",
		  ft_case_notes_arrive },
		{ "NIXL, thread: writes with CQ data arrive",
		  ft_case_writes_arrive },
		{ "NIXL, thread: writes of threads arrive",
		  ft_case_writes_of_threads_arrive },
		{ "NIXL, thread: reads return the blocks",
		  ft_case_reads_return_blocks },
		{ "NIXL, thread: blocks move within a process",
		  ft_case_blocks_move_within_process },
	}, mooncake[] = {
		{ "Mooncake: writes of threads arrive",
		  ft_case_writes_of_threads_arrive },
		{ "Mooncake: reads return the blocks",
		  ft_case_reads_return_blocks },
		{ "Mooncake: blocks move within a process",
		  ft_case_blocks_move_within_process },
	};
	struct ft_cfg cfg = {
		.hints = ft_hints_nixl, .raw = true,
		.format = FI_CQ_FORMAT_DATA, .api = FI_VERSION(1, 18),
	};

	if (!ft_over_tcp() && ft_offers(&cfg, FI_HMEM, 0))
		cfg.caps = FI_HMEM;
	ft_run_over(&cfg, nixl, FT_COUNT(nixl));
	ft_run_beside_thread(&cfg, thread, FT_COUNT(thread));
	cfg = (struct ft_cfg) {
		.hints = ft_hints_mooncake, .raw = true,
		.format = FI_CQ_FORMAT_DATA,
	};
	ft_run_over(&cfg, mooncake, FT_COUNT(mooncake));
}

const struct ft_spec ft_spec = {
	.name = "transfers", .nranks = 2, .run = ft_run,
};
