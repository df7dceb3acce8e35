/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Data exchange between the processes of a job: through the launcher, PMIx or
 * PMI-1, or through files in a directory that all hosts share. Neither an MPI
 * library nor PMIx is linked. Each failure is reported in a line on stderr.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>

/* Longest value of a key, bytes; PMI-1 launchers accept 1024 bytes. */
#define LAUNCH_VALUE_MAX 800

struct launch;

struct launch_ops {
	/* Stores a value, text without blanks. Returns 0 or -1. */
	int (*put)(struct launch *launch, const char *key, const char *value);
	/*
	 * Waits for all processes; then get() finds all values stored before.
	 */
	int (*fence)(struct launch *launch);
	int (*get)(struct launch *launch, int rank, const char *key,
		   char *value, size_t size);
	void (*end)(struct launch *launch);
};

/* There is one in a process. */
struct launch {
	const struct launch_ops *ops;
	int rank, size;
	/* options of the user; dir: NULL for the launcher's protocol */
	const char *dir;
	int timeout;		/* time to wait for missing processes, s */
};

/* Starts the exchange. rank and size: -1 to use the launcher's. */
int launch_begin(struct launch *launch);
/* Stores bytes under this process's rank and a name. */
int launch_put(struct launch *launch, const char *name, const void *data,
	       size_t len);
/*
 * Reads the bytes of a rank and name. The caller frees *data, which has a zero
 * byte behind its end.
 */
int launch_get(struct launch *launch, int rank, const char *name,
	       void **data, size_t *len);

int launch_pmix_begin(struct launch *launch);
int launch_pmi_begin(struct launch *launch);
int launch_dir_begin(struct launch *launch);

void launch_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LAUNCH_H */
