/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_duo_info(1): options, order of the checks, output, exit status. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "info.h"
#include "mpi.h"

#define INFO_MAX_RANKS 65536
/* Default timeout, s: long, because hosts may start processes slowly */
#define INFO_TIMEOUT 60

struct info_options {
	long ranks;
	bool json, table, mpi;
	struct mpi_job job;
};

static void info_usage(FILE *to)
{
	fprintf(to, "usage: fi_duo_info [--ranks N] [--json]\n"
		"       LAUNCHER fi_duo_info --mpi [--json] [--svg FILE]\n"
		"Checks whether ofi_duo can be used on this host, and prints "
		"remedies; or prints the\n"
		"path of messages between the ranks of a job, and the reason.\n"
		"  -n, --ranks N  for N ranks on this host, with a table of "
		"the shared memory\n"
		"                 that they need (default: one per CPU, "
		"no table)\n"
		"  -j, --json     print JSON\n"
		"  -h, --help     print this\n"
		"  -V, --version\n"
		"  -m, --mpi      be a rank of a job: rank 0 prints\n"
		"  -s, --svg FILE        write the matrix as a picture, too\n"
		"  -p, --provider NAME   (default: that of FI_PROVIDER or "
		"Open MPI)\n"
		"  -d, --dir DIR         exchange data in DIR, which all "
		"hosts share, not by PMI\n"
		"  -r, --rank R/N        without a launcher: rank R of N\n"
		"  -t, --timeout SECONDS to wait for ranks and messages "
		"(default %d)\n"
		"Exit status: 0 all is well, 1 there are warnings, 2 errors, "
		"3 misuse.\n", INFO_TIMEOUT);
}

static void info_check_all(int ranks)
{
	struct info_fabric fabric;

	info_check_environment();
	info_check_libfabric(&fabric);
	info_check_module(&fabric);
	info_check_cores(&fabric);
	info_check_params(&fabric);
	info_check_network();
	info_check_shm(ranks);
	info_check_cgroup(ranks);
	info_check_memfd();
	info_check_memlock();
	info_check_files(ranks);
	info_check_file_size();
	info_check_copy();
	info_check_gpu();
	info_check_namespaces();
}

static void info_print(int ranks, bool json, bool table)
{
	if (!json) {
		info_print_text();
		if (table)
			info_print_table(ranks);
		return;
	}
	printf("{ \"version\": \"%s\",\n", PACKAGE_VERSION);
	info_print_json();
	if (table)
		info_print_table_json(ranks);
	printf(" }\n");
}

/*
 * Reads a number from LOW to HIGH, which ends at STOP or at the end of TEXT.
 * *end: the text behind the number. If the number is invalid, prints an error
 * and returns -1.
 */
static long info_number(const char *what, char *text, char stop, long low,
			long high, char **end)
{
	long number = strtol(text, end, 10);

	if (*end != text && (!**end || **end == stop) && number >= low &&
	    number <= high)
		return number;
	fprintf(stderr, "fi_duo_info: %s %s: must be %ld to %ld\n", text,
		what, low, high);
	return -1;
}

static bool info_rank(struct launch *launch, char *text)
{
	char *end;

	launch->rank = (int) info_number("as rank", text, '/', 0,
					 INFO_MAX_RANKS - 1, &end);
	if (launch->rank < 0)
		return false;
	if (*end == '/')
		launch->size = (int) info_number("as number of ranks", end + 1,
						 '\0', 1, INFO_MAX_RANKS, &end);
	if (launch->size > launch->rank)
		return true;
	fprintf(stderr, "fi_duo_info: --rank %s: must be R/N, R below N\n",
		text);
	return false;
}

static bool info_option(struct info_options *options, int c)
{
	struct mpi_job *job = &options->job;
	char *end;

	switch (c) {
	case 'n':
		options->table = true;
		options->ranks = info_number("ranks", optarg, '\0', 1,
					     INFO_MAX_RANKS, &end);
		return options->ranks > 0;
	case 't':
		job->launch.timeout = (int) info_number("seconds", optarg,
							'\0', 1, 86400, &end);
		return job->launch.timeout > 0;
	case 'r':
		return info_rank(&job->launch, optarg);
	case 'j':
		options->json = true;
		return true;
	case 'm':
		options->mpi = true;
		return true;
	case 's':
		job->svg = optarg;
		return true;
	case 'p':
		job->provider = optarg;
		return true;
	case 'd':
		job->launch.dir = optarg;
		return true;
	case 'h':
		info_usage(stdout);
		exit(0);
	case 'V':
		puts("fi_duo_info " PACKAGE_VERSION);
		exit(0);
	}
	info_usage(stderr);
	return false;
}

/* True if there is an option that only --mpi uses. */
static bool info_needs_mpi(const struct mpi_job *job)
{
	return job->svg || job->provider || job->launch.dir ||
	       job->launch.rank >= 0;
}

/* Returns STATUS, or that of an error if the output has not been written. */
static int info_written(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "fi_duo_info: the output is incomplete: %s; write it "
		"to another file\n", strerror(errno));
	return INFO_EXIT_ERROR;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "ranks", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "mpi", no_argument, NULL, 'm' },
		{ "svg", required_argument, NULL, 's' },
		{ "provider", required_argument, NULL, 'p' },
		{ "dir", required_argument, NULL, 'd' },
		{ "rank", required_argument, NULL, 'r' },
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	struct info_options options = {
		.ranks = sysconf(_SC_NPROCESSORS_ONLN),
		.job.launch = { .rank = -1, .timeout = INFO_TIMEOUT },
	};
	int c;

	while ((c = getopt_long(argc, argv, "n:jms:p:d:r:t:hV", long_options,
				NULL)) != -1)
		if (!info_option(&options, c))
			return INFO_EXIT_MISUSE;
	if (optind < argc) {
		info_usage(stderr);
		return INFO_EXIT_MISUSE;
	}
	if (!options.mpi && info_needs_mpi(&options.job)) {
		fprintf(stderr, "fi_duo_info: --svg, --provider, --dir and "
			"--rank are for a job: add --mpi\n");
		return INFO_EXIT_MISUSE;
	}
	if (options.mpi) {
		options.job.json = options.json;
		return info_written(mpi_run(&options.job));
	}
	info_check_all((int) options.ranks);
	info_print((int) options.ranks, options.json, options.table);
	return info_written(info_exit_status());
}
