/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The calls of engines that move KV caches: NIXL's libfabric backend and
 * Mooncake's EFA transport. Several rails: domains with one endpoint each, for
 * FI_MSG and FI_RMA without tags and orders. Blocks are written with remote CQ
 * data or read, and messages with data announce them. All completions are in
 * one queue of FI_CQ_FORMAT_DATA, where only the flags distinguish them. Rank 1
 * moves blocks of rank 0 and of itself.
 */

#include <pthread.h>
#include <sched.h>
#include <rdma/fi_rma.h>

#include "common/ft.h"

#define FT_RAILS 2
#define FT_RECVS 8		/* number of receives on each rail */
#define FT_NOTE 256		/* bytes of a message */
#define FT_BLOCK ((size_t)64 << 10)
#define FT_BLOCKS 32		/* number of blocks in each half of a region */
#define FT_HALF (FT_BLOCK * FT_BLOCKS)
#define FT_POSTERS 2

struct ft_rail {
	struct ft_ep e;
	struct fid_mr *mr, *note_mr;
	uint64_t key[2], base[2]; /* keys and addresses of the ranks' regions */
	/* buffers for receives; the last one is for sends */
	uint8_t note[FT_RECVS + 1][FT_NOTE];
	struct ft_op recv[FT_RECVS];
	pthread_mutex_t post;
	int notes, written; /* numbers of messages and writes that arrived */
	uint32_t last; /* data of the message or write that arrived last */
	uint64_t rma; /* number of RMA operations of this rank */
};

static struct ft_rail rails[FT_RAILS];
static uint8_t *memory; /* first half: local buffer; second half: target */
static struct ft_op op[FT_BLOCKS];

static void ft_post_recv(struct ft_rail *rail, struct ft_op *recv)
{
	uint8_t *note = rail->note[recv - rail->recv];
	void *desc = fi_mr_desc(rail->note_mr);
	const struct iovec iov = { note, FT_NOTE };
	const struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1,
		.addr = FI_ADDR_UNSPEC, .context = recv,
	};

	ft_op_reset(recv);
	FT_OK(fi_recvmsg(rail->e.ep, &msg, 0));
}

