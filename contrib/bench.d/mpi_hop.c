/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Round trip of a cache line between ranks 0 and 1; see bn_hop(). contrib/bench
 * compares only measurements with similar round trips.
 */

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpibench.h"

#define MB_HOPS 5000

/* Maps a page for ranks 0 and 1, and removes its file. */
void *mb_share(void)
{
	void *page = MAP_FAILED;
	char name[64];
	int fd = -1;

	snprintf(name, sizeof(name), "/duobench.mpi.%d", (int) getppid());
	if (mb.rank < 2)
		fd = shm_open(name, O_CREAT | O_RDWR, 0600);
	if (fd >= 0 && !ftruncate(fd, 4096))
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
	if (fd >= 0)
		close(fd);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!mb.rank)
		shm_unlink(name);
	return page == MAP_FAILED ? NULL : page;
}

static uint64_t mb_hop_run(atomic_uint *line, unsigned int me)
{
	uint64_t start = bn_now();
	unsigned int i;

	for (i = me; i < 2 * MB_HOPS; i += 2) {
		while (atomic_load_explicit(line, memory_order_acquire) != i)
			;
		atomic_store_explicit(line, i + 1, memory_order_release);
	}
	return bn_now() - start;
}

/*
 * Prints nothing if ranks share CPUs, because the time of a round trip would
 * depend on the scheduler.
 */
void mb_hop(const char *name)
{
	atomic_uint *line;
	int both, mine;
	uint64_t ns;

	if (mb.ranks < 2 || mb.ranks > mb.cpus)
		return;
	line = mb_share();
	mine = line || mb.rank > 1;
	MPI_Allreduce(&mine, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (both && mb.rank < 2) {
		ns = mb_hop_run(line, mb.rank);
		if (!mb.rank)
			bn_print(ns / (double) MB_HOPS, "%s", name);
	}
	if (line)
		munmap(line, 4096);
	MPI_Barrier(MPI_COMM_WORLD);
}
