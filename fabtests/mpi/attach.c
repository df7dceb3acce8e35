/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * attach [down]: a linked list over all ranks grows while ranks follow it. Each
 * rank attaches pieces of memory to a dynamic window and appends them. It finds
 * the last node by fetch-and-op, and links by compare-and-swap.
 *
 * The pieces have ascending addresses. With "down" they descend, so that each
 * attach moves the descriptions of earlier pieces. Open MPI's osc/rdma lets
 * other ranks of the host read descriptions that move. So "down" fails in some
 * runs, over any core (docs/upstream.md).
 */
#include <stddef.h>
#include <sys/mman.h>

#include "mt.h"

#define MT_PIECES 16 /* number of pieces that each rank appends */
#define MT_PIECE_PAGES 2 /* pages of a piece; the second is not attached */

/* Name of a node: rank + 1 in the upper bits, address below. 0: no node. */
#define MT_ADDR_BITS 48
#define MT_ADDR (((uint64_t)1 << MT_ADDR_BITS) - 1)

struct mt_node {
	uint64_t next;
	uint64_t rank;
	uint64_t index;
};

static MPI_Win win;

static uint64_t mt_name(const struct mt_node *node)
{
	uint64_t addr = (uintptr_t)node;

	MT_CHECK(!(addr & ~MT_ADDR), "%p has more than %d bits",
		 (const void *)node, MT_ADDR_BITS);
	return (uint64_t)(mt_rank + 1) << MT_ADDR_BITS | addr;
}

static int mt_target(uint64_t name)
{
	return (int)(name >> MT_ADDR_BITS) - 1;
}

static MPI_Aint mt_disp(uint64_t name)
{
	return (MPI_Aint)(name & MT_ADDR);
}

static uint64_t mt_next(uint64_t name)
{
	uint64_t none = 0, next;

	MPI_Fetch_and_op(&none, &next, MPI_UINT64_T, mt_target(name),
			 mt_disp(name), MPI_NO_OP, win);
	MPI_Win_flush(mt_target(name), win);
	return next;
}

/* Appends node @mine behind the last node. Starts the search at @last. */
static void mt_append(uint64_t last, uint64_t mine)
{
	uint64_t none = 0, next;

	for (;;) {
		while ((next = mt_next(last)))
			last = next;
		MPI_Compare_and_swap(&mine, &none, &next, MPI_UINT64_T,
				     mt_target(last), mt_disp(last), win);
		MPI_Win_flush(mt_target(last), win);
		if (!next)
			return;
		last = next;
	}
}

/* Checks that the list has each rank's nodes once, in order of appending. */
static void mt_walk(uint64_t name)
{
	uint64_t *seen = calloc((size_t)mt_size, sizeof(*seen));
	struct mt_node node;
	int i, rank;

	MT_CHECK(seen, "no memory for %d numbers", mt_size);
	for (; name; name = node.next) {
		rank = mt_target(name);
		MPI_Get(&node, sizeof(node), MPI_BYTE, rank, mt_disp(name),
			sizeof(node), MPI_BYTE, win);
		MPI_Win_flush(rank, win);
		MT_CHECK(node.rank == (uint64_t)rank,
			 "rank %ju in a node of rank %d", (uintmax_t)node.rank,
			 rank);
		MT_CHECK(node.index == seen[rank],
			 "node %ju of rank %d after %ju",
			 (uintmax_t)node.index, rank, (uintmax_t)seen[rank]);
		seen[rank]++;
	}
	/* the list begins with an additional node of rank 0 */
	for (i = 0; i < mt_size; i++)
		MT_CHECK(seen[i] == MT_PIECES + !i, "%ju nodes of rank %d",
			 (uintmax_t)seen[i], i);
	free(seen);
}

static struct mt_node *mt_piece(char *memory, size_t stride, int i, int down)
{
	return (void *)(memory + stride * (size_t)(down ? MT_PIECES - i : i));
}

static struct mt_node *mt_attach(char *memory, size_t stride, int i, int down)
{
	struct mt_node *node = mt_piece(memory, stride, i, down);

	node->next = 0;
	node->rank = (uint64_t)mt_rank;
	node->index = (uint64_t)(mt_rank ? i - 1 : i);
	MPI_Win_attach(win, node, sizeof(*node));
	return node;
}

int main(int argc, char **argv)
{
	size_t stride = MT_PIECE_PAGES * (size_t)sysconf(_SC_PAGESIZE);
	size_t size = stride * (MT_PIECES + 1);
	uint64_t first, last, mine;
	char *memory;
	int i, down;

	mt_begin(&argc, &argv, 2);
	down = argc > 1 && !strcmp(argv[1], "down");
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MT_CHECK(memory != MAP_FAILED, "no memory for %zu bytes", size);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	first = mt_name(mt_attach(memory, stride, 0, down));
	MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	last = first;
	for (i = 1; i <= MT_PIECES; i++) {
		mine = mt_name(mt_attach(memory, stride, i, down));
		mt_append(last, mine);
		last = mine;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	mt_walk(first);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i <= MT_PIECES; i++)
		MPI_Win_detach(win, mt_piece(memory, stride, i, down));
	MPI_Win_free(&win);
	munmap(memory, size);
	return mt_end("attach");
}
