/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Many processes start at the same time; this is repeated. Each must have
 * shared memory and find all others, all messages must arrive, and no process
 * may crash.
 * Exceptions:
 * - /dev/shm has space (FT_ROOM, in MiB) for a few processes only. The other
 *   processes use the core.
 * - A stopped process holds the registry's lock. All others use the core.
 */

#include <fcntl.h>
#include <glob.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/ft.h"

#define FT_ROUNDS 10
#define FT_QUICK_ROUNDS 3
/* least size of an shm endpoint's memory, MiB; 16 MiB in libfabric 2.1 */
#define FT_REGION_MIB 15

static struct ft_ep e;
static struct ft_buf buf;
static struct ft_op txop[FT_MAX_RANKS], rxop[FT_MAX_RANKS];

/*
 * True if this endpoint has a local transport. Otherwise the path to its own
 * address has the reason FI_DUO_LOCAL_OFF.
 */
static bool ft_has_shm(void)
{
	enum fi_duo_reason reason = FI_DUO_LOCAL_OFF;
	enum fi_duo_path path;

	ft_insert(&e, ft.opts.rank);
	if (e.ops)
		FT_OK(e.ops->path(e.ep, e.peer[ft.opts.rank].addr, &path,
				  &reason));
	return reason != FI_DUO_LOCAL_OFF;
}

/*
 * Checks the number of ranks with shared memory. With FT_ROOM, this number may
 * be smaller than the number of ranks with sufficient space: libfabric returns
 * shm only while /dev/shm has space for one endpoint per CPU.
 */
static void ft_check_have(int have, bool stopped)
{
	const char *room = getenv("FT_ROOM");
	int least = ft.opts.nranks, most = ft.opts.nranks;

	if (!e.ops || stopped || getenv("FT_NO_SHM")) {
		least = most = 0;
	} else if (room) {
		least = 1;
		most = (atoi(room) - 1) / FT_REGION_MIB;
	}
	FT_CHECK(have >= least && have <= most, "%d of %d ranks have shm",
		 have, ft.opts.nranks);
}

static void ft_start(bool stopped)
{
	int r, have = 0;

	ft_open(&e, NULL);
	e.peer[ft.opts.rank] = e.self;
	e.self.shm = ft_has_shm();
	ft_gather(&e);
	for (r = 0; r < ft.opts.nranks; r++) {
		have += e.peer[r].shm;
		ft_insert(&e, r);
	}
	ft_check_have(have, stopped);
	ft_buf_alloc(&e, &buf, 2 * 64 * FT_MAX_RANKS);
}

/* Locks the registry's directory. Returns its file descriptor. */
static int ft_lock_registry(void)
{
	glob_t found;
	int fd;

	FT_CHECK(!glob("/dev/shm/ofi_duo.*.*", GLOB_ONLYDIR, NULL, &found) &&
		 found.gl_pathc == 1, "no registry in /dev/shm");
	fd = open(found.gl_pathv[0], O_RDONLY | O_DIRECTORY);
	FT_CHECK(fd >= 0 && !flock(fd, LOCK_EX), "flock: %m");
	globfree(&found);
	return fd;
}

static void ft_exchange_messages(void)
{
	struct ft_xfer x = { .tagged = true, .len = 64, .desc = buf.desc };
	int r, me = ft.opts.rank, n = ft.opts.nranks;

	for (r = 0; r < n; r++) {
		x.buf = buf.ptr + 64 * r;
		x.addr = e.peer[r].addr;
		x.tag = r;
		ft_rx(&e, FT_RX_RECV, &x, &rxop[r]);
	}
	for (r = 0; r < n; r++) {
		x.buf = buf.ptr + 64 * (FT_MAX_RANKS + r);
		x.tag = me;
		ft_fill(x.buf, x.len, 100 * me + r);
		ft_tx(&e, FT_TX_SEND, r, &x, &txop[r]);
	}
	for (r = 0; r < n; r++) {
		ft_wait(&e, &txop[r]);
		ft_wait(&e, &rxop[r]);
		ft_verify(buf.ptr + 64 * r, 64, 100 * r + me, "message");
	}
}

/*
 * Starts all ranks once. stopped: rank 0 still has the registry locked, as a
 * stopped process would, so all ranks must use the core. lock: if not NULL,
 * locks the registry after the start, and stores the file descriptor.
 */
static void ft_round(bool stopped, int *lock)
{
	ft_barrier();
	ft_start(stopped);
	if (lock)
		*lock = ft_lock_registry();
	ft_exchange_messages();
	ft_buf_free(&buf);
	ft_close(&e);
}

static void ft_case_simultaneous_starts_connect(void)
{
	int i, rounds = ft.opts.quick ? FT_QUICK_ROUNDS : FT_ROUNDS;

	for (i = 0; i < rounds; i++)
		ft_round(false, NULL);
}

static void ft_case_stopped_process_means_core(void)
{
	int lock = -1;

	/*
	 * Needs a /dev/shm that only this test uses (FT_ROOM is set), and that
	 * has space for a registry (FT_NO_SHM is not set)
	 */
	if (!getenv("FT_ROOM") || getenv("FT_NO_SHM"))
		return;
	ft_round(false, ft.opts.rank == 0 ? &lock : NULL);
	ft_round(true, NULL);
	close(lock);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "processes that start together find each other",
		  ft_case_simultaneous_starts_connect },
		{ "starts beside a stopped process use the core",
		  ft_case_stopped_process_means_core },
	};

	ft_run_cases(cases, FT_COUNT(cases));
}

const struct ft_spec ft_spec = {
	.name = "start", .nranks = 24, .min_ranks = 2, .run = ft_run,
};