/* Handles a completion; tests the flags in the same order as NIXL. */
static void ft_end(struct ft_rail *rail, const struct fi_cq_data_entry *entry)
{
	struct ft_op *ended = entry->op_context;

	if (entry->flags & FI_RECV) {
		FT_CHECK(entry->len == FT_NOTE, "%zu bytes", entry->len);
		ft_verify(rail->note[ended - rail->recv], FT_NOTE, entry->data,
			  "note");
		rail->last = entry->data;
		rail->notes++;
		ft_post_recv(rail, ended);
	} else if (entry->flags & (FI_SEND | FI_WRITE | FI_READ)) {
		ended->flags = entry->flags;
		atomic_fetch_add(&ended->done, 1);
	} else {
		/*
		 * efa alone, over its own shm, reports FI_REMOTE_CQ_DATA only
		 */
		FT_CHECK(entry->flags & (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
			 "flags 0x%lx", (long)entry->flags);
		rail->last = entry->data;
		rail->written++;
	}
}

static void ft_poll(struct ft_rail *rail)
{
	struct fi_cq_data_entry entry[16];
	struct fi_cq_err_entry err = { 0 };
	ssize_t i, count = fi_cq_read(rail->e.rxcq, entry, FT_COUNT(entry));

	if (count == -FI_EAVAIL) {
		fi_cq_readerr(rail->e.rxcq, &err, 0);
		FT_DIE("error entry: %s", fi_strerror(err.err));
	}
	FT_CHECK(count >= 0 || count == -FI_EAGAIN, "fi_cq_read: %zd", count);
	for (i = 0; i < count; i++)
		ft_end(rail, &entry[i]);
}

static void ft_poll_all(void)
{
	int r;

	for (r = 0; r < FT_RAILS; r++)
		ft_poll(&rails[r]);
}

static void ft_meet(void)
{
	while (!ft_barrier_try())
		ft_poll_all();
}

static void ft_end_all(struct ft_op *ops, size_t count, uint64_t flags)
{
	size_t i;

	for (i = 0; i < count; i++) {
		while (!atomic_load(&ops[i].done))
			ft_poll_all();
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
	while ((ret = fi_senddata(rail->e.ep, note, FT_NOTE,
				  fi_mr_desc(rail->note_mr), data,
				  rail->e.peer[0].addr, &sent)) == -FI_EAGAIN)
		ft_poll_all();
	FT_OK(ret);
	ft_tx_counted(&rail->e, 0);
	ft_end_all(&sent, 1, FI_SEND);
}

/*
 * Starts to write or read a block of a rank; returns -FI_EAGAIN if that is not
 * possible now.
 */
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

	ret = write ? fi_writemsg(rail->e.ep, &msg, flags) :
		      fi_read(rail->e.ep, iov.iov_base, FT_BLOCK, desc,
			      msg.addr, to.addr, to.key, &op[block]);
	if (!ret)
		rail->rma++;
	return ret;
}

/* Moves all blocks, on one rail after the other. */
static void ft_move_all(int rank, bool write, uint64_t flags)
{
	ssize_t ret;
	int b;

	for (b = 0; b < FT_BLOCKS; b++) {
		ft_op_reset(&op[b]);
		/*
		 * the last operation of a rail has no FI_MORE, and starts those
		 * before it
		 */
		if (b >= FT_BLOCKS - FT_RAILS)
			flags &= ~FI_MORE;
		while ((ret = ft_move(&rails[b % FT_RAILS], rank, b, write,
				      flags)) == -FI_EAGAIN)
			ft_poll_all();
		FT_OK(ret);
	}
	ft_end_all(op, FT_BLOCKS, write ? FI_WRITE : FI_READ);
}

/* Rank 1 sends messages on each rail, and rank 0 waits for them. */
static void ft_notify_all(int count)
{
	int i, r;

	for (i = 0; ft.opts.rank && i < count; i++)
		for (r = 0; r < FT_RAILS; r++)
			ft_notify(&rails[r], i);
	for (r = 0; !ft.opts.rank && r < FT_RAILS; r++) {
		while (rails[r].notes < count)
			ft_poll_all();
		rails[r].notes = 0;
	}
	ft_meet();
}

/* As NIXL: more messages than the target has receives. */
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
			ft_poll_all();
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

/* A rank is its own target: it writes blocks without data, then reads them. */
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

/* As Mooncake: threads post, with a lock, while another thread polls. */
static void *ft_poster(void *arg)
{
	struct ft_rail *rail;
	ssize_t ret;
	int b;

	for (b = (intptr_t)arg; b < FT_BLOCKS; b += FT_POSTERS) {
		rail = &rails[b / FT_POSTERS % FT_RAILS];
		do {
			pthread_mutex_lock(&rail->post);
			ret = ft_move(rail, 0, b, true, 0);
			pthread_mutex_unlock(&rail->post);
			if (ret == -FI_EAGAIN)
				sched_yield();
		} while (ret == -FI_EAGAIN);
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
	/* sent after the writes, so it arrives after them, over tcp too */
	ft_notify_all(1);
	if (!ft.opts.rank)
		ft_verify(memory + FT_HALF, FT_HALF, 4, "written blocks");
}

/* As Mooncake: fi_mr_reg() with key 0, where the provider selects the key. */
static void ft_register(struct ft_rail *rail)
{
	const uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE |
				FI_REMOTE_READ | FI_REMOTE_WRITE;
	const int mode = rail->e.info->domain_attr->mr_mode;
	const uint64_t next = mode & FI_MR_PROV_KEY ? 0 : 1;
	uint64_t self[2], all[2][2];
	int r;

	FT_OK(fi_mr_reg(rail->e.domain, memory, 2 * FT_HALF, access, 0, 0, 0,
			&rail->mr, NULL));
	FT_OK(fi_mr_reg(rail->e.domain, rail->note, sizeof(rail->note),
			FI_SEND | FI_RECV, 0, next, 0, &rail->note_mr, NULL));
	self[0] = fi_mr_key(rail->mr);
	self[1] = mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
	ft_allgather(self, sizeof(self), all);
	for (r = 0; r < 2; r++) {
		rail->key[r] = all[r][0];
		rail->base[r] = all[r][1];
	}
}

/*
 * Hints of NIXL. Without FI_CONTEXT2, so that efa does not return efa-direct.
 */
static void ft_hints_nixl(struct fi_info *hints)
{
	hints->caps = FI_MSG | FI_RMA | FI_LOCAL_COMM | FI_REMOTE_COMM;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints->domain_attr->resource_mgmt = FI_RM_UNSPEC;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = 0;
}

static void ft_hints_mooncake(struct fi_info *hints)
{
	ft_hints_nixl(hints);
	hints->caps = FI_MSG | FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
		      FI_REMOTE_WRITE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
}

static void ft_rails_open(void (*hints)(struct fi_info *hints))
{
	const struct ft_cfg cfg = {
		.hints = hints, .raw = true, .format = FI_CQ_FORMAT_DATA,
	};
	struct ft_rail *rail;
	int i;

	memory = aligned_alloc(4096, 2 * FT_HALF);
	FT_CHECK(memory, "no memory");
	memset(memory, 0, 2 * FT_HALF);
	for (rail = rails; rail < rails + FT_RAILS; rail++) {
		memset(rail, 0, sizeof(*rail));
		pthread_mutex_init(&rail->post, NULL);
		ft_open(&rail->e, &cfg);
		ft_exchange(&rail->e);
		ft_register(rail);
		for (i = 0; i < FT_RECVS; i++)
			ft_post_recv(rail, &rail->recv[i]);
	}
	ft_meet();
}

/*
 * Checks that all operations of a rail used the path to rank 0, or to the rank
 * itself.
 */
static void ft_check_rma(struct ft_rail *rail)
{
	struct fi_duo_stats stats;
	uint64_t want[FI_DUO_PATH_COUNT] = { 0 };
	const uint64_t own = 2 * FT_BLOCKS / FT_RAILS;

	if (!rail->e.ops || !ft.opts.rank)
		return;
	want[ft_path(&rail->e, 0)] += rail->rma - own;
	want[ft_path(&rail->e, 1)] += own;
	ft_stats(&rail->e, &stats);
	FT_CHECK(stats.rma_ops[FI_DUO_LOCAL] == want[FI_DUO_LOCAL] &&
		 stats.rma_ops[FI_DUO_CORE] == want[FI_DUO_CORE],
		 "%ld RMA operations over near and %ld over the core, not %ld "
		 "and %ld", (long)stats.rma_ops[FI_DUO_LOCAL],
		 (long)stats.rma_ops[FI_DUO_CORE], (long)want[FI_DUO_LOCAL],
		 (long)want[FI_DUO_CORE]);
}

static void ft_rails_close(void)
{
	struct ft_rail *rail;

	for (rail = rails; rail < rails + FT_RAILS; rail++) {
		ft_check_rma(rail);
		ft_barrier();
		ft_check_tx(&rail->e);
		ft_check_rx(&rail->e);
		ft_barrier();
		FT_OK(fi_close(&rail->note_mr->fid));
		FT_OK(fi_close(&rail->mr->fid));
		ft_close_fids(&rail->e);
	}
	free(memory);
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
	}, mooncake[] = {
		{ "Mooncake: writes of threads arrive",
		  ft_case_writes_of_threads_arrive },
		{ "Mooncake: reads return the blocks",
		  ft_case_reads_return_blocks },
		{ "Mooncake: blocks move within a process",
		  ft_case_blocks_move_within_process },
	};

	ft_rails_open(ft_hints_nixl);
	ft_run_cases(nixl, FT_COUNT(nixl));
	ft_rails_close();
	ft_rails_open(ft_hints_mooncake);
	ft_run_cases(mooncake, FT_COUNT(mooncake));
	ft_rails_close();
}

int main(int argc, char **argv)
{
	static const struct ft_spec spec = {
		.name = "transfers", .nranks = 2, .run = ft_run,
	};

	return ft_main(argc, argv, &spec);
}
