/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of all MPI test programs: time limit, checks, and data that depend
 * on their position, so that shifted data is detected. A failed check ends the
 * job with status 1.
 */
#ifndef MT_H
#define MT_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MT_DEADLINE_S 1800

static int mt_rank, mt_size;

#define MT_CHECK(cond, ...) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "FAILED: rank %d, line %d: ", mt_rank, \
				__LINE__); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
		} \
	} while (0)

static inline uint8_t mt_byte(size_t i, int seed)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + (i >> 16) * 7 + seed * 29);
}

static inline void mt_fill(void *buf, size_t len, int seed)
{
	uint8_t *at = buf;
	size_t i;

	for (i = 0; i < len; i++)
		at[i] = mt_byte(i, seed);
}

static inline void mt_verify(const void *buf, size_t len, int seed)
{
	const uint8_t *at = buf;
	size_t i;

	for (i = 0; i < len; i++)
		MT_CHECK(at[i] == mt_byte(i, seed), "byte %zu of %zu is wrong",
			 i, len);
}

static inline void *mt_alloc(size_t len)
{
	void *buf = malloc(len ? len : 1);

	MT_CHECK(buf, "no memory for %zu bytes", len);
	return buf;
}

static inline void mt_begin(int *argc, char ***argv, int min_ranks)
{
	alarm(MT_DEADLINE_S);
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &mt_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mt_size);
	MT_CHECK(mt_size >= min_ranks, "%d ranks at least", min_ranks);
}

static inline int mt_end(const char *name)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!mt_rank)
		printf("%s: ok, %d ranks\n", name, mt_size);
	MPI_Finalize();
	return 0;
}

#endif /* MT_H */
