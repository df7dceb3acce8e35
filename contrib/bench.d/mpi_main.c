/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */


#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpibench.h"

static const struct mb_test {
	const char *name;
	void (*run)(void);
} mb_tests[] = {
	{ "lat", mb_lat },
	{ "cold", mb_cold },
	{ "halo", mb_halo },
	{ "threads", mb_threads },
	{ "rate", mb_rate },
	{ "bibw", mb_bibw },
	{ "put", mb_osc_put },
	{ "get", mb_osc_get },
	{ "fop", mb_osc_fop },
	/* MPI_Init, first message, memory: measured in each run */
	{ "init", NULL },
};

struct mb mb = { .budget_ns = 10000000, .label = "" };

void bn_fail(int status, const char *fmt, ...)
{
	va_list args;

	printf("!fail ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, status);
	_exit(status);
}

int mb_sizes(size_t largest, const size_t **sizes)
{
	static const size_t few[] = { 8, 1024, 65536, 1 << 20 };
	static const size_t all[] = {
		1, 8, 64, 256, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20,
		4 << 20,
	};
	int count = BN_COUNT(all);

	*sizes = all;
	if (mb.sizes) {
		*sizes = mb.size;
		count = mb.sizes;
	} else if (mb.few) {
		*sizes = few;
		count = BN_COUNT(few);
	}
	while (count && (*sizes)[count - 1] > largest)
		count--;
	return count;
}

/*
 * Allocates len bytes for each buffer. Writes to all pages of the buffers,
 * because a real program has used its buffers before it passes them to MPI.
 */
void mb_alloc(size_t len)
{
	void *buf[2];
	int i;

	free(mb.sbuf);
	free(mb.rbuf);
	for (i = 0; i < 2; i++) {
		if (posix_memalign(&buf[i], 4096, len))
			BN_DIE("no memory for %zu bytes", len);
		memset(buf[i], i, len);
	}
	mb.sbuf = buf[0];
	mb.rbuf = buf[1];
}

long mb_agree(long value)
{
	MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return value;
}

long mb_count(uint64_t ns, long count, long least, long most)
{
	long fits = mb.budget_ns * count / (long) (ns + 1);

	return mb_agree(fits < least ? least : fits > most ? most : fits);
}

/*
 * Reads the sizes of -s. They must ascend, because mb_sizes() removes sizes
 * that are too large from the end.
 */
static void mb_size_list(char *list)
{
	char *size;

	while ((size = strsep(&list, ",")) && mb.sizes < MB_MAX_SIZES) {
		mb.size[mb.sizes] = strtoul(size, NULL, 0);
		if (!mb.size[mb.sizes] ||
		    (mb.sizes && mb.size[mb.sizes] <= mb.size[mb.sizes - 1])) {
			fprintf(stderr, "mpibench: sizes in bytes, ascending: "
				"'%s' is not\n", size);
			exit(BN_FAIL);
		}
		mb.sizes++;
	}
}

static void mb_options(int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "t:l:b:s:qw")) != -1) {
		switch (letter) {
		case 't': mb.tests = optarg; break;
		case 'l': mb.label = optarg; break;
		case 'b': mb.budget_ns = atol(optarg) * 1000000L; break;
		case 's': mb_size_list(optarg); break;
		case 'q': mb.few = true; break;
		case 'w': mb.allocated = true; break;
		default: exit(BN_FAIL);
		}
	}
	if (!mb.tests || mb.budget_ns < 1) {
		fprintf(stderr, "usage: mpibench -t TEST,... [-l LABEL] "
			"[-b MS] [-s BYTES,...] [-qw]\n");
		exit(BN_FAIL);
	}
}

/*
 * Pins this rank. Called before MPI_Init, so that memory is near this CPU. The
 * test "threads" pins its threads itself.
 */
static void mb_pin(void)
{
	const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

	if (mb.multiple)
		return;

	if (!rank)
		rank = getenv("PMI_RANK");
	mb.cpus = bn_pin(rank ? atoi(rank) : 0);
}

static void mb_mean(const char *name, double value)
{
	double sum = 0;

	MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!mb.rank)
		bn_print(sum / mb.ranks, "mpi-%s.%s", name, mb.label);
}

/*
 * Measures MPI_Init, as osu_init does, and the first message of each rank, to
 * the next rank.
 */
static void mb_init(int *argc, char ***argv)
{
	uint64_t start = bn_now();
	char out = 0, in = 0;
	double init, first;
	int provided;

	MPI_Init_thread(argc, argv, mb.multiple ? MPI_THREAD_MULTIPLE :
			MPI_THREAD_SINGLE, &provided);
	init = bn_now() - start;
	MPI_Comm_rank(MPI_COMM_WORLD, &mb.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mb.ranks);
	start = bn_now();
	MPI_Sendrecv(&out, 1, MPI_BYTE, (mb.rank + 1) % mb.ranks, MB_TAG, &in,
		     1, MPI_BYTE, (mb.rank + mb.ranks - 1) % mb.ranks, MB_TAG,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	first = bn_now() - start;
	mb_mean("init", init);
	mb_mean("first", first);
}

/* Prints the mean of the ranks' proportional set sizes (Pss), bytes. */
static void mb_memory(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kb = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Pss: %ld kB", &kb) == 1)
			break;
	if (file)
		fclose(file);
	mb_mean("memory", kb * 1024.0);
}

static void mb_run_test(const char *name)
{
	size_t i;

	MPI_Barrier(MPI_COMM_WORLD);
	if (mb_collective(name))
		return;
	for (i = 0; i < BN_COUNT(mb_tests); i++)
		if (!strcmp(name, mb_tests[i].name))
			break;
	if (i == BN_COUNT(mb_tests))
		BN_DIE("no test named %s", name);
	if (mb_tests[i].run)
		mb_tests[i].run();
}

static void mb_run_tests(void)
{
	char *rest = mb.tests, *name;

	while ((name = strsep(&rest, ",")))
		mb_run_test(name);
}

int main(int argc, char **argv)
{
	mb_options(argc, argv);
	mb.multiple = strstr(mb.tests, "threads");
	mb_pin();
	mb_init(&argc, &argv);
	mb_hop("hop.before");
	mb_run_tests();
	mb_hop("hop.after");
	mb_memory();
	MPI_Finalize();
	return BN_PASS;
}
