/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Exchange of data between the processes of a job, by PMIx, by PMI-1, or by
 * files in a directory that all hosts share. The program is linked with neither
 * an MPI library nor PMIx. Functions that fail print a line on stderr.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>

/*
 * Prefix of keys and of files of --dir. Rank 0 removes all files with this
 * prefix, so a user's files must not have it.
 */
#define LAUNCH_PREFIX "fi_duo_info.key."
/* Longest value of a key, bytes. Launchers with PMI-1 accept 1024 bytes. */
#define LAUNCH_VALUE_MAX 800

struct launch;

struct launch_ops {
	/* Stores VALUE, a text without blanks, under KEY. Returns 0 or -1. */
	int (*put)(struct launch *launch, const char *key, const char *value);
	/*
	 * Waits for all processes, after which get() finds all their values.
	 * Returns 0 or -1.
	 */
	int (*fence)(struct launch *launch);
	int (*get)(struct launch *launch, int rank, const char *key,
		   char *value, size_t size);
	void (*end)(struct launch *launch);
};

/* The exchange of one process */
struct launch {
	const struct launch_ops *ops;
	int rank, size;
	/* directory of the files; NULL: use the launcher's protocol */
	const char *dir;
	int timeout;		/* longest wait for other processes, s */
};

/* Returns 0 or -1. If rank is -1, sets rank and size to the launcher's. */
int launch_begin(struct launch *launch);
/* Stores LEN bytes under this process's rank and NAME. Returns 0 or -1. */
int launch_put(struct launch *launch, const char *name, const void *data,
	       size_t len);
/*
 * Reads the bytes that RANK has stored under NAME. Returns -1 or 0. On 0, *data
 * is an allocated copy, followed by a zero byte; the caller must free it.
 */
int launch_get(struct launch *launch, int rank, const char *name,
	       void **data, size_t *len);

int launch_pmix_begin(struct launch *launch);
int launch_pmi_begin(struct launch *launch);
int launch_dir_begin(struct launch *launch);

void launch_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LAUNCH_H */
