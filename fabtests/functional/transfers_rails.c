/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The rails of transfers.c: opens, reads and checks them. */

#include <sched.h>

#include "transfers.h"

struct ft_rail rails[FT_RAILS];
uint8_t *memory;
bool ft_threaded;
static pthread_t thread;
static atomic_bool stop;

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
	pthread_mutex_lock(&rail->lock);
	FT_OK(fi_recvmsg(rail->e.ep, &msg, 0));
	pthread_mutex_unlock(&rail->lock);
}

/* Handles a completion. Tests the flags in the same order as NIXL. */
static void ft_end(struct ft_rail *rail, const struct fi_cq_data_entry *entry)
{
	struct ft_op *ended = entry->op_context;

	if (entry->flags & FI_RECV) {
		FT_CHECK(entry->len == FT_NOTE, "%zu bytes", entry->len);
		ft_verify(rail->note[ended - rail->recv], FT_NOTE, entry->data,
			  "note");
		atomic_fetch_add(&rail->notes, 1);
		ft_post_recv(rail, ended);
	} else if (entry->flags & (FI_SEND | FI_WRITE | FI_READ)) {
		ended->flags = entry->flags;
		atomic_fetch_add(&ended->done, 1);
	} else {
		/* efa alone, over its shm, sets FI_REMOTE_CQ_DATA only */
		FT_CHECK(entry->flags & (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
			 "flags 0x%lx", (long)entry->flags);
		atomic_fetch_add(&rail->written, 1);
	}
}

static void ft_poll(struct ft_rail *rail)
{
	struct fi_cq_data_entry entry[16];
	struct fi_cq_err_entry err = { 0 };
	ssize_t i, count;

	if (ft_threaded)
		pthread_mutex_lock(&rail->lock);
	count = fi_cq_read(rail->e.rxcq, entry, FT_COUNT(entry));
	if (ft_threaded)
		pthread_mutex_unlock(&rail->lock);
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

/* As NIXL's progress thread: polls all rails. */
static void *ft_progress_thread(void *arg)
{
	while (!atomic_load(&stop)) {
		ft_poll_all();
		sched_yield();
	}
	return NULL;
}

void ft_thread_start(void)
{
	ft_threaded = true;
	atomic_store(&stop, false);
	FT_OK(-pthread_create(&thread, NULL, ft_progress_thread, NULL));
}

void ft_thread_stop(void)
{
	atomic_store(&stop, true);
	FT_OK(-pthread_join(thread, NULL));
	ft_threaded = false;
}

void ft_pause(void)
{
	if (ft_threaded)
		sched_yield();
	else
		ft_poll_all();
}

void ft_meet(void)
{
	while (!ft_barrier_try())
		ft_pause();
}

/*
 * Registers the memory as the engines do.
 * - Mooncake: fi_mr_reg() with key 0, since the provider selects the key.
 * - NIXL: fi_mr_regattr(). If the provider selects the key, only with remote
 *   access. Otherwise the address is the key, and local access is added.
 */
static int ft_register_memory(const struct ft_rail *rail, bool nixl,
			      struct fid_mr **mr)
{
	const bool selects = rail->e.info->domain_attr->mr_mode &
			     FI_MR_PROV_KEY;
	const uint64_t remote = FI_REMOTE_READ | FI_REMOTE_WRITE;
	const uint64_t access = remote | FI_READ | FI_WRITE;
	const struct iovec iov = { memory, 2 * FT_HALF };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1,
		.access = selects ? remote : access,
		.requested_key = selects ? 0 : (uintptr_t)memory,
		.iface = FI_HMEM_SYSTEM,
	};

	return nixl ? fi_mr_regattr(rail->e.domain, &attr, 0, mr) :
		      fi_mr_reg(rail->e.domain, memory, 2 * FT_HALF,
				access | FI_SEND | FI_RECV, 0, 0, 0, mr, NULL);
}

static void ft_register(struct ft_rail *rail, bool nixl)
{
	const int mode = rail->e.info->domain_attr->mr_mode;
	const uint64_t next = mode & FI_MR_PROV_KEY ? 0 : 1;
	uint64_t self[2], all[2][2];
	int r;

	FT_OK(ft_register_memory(rail, nixl, &rail->mr));
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
 * Hints of NIXL: without FI_CONTEXT2, so that efa does not return efa-direct.
 * For tcp, NIXL sets no further MR modes.
 */
void ft_hints_nixl(struct fi_info *hints)
{
	hints->caps = FI_MSG | FI_RMA | FI_LOCAL_COMM | FI_REMOTE_COMM |
		      (hints->caps & FI_HMEM);
	if (ft_over_tcp())
		hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
	else
		hints->domain_attr->mr_mode |= FI_MR_HMEM;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints->domain_attr->resource_mgmt = FI_RM_UNSPEC;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = 0;
}

void ft_hints_mooncake(struct fi_info *hints)
{
	hints->mode = FI_CONTEXT;
	hints->domain_attr->resource_mgmt = FI_RM_UNSPEC;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = 0;
	hints->caps = FI_MSG | FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
		      FI_REMOTE_WRITE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
}

void ft_rails_open(const struct ft_cfg *cfg)
{
	struct ft_rail *rail;
	int i;

	memory = aligned_alloc(4096, 2 * FT_HALF);
	FT_CHECK(memory, "no memory");
	memset(memory, 0, 2 * FT_HALF);
	for (rail = rails; rail < rails + FT_RAILS; rail++) {
		memset(rail, 0, sizeof(*rail));
		pthread_mutex_init(&rail->lock, NULL);
		ft_open(&rail->e, cfg);
		ft_exchange(&rail->e);
		ft_register(rail, cfg->hints == ft_hints_nixl);
		for (i = 0; i < FT_RECVS; i++)
			ft_post_recv(rail, &rail->recv[i]);
	}
	ft_meet();
}

/*
 * Returns the path of RMA to a rank. If the local transport is libfabric's shm,
 * ofi_duo passes RMA to the core.
 */
static enum fi_duo_path ft_rma_path(const struct ft_ep *e, int rank)
{
	const char *peer = getenv("FI_OFI_DUO_LOCAL");

	return peer && !strcmp(peer, "shm") ? FI_DUO_CORE : ft_path(e, rank);
}

/* Checks the paths of all RMA of a rail, to rank 0 and to this rank. */
static void ft_check_rma(struct ft_rail *rail)
{
	struct fi_duo_stats stats;
	uint64_t want[FI_DUO_PATH_COUNT] = { 0 };
	const uint64_t own = 2 * FT_BLOCKS / FT_RAILS;

	if (!rail->e.ops || !ft.opts.rank)
		return;
	want[ft_rma_path(&rail->e, 0)] += rail->rma - own;
	want[ft_rma_path(&rail->e, 1)] += own;
	ft_stats(&rail->e, &stats);
	FT_CHECK(stats.rma_ops[FI_DUO_LOCAL] == want[FI_DUO_LOCAL] &&
		 stats.rma_ops[FI_DUO_CORE] == want[FI_DUO_CORE],
		 "%ld RMA operations over near and %ld over the core, not %ld "
		 "and %ld", (long)stats.rma_ops[FI_DUO_LOCAL],
		 (long)stats.rma_ops[FI_DUO_CORE], (long)want[FI_DUO_LOCAL],
		 (long)want[FI_DUO_CORE]);
}

void ft_rails_close(void)
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
