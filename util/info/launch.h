/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Exchange of data between the processes of a job: by the launcher's protocol,
 * PMIx or PMI-1, or by files in a directory that all hosts share. The program
 * is linked with neither an MPI library nor PMIx. Functions that fail print a
 * line on stderr.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>

/*
 * Beginning of all keys, and of the files of --dir, which rank 0 removes. Not just
 * the program's name: a user's file may begin with that.
 */
#define LAUNCH_PREFIX "fi_duo_info.key."
/* Longest value of a key, bytes. Launchers with PMI-1 accept 1024 bytes. */
#define LAUNCH_VALUE_MAX 800

struct launch;

struct launch_ops {
	/* Stores VALUE, a text without blanks, under KEY. Returns 0 or -1. */
	int (*put)(struct launch *launch, const char *key, const char *value);
	/*
	 * Waits for all processes. Afterwards get() finds all values that were
	 * stored before. Returns 0 or -1.
	 */
	int (*fence)(struct launch *launch);
	int (*get)(struct launch *launch, int rank, const char *key,
		   char *value, size_t size);
	void (*end)(struct launch *launch);
};

/* The exchange; each process has one. */
struct launch {
	const struct launch_ops *ops;
	int rank, size;
	/* options of the user; dir is NULL for the launcher's protocol */
	const char *dir;
	int timeout;		/* longest wait for other processes, s */
};

/*
 * Starts the exchange. If rank is -1, sets rank and size to the launcher's.
 * Returns 0 or -1.
 */
int launch_begin(struct launch *launch);
/* Stores LEN bytes under this process's rank and NAME. Returns 0 or -1. */
int launch_put(struct launch *launch, const char *name, const void *data,
	       size_t len);
/*
 * Reads the bytes that RANK has stored under NAME. Returns 0, and an allocated
 * copy in *data, with a zero byte behind its end; or -1. The caller must free
 * *data.
 */
int launch_get(struct launch *launch, int rank, const char *name,
	       void **data, size_t *len);

int launch_pmix_begin(struct launch *launch);
int launch_pmi_begin(struct launch *launch);
int launch_dir_begin(struct launch *launch);

void launch_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LAUNCH_H */
