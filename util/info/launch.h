/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * How the processes of a job find each other: through the launcher, PMIx or
 * PMI-1, or through files in a directory that all hosts share. No MPI library
 * and no PMIx is linked. Whatever fails says so in one line on stderr.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>

/* Longest value of one key; PMI-1 launchers take 1024 bytes. */
#define LAUNCH_VALUE_MAX 800

struct launch;

struct launch_ops {
	/* Value is text without blanks; 0 or -1. */
	int (*put)(struct launch *launch, const char *key, const char *value);
	/* After it, what all have put before can be got. */
	int (*fence)(struct launch *launch);
	int (*get)(struct launch *launch, int rank, const char *key,
		   char *value, size_t size);
	void (*end)(struct launch *launch);
};

/* One in a process. */
struct launch {
	const struct launch_ops *ops;
	int rank, size;
	/* what the user has said; dir: NULL for the launcher's own ways */
	const char *dir;
	int timeout;		/* seconds, for those that have not come */
};

/* rank and size: -1 to take the launcher's. */
int launch_begin(struct launch *launch);
/* Bytes of any kind and number, by this process' rank and name. */
int launch_put(struct launch *launch, const char *name, const void *data,
	       size_t len);
/* The caller frees *data, which has a zero byte behind its end. */
int launch_get(struct launch *launch, int rank, const char *name,
	       void **data, size_t *len);

int launch_pmix_begin(struct launch *launch);
int launch_pmi_begin(struct launch *launch);
int launch_dir_begin(struct launch *launch);

void launch_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LAUNCH_H */
