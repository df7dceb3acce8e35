/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA of MPI, verified: put and get between fences, in post/start epochs and
 * under locks; accumulate, fetch-and-op and compare-and-swap.
 */

#include "mt.h"

#define MT_BYTES ((size_t)1 << 20) /* size of a window, bytes */
#define MT_ROUNDS 10

static MPI_Win win;
static uint8_t *memory; /* this rank's window */
static uint8_t *local;

static size_t mt_slot(void)
{
	return MT_BYTES / mt_size;
}

/*
 * Puts data into this rank's part of the right neighbor's window, and gets the
 * data back.
 */
static void mt_fence(size_t len)
{
	int right = (mt_rank + 1) % mt_size;
	int left = (mt_rank + mt_size - 1) % mt_size;

	mt_fill(local, len, mt_rank + (int)len);
	MPI_Win_fence(0, win);
	MPI_Put(local, (int)len, MPI_BYTE, right, mt_rank * mt_slot(), (int)len,
		MPI_BYTE, win);
	MPI_Win_fence(0, win);
	mt_verify(memory + left * mt_slot(), len, left + (int)len);
	memset(local, 0, len);
	MPI_Get(local, (int)len, MPI_BYTE, right, mt_rank * mt_slot(), (int)len,
		MPI_BYTE, win);
	MPI_Win_fence(0, win);
	mt_verify(local, len, mt_rank + (int)len);
}

/* Each rank exposes its window to all others, and writes to theirs. */
static void mt_post_start(size_t len)
{
	MPI_Group world, others;
	int rank;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_excl(world, 1, &mt_rank, &others);
	mt_fill(local, len, 3 * mt_rank);
	MPI_Win_post(others, 0, win);
	MPI_Win_start(others, 0, win);
	for (rank = 0; rank < mt_size; rank++) {
		if (rank != mt_rank)
			MPI_Put(local, (int)len, MPI_BYTE, rank,
				mt_rank * mt_slot(), (int)len, MPI_BYTE, win);
	}
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	for (rank = 0; rank < mt_size; rank++) {
		if (rank != mt_rank)
			mt_verify(memory + rank * mt_slot(), len, 3 * rank);
	}
	MPI_Group_free(&others);
	MPI_Group_free(&world);
}

/* Increments a counter at rank 0 under an exclusive lock, by get and put. */
static void mt_lock(void)
{
	uint64_t value;
	int i;

	if (!mt_rank)
		memset(memory, 0, sizeof(value));
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < MT_ROUNDS; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&value, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, win);
		MPI_Win_flush(0, win);
		value++;
		MPI_Put(&value, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&value, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, win);
	MPI_Win_unlock(0, win);
	MT_CHECK(value == (uint64_t)MT_ROUNDS * mt_size, "%ju, not %d",
		 (uintmax_t)value, MT_ROUNDS * mt_size);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void mt_accumulate(int count)
{
	uint64_t *sum = (uint64_t *)memory, *one = (uint64_t *)local;
	int i;

	for (i = 0; i < count; i++) {
		sum[i] = 0;
		one[i] = (uint64_t)i << 32 | 1;
	}
	MPI_Win_fence(0, win);
	MPI_Accumulate(one, count, MPI_UINT64_T, 0, 0, count, MPI_UINT64_T,
		       MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; !mt_rank && i < count; i++)
		MT_CHECK(sum[i] == ((uint64_t)i << 32 | 1) * mt_size,
			 "element %d", i);
	MPI_Win_fence(0, win);
}

/*
 * Increments a counter at rank 0 by fetch-and-op. Each value is returned once,
 * and each rank gets ascending values.
 */
static void mt_fetch(void)
{
	uint64_t one = 1, ticket, last = 0, sum = 0, total;
	uint64_t count = (uint64_t)MT_ROUNDS * mt_size;
	int i;

	if (!mt_rank)
		memset(memory, 0, sizeof(ticket));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < MT_ROUNDS; i++) {
		MPI_Fetch_and_op(&one, &ticket, MPI_UINT64_T, 0, 0, MPI_SUM,
				 win);
		MPI_Win_flush(0, win);
		MT_CHECK(ticket < count && (!i || ticket > last),
			 "ticket %ju after %ju", (uintmax_t)ticket,
			 (uintmax_t)last);
		last = ticket;
		sum += ticket;
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MT_CHECK(total == count * (count - 1) / 2, "a ticket was drawn twice");
}

/*
 * The ranks increment a number in rank 0's window by compare-and-swap, one rank
 * after the other: each rank waits until the number is that of its next turn.
 */
static void mt_compare(void)
{
	uint64_t next, mine, before;
	int i;

	if (!mt_rank)
		memset(memory, 0, sizeof(before));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < MT_ROUNDS; i++) {
		mine = (uint64_t)i * mt_size + mt_rank;
		next = mine + 1;
		do {
			MPI_Compare_and_swap(&next, &mine, &before,
					     MPI_UINT64_T, 0, 0, win);
			MPI_Win_flush(0, win);
			MT_CHECK(before <= mine, "%ju is past %ju",
				 (uintmax_t)before, (uintmax_t)mine);
		} while (before != mine);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void mt_window(void)
{
	size_t len;

	for (len = 1; len <= mt_slot(); len *= 8) {
		mt_fence(len);
		mt_post_start(len);
	}
	mt_lock();
	mt_accumulate(1);
	mt_accumulate((int)(MT_BYTES / 8));
	mt_fetch();
	mt_compare();
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	uint8_t *own;

	mt_begin(&argc, &argv, 2);
	local = mt_alloc(MT_BYTES);
	own = memory = mt_alloc(MT_BYTES);
	/* MPI_Win_allocate() would share the window's memory within a host */
	MPI_Win_create(memory, MT_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
		       &win);
	mt_window();
	MPI_Win_allocate(MT_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
			 &win);
	mt_window();
	free(own);
	free(local);
	return mt_end("onesided");
}
