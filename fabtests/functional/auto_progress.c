/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_PROGRESS_AUTO: a large send and an RMA write must complete although the
 * other process does not read its CQ. At the end a process exits with open
 * objects, after a forked child has exited.
 */

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_rma.h>

#include "common/region.h"

#define FT_LEN ((size_t)4 << 20)
#define FT_LINGER_MS 100	/* time of ten polls of ofi_duo's thread, ms */

static struct ft_ep e;
static struct ft_region region;

/* Waits for all ranks without progress on the endpoint. */
static void ft_silent_barrier(void)
{
	int neps = ft.neps;

	ft.neps = 0;
	ft_barrier();
	ft.neps = neps;
}

/* Rank 1 sends a large message, and then does not poll. */
static void ft_case_idle_sender_sends(void)
{
	struct ft_op op;

	ft_op_reset(&op);
	if (ft.opts.rank) {
		ft_fill(region.ptr, FT_LEN, 1);
		FT_OK(FT_REGION_RETRY(&region, fi_tsend(e.ep, region.ptr,
				FT_LEN, region.desc, e.peer[0].addr, 0, &op)));
		ft_tx_counted(&e, 0);
		ft_silent_barrier();
		ft_region_wait(&region, &op);
	} else {
		FT_OK(FT_REGION_RETRY(&region, fi_trecv(e.ep, region.ptr,
				FT_LEN, region.desc, FI_ADDR_UNSPEC, 0, 0,
				&op)));
		ft_region_wait(&region, &op);
		ft_verify(region.ptr, FT_LEN, 1, "message");
		ft_silent_barrier();
	}
	FT_OK(-op.err);
}

/* Rank 0 is the target of an RMA write, and does not poll. */
static void ft_case_idle_target_is_written(void)
{
	struct ft_op op;

	ft_op_reset(&op);
	if (ft.opts.rank) {
		ft_fill(region.ptr, FT_LEN, 2);
		FT_OK(FT_REGION_RETRY(&region, fi_write(e.ep, region.ptr,
				FT_LEN, region.desc, e.peer[0].addr,
				region.base[0], region.key[0], &op)));
		ft_region_wait(&region, &op);
		FT_OK(-op.err);
	}
	ft_silent_barrier();
	if (!ft.opts.rank)
		ft_verify(region.ptr, FT_LEN, 2, "write");
}

/*
 * Write function of a stream that exit() flushes after all destructors. Delays
 * the exit: if ofi_duo's thread has not ended by then, the process crashes.
 */
static ssize_t ft_linger(void *cookie, const char *buf, size_t len)
{
	poll(NULL, 0, FT_LINGER_MS);
	return len;
}

static void ft_linger_at_exit(void)
{
	FILE *last = fopencookie(NULL, "w", (cookie_io_functions_t) {
					 .write = ft_linger });

	FT_CHECK(last && fputc('.', last) == '.', "fopencookie");
}

/* Forks a child whose exit() runs the destructors of libfabric's modules. */
static void ft_exit_child(void)
{
	pid_t child = fork();
	int status;

	FT_CHECK(child >= 0, "fork");
	if (!child)
		exit(FT_PASS);
	FT_CHECK(waitpid(child, &status, 0) == child && !status,
		 "a child of fork() ended with status 0x%x", status);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "large message ends although the sender does not poll",
		  ft_case_idle_sender_sends },
		{ "write ends although the target does not poll",
		  ft_case_idle_target_is_written },
	};
	const struct ft_cfg cfg = {
		.caps = FI_RMA, .raw = true, .data_progress = FI_PROGRESS_AUTO,
	};

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_region_open(&e, &region, FT_LEN);
	ft_region_barrier(&region);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_region_counted(&region, ft.opts.rank, 0, 0);
	ft_region_close(&region);
	ft_close(&e);
	ft.phase = "exit";
	ft_open(&e, &cfg);	/* not closed before exit() */
	ft_exit_child();
	ft_linger_at_exit();
}

const struct ft_spec ft_spec = {
	.name = "auto_progress", .nranks = 2, .run = ft_run,
};
