/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Latency and bandwidth, by size, kind of operation and place of the memory. */

#include <stdio.h>

#include "duogpu.h"

static const size_t sizes[] = {
	8, 4096, 65536, 1 << 20, 16 << 20, 64 << 20,
};
#define SIZES (sizeof(sizes) / sizeof(*sizes))
/* number of writes in a series, several times a provider's queue length */
#define GPU_SERIES 8192

static int gpu_rounds(size_t len)
{
	return len <= 65536 ? 300 : len <= 1 << 20 ? 60 : 8;
}

/* Returns the time of an operation, s; of messages, half a round trip. */
static double gpu_latency(enum gpu_kind kind, enum gpu_place mine,
			  enum gpu_place theirs, size_t len)
{
	int i, rounds = gpu_rounds(len), warm = 1 + rounds / 10;
	uint32_t checked = gpu.sh->checked;
	double begin = 0;

	gpu.sh->check.place = theirs;
	gpu.sh->check.offset = 0;
	gpu.sh->check.len = len;
	gpu.sh->check.seed = (unsigned int) (rounds + warm);
	if (kind == GPU_TAGGED)
		gpu_next(GPU_ECHO);
	for (i = -warm; i < rounds; i++) {
		if (!i)
			begin = gpu_now();
		if (kind == GPU_TAGGED)
			gpu_receive(mine, 0, len);
		gpu_start(kind, mine, theirs, 0, len);
		gpu_complete(kind == GPU_TAGGED ? 2 : 1);
		if (gpu.sh->settle)
			gpu_settle(kind);
	}
	begin = (gpu_now() - begin) / rounds;
	if (kind == GPU_TAGGED)
		gpu_await(checked);
	return kind == GPU_TAGGED ? begin / 2 : begin;
}

/* Executes operations, GPU_WINDOW at a time. */
static void gpu_stream(enum gpu_kind kind, enum gpu_place mine,
		       enum gpu_place theirs, size_t len, int rounds)
{
	int i, under_way = 0;

	for (i = 0; i < rounds; i++) {
		gpu_start(kind, mine, theirs, 0, len);
		if (++under_way == GPU_WINDOW) {
			gpu_complete(1);
			under_way--;
		}
	}
	gpu_complete(under_way);
}

/* Returns the bytes per second of GPU_WINDOW operations at a time. */
static double gpu_bandwidth(enum gpu_kind kind, enum gpu_place mine,
			    enum gpu_place theirs, size_t len)
{
	int rounds = 2 * gpu_rounds(len);
	double begin = gpu_now();

	gpu_stream(kind, mine, theirs, len, rounds);
	return (double) len * rounds / (gpu_now() - begin);
}

/*
 * Returns the average time of a write in a series, s. The last write uses
 * FI_DELIVERY_COMPLETE, so the time ends when all bytes are in the target's
 * memory.
 */
static double gpu_series(enum gpu_place mine, enum gpu_place theirs, size_t len)
{
	double begin = gpu_now();

	gpu_stream(GPU_WRITE, mine, theirs, len, GPU_SERIES - 1);
	gpu.sh->settle = true;
	gpu_start(GPU_WRITE, mine, theirs, 0, len);
	gpu_complete(1);
	gpu.sh->settle = false;
	return (gpu_now() - begin) / GPU_SERIES;
}

static void gpu_head(void)
{
	size_t i;

	printf("\n%-22s", "us (GB/s)");
	for (i = 0; i < SIZES; i++)
		printf(" %9zu B    ", sizes[i]);
	putchar('\n');
}

static void gpu_row(enum gpu_kind kind, enum gpu_place mine,
		    enum gpu_place theirs)
{
	size_t i;

	printf("%-6s %4s to %-4s    ", gpu_kinds[kind],
	       gpu_places[kind == GPU_READ ? theirs : mine],
	       gpu_places[kind == GPU_READ ? mine : theirs]);
	for (i = 0; i < SIZES; i++) {
		printf(" %7.1f", 1e6 * gpu_latency(kind, mine, theirs, sizes[i]));
		if (kind == GPU_TAGGED)
			printf("       ");
		else
			printf(" %6.2f", gpu_bandwidth(kind, mine, theirs,
						       sizes[i]) / 1e9);
	}
	putchar('\n');
	fflush(stdout);
}

/*
 * A copy that the driver executes, for comparison with transfers. other: the
 * copy is to another GPU; NULL: within one GPU, or between a GPU and the host.
 */
struct gpu_way {
	const char *name;
	uint64_t to, from;
	size_t most;
	const struct gpu_other *other;
};

