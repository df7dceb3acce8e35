/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Selects the launcher's protocol. Splits values into pieces, each with a key.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

/* Each value begins with its length, bytes, in this number of hex digits. */
#define LAUNCH_LEN_DIGITS 8
#define LAUNCH_KEY_MAX 64

void launch_say(const char *fmt, ...)
{
	va_list args;

	fputs("fi_duo_info: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

static bool launch_number(const char *variable, int *number)
{
	const char *value = getenv(variable);
	char *end;
	long got;

	if (!value || !*value)
		return false;
	got = strtol(value, &end, 10);
	if (*end || got < 0 || got > 1 << 20)
		return false;
	*number = (int) got;
	return true;
}

/* Reads rank and size from launchers' variables. False: there are none. */
static bool launch_environment(struct launch *launch)
{
	static const char *const names[][2] = {
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "PMI_RANK", "PMI_SIZE" },
		{ "SLURM_PROCID", "SLURM_NTASKS" },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (launch_number(names[i][0], &launch->rank) &&
		    launch_number(names[i][1], &launch->size) &&
		    launch->rank < launch->size)
			return true;
	return false;
}

int launch_begin(struct launch *launch)
{
	bool told = launch->rank >= 0;

	if (!told && !launch->dir && getenv("PMIX_RANK"))
		return launch_pmix_begin(launch);
	if (!told && !launch->dir && getenv("PMI_FD"))
		return launch_pmi_begin(launch);
	if (!told && !launch_environment(launch)) {
		launch_say("--mpi: no launcher started this process: use mpirun "
			   "-n N fi_duo_info --mpi, or srun --mpi=pmix, or "
			   "start each process with --dir and --rank R/N");
		return -1;
	}
	if (!launch->dir) {
		launch_say("--mpi: rank %d of %d has neither PMIx nor PMI: "
			   "use srun --mpi=pmix or --mpi=pmi2, or name a "
			   "directory that all hosts share with --dir",
			   launch->rank, launch->size);
		return -1;
	}
	return launch_dir_begin(launch);
}

static void launch_key(char *key, const char *name, int rank, size_t piece)
{
	snprintf(key, LAUNCH_KEY_MAX, LAUNCH_PREFIX "%s.%d.%zu", name, rank,
		 piece);
}

int launch_put(struct launch *launch, const char *name, const void *data,
	       size_t len)
{
	const unsigned char *byte = data;
	char key[LAUNCH_KEY_MAX], value[LAUNCH_VALUE_MAX + 1];
	size_t piece = 0, i = 0;
	int at = sprintf(value, "%0*zx", LAUNCH_LEN_DIGITS, len);

	do {
		for (; i < len && at + 2 <= LAUNCH_VALUE_MAX; i++)
			at += sprintf(value + at, "%02x", byte[i]);
		launch_key(key, name, launch->rank, piece++);
		if (launch->ops->put(launch, key, value))
			return -1;
		at = 0;
	} while (i < len);
	return 0;
}

/* Appends the bytes of TEXT to data[]. Returns false if TEXT is invalid. */
static bool launch_unhex(const char *text, unsigned char *data, size_t len,
			 size_t *at)
{
	for (; *text; text += 2) {
		if (*at == len || sscanf(text, "%2hhx", &data[*at]) != 1 ||
		    !text[1])
			return false;
		++*at;
	}
	return true;
}

int launch_get(struct launch *launch, int rank, const char *name,
	       void **data, size_t *len)
{
	char key[LAUNCH_KEY_MAX], value[LAUNCH_VALUE_MAX + 1];
	unsigned char *bytes = NULL;
	size_t piece = 0, at = 0, size = 0, skip = LAUNCH_LEN_DIGITS;

	do {
		launch_key(key, name, rank, piece);
		if (launch->ops->get(launch, rank, key, value, sizeof(value)))
			goto err_free;
		if (!piece++) {
			if (sscanf(value, "%8zx", &size) != 1 ||
			    strlen(value) < skip)
				goto err_value;
			bytes = malloc(size + 1);
			if (!bytes)
				goto err_value;
		}
		if (!launch_unhex(value + skip, bytes, size, &at))
			goto err_value;
		skip = 0;
	} while (at < size);
	bytes[size] = '\0';
	*data = bytes;
	*len = size;
	return 0;

err_value:
	launch_say("--mpi: the data of rank %d is not readable; use the "
		   "same version of fi_duo_info in all ranks", rank);
err_free:
	free(bytes);
	return -1;
}