static void gpu_copy(const struct gpu_way *way, size_t len)
{
	if (way->other)
		GPU_OK(cuda.copy_peer(way->to, way->other->context, way->from,
				      way->other->mine, len, NULL));
	else
		GPU_OK(cuda.copy(way->to, way->from, len, NULL));
	GPU_OK(cuda.wait());
}

static void gpu_copy_row(const struct gpu_way *way)
{
	double begin = 0;
	size_t s;
	int i, n;

	printf("cuMemcpy %-13s", way->name);
	for (s = 0; s < SIZES && sizes[s] <= way->most; s++) {
		n = gpu_rounds(sizes[s]);
		for (i = -2; i < n; i++) {
			begin = i > 0 ? begin : gpu_now();
			gpu_copy(way, sizes[s]);
		}
		begin = (gpu_now() - begin) / n;
		printf(" %7.1f %6.2f", 1e6 * begin,
		       (double) sizes[s] / begin / 1e9);
	}
	putchar('\n');
	fflush(stdout);
}

static void gpu_copies(void)
{
	const uint64_t device = (uintptr_t) gpu.place[GPU_DEVICE];
	const size_t half = GPU_MOST / 2;
	struct gpu_other other;
	void *pinned;

	GPU_OK(cuda.host(&pinned, GPU_MOST));
	gpu_copy_row(&(struct gpu_way) { "GPU to pinned", (uintptr_t) pinned,
					 device, GPU_MOST, NULL });
	gpu_copy_row(&(struct gpu_way) { "pinned to GPU", device,
					 (uintptr_t) pinned, GPU_MOST, NULL });
	gpu_copy_row(&(struct gpu_way) { "GPU to itself", device + half,
					 device, half, NULL });
	if (gpu_cuda_other(&other, GPU_MOST))
		gpu_copy_row(&(struct gpu_way) { "GPU to GPU", other.at, device,
						 GPU_MOST, &other });
}

/*
 * Executes transfers for 0.1 s, so that near, the local transport of ofi_duo,
 * maps the peer's memory before the measurement. For memory of cuMemCreate,
 * near first requests a file descriptor from the peer.
 */
static void gpu_warm(void)
{
	double begin = gpu_now();

	while (gpu_now() - begin < 0.1) {
		gpu_latency(GPU_WRITE, GPU_DEVICE, GPU_DEVICE, 1 << 16);
		gpu_latency(GPU_TAGGED, GPU_DEVICE, GPU_DEVICE, 1 << 16);
	}
}

void gpu_table(void)
{
	int kind, where;

	gpu_warm();
	gpu_head();
	gpu_copies();
	for (kind = 0; kind < GPU_KINDS; kind++)
		for (where = 1; where < 4; where++)
			gpu_row(kind, where & 1, where >> 1);
	for (kind = 0; kind < GPU_KINDS; kind++)
		gpu_row(kind, GPU_HOST, GPU_HOST);
	gpu_next(GPU_END);
	if (gpu.errors)
		GPU_FAIL("%d operations failed", gpu.errors);
}

/*
 * Prints the time of an operation. Then prints 1 if the bytes were right when
 * the operation completed, or 0 if they were not.
 */
static void gpu_time(enum gpu_kind kind, enum gpu_place mine,
		     enum gpu_place theirs, size_t len)
{
	double us = 1e6 * gpu_latency(kind, mine, theirs, len);
	bool read = kind == GPU_READ;

	printf("time %s%s, %s to %s|%zu|%.2f|%d\n", gpu_kinds[kind],
	       gpu.sh->settle ? " and wait" : "",
	       gpu_places[read ? theirs : mine],
	       gpu_places[read ? mine : theirs], len, us,
	       gpu_right(kind, mine, theirs, 0, len, (unsigned int) rand()));
	fflush(stdout);
}

static void gpu_series_time(enum gpu_place mine, size_t len)
{
	printf("time write in series, %s to %s|%zu|%.2f|1\n", gpu_places[mine],
	       gpu_places[GPU_DEVICE], len,
	       1e6 * gpu_series(mine, GPU_DEVICE, len));
	fflush(stdout);
}

void gpu_times(void)
{
	static const size_t len[] = { 8, 4096, 65536, 1 << 20, 64 << 20 };
	size_t i;
	int kind, where;

	gpu_warm();
	for (kind = 0; kind < GPU_KINDS; kind++)
		for (where = 2; where < 8; where++)
			for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
				gpu.sh->settle = where & 1;
				gpu_time(kind, where >> 1 & 1, where >> 2,
					 len[i]);
			}
	gpu.sh->settle = false;
	for (where = 0; where < GPU_PLACES; where++)
		for (i = 0; i < 2; i++)
			gpu_series_time(where, len[i]);
	gpu_next(GPU_END);
	if (gpu.errors)
		GPU_FAIL("%d operations failed", gpu.errors);
}
