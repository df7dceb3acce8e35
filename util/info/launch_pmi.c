/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * PMI-1: lines of text over a file descriptor. Used by the launchers of MPICH
 * and Intel MPI, and by Slurm with --mpi=pmi2.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

/* Longest line, bytes: a value, a key, the job's name, and keywords */
#define PMI_LINE_MAX (LAUNCH_VALUE_MAX + 1024)

static int pmi_fd;
static char pmi_job[256];

static int pmi_failed(const char *what, const char *cause)
{
	launch_say("--mpi: PMI: %s: %s; see the launcher's own messages, "
		   "or name a directory that all hosts share with --dir",
		   what, cause);
	return -1;
}

/* Writes REQUEST, and reads a line with the command ANSWER. Returns 0 or -1. */
static int pmi_ask(const char *request, const char *answer, char *line)
{
	size_t len = strlen(request), at = 0;
	ssize_t got;

	while (at < len) {
		got = write(pmi_fd, request + at, len - at);
		if (got < 0)
			return pmi_failed("write", strerror(errno));
		at += (size_t) got;
	}
	for (at = 0; !at || line[at - 1] != '\n'; at++) {
		if (at + 1 == PMI_LINE_MAX)
			return pmi_failed(answer, "a line without end");
		got = read(pmi_fd, line + at, 1);
		if (got != 1)
			return pmi_failed(answer, got ? strerror(errno) :
						  "the launcher has closed");
	}
	line[at - 1] = '\0';
	if (strncmp(line, "cmd=", 4) ||
	    strncmp(line + 4, answer, strlen(answer)) ||
	    (strstr(line, " rc=") && !strstr(line, " rc=0")))
		return pmi_failed(answer, line);
	return 0;
}

/*
 * Copies the word of LINE that follows NAME, which is a key with its "=", for
 * example " value=". Returns 0; -1: LINE does not contain NAME.
 */
static int pmi_word(const char *line, const char *name, char *word,
		    size_t size)
{
	const char *at = strstr(line, name);

	if (!at)
		return pmi_failed(name, line);
	at += strlen(name);
	snprintf(word, size, "%.*s", (int) strcspn(at, " "), at);
	return 0;
}

static int pmi_put(struct launch *launch, const char *key, const char *value)
{
	char line[PMI_LINE_MAX], answer[PMI_LINE_MAX];

	(void) launch;
	snprintf(line, sizeof(line), "cmd=put kvsname=%s key=%s value=%s\n",
		 pmi_job, key, value);
	return pmi_ask(line, "put_result", answer);
}

static int pmi_fence(struct launch *launch)
{
	char answer[PMI_LINE_MAX];

	(void) launch;
	return pmi_ask("cmd=barrier_in\n", "barrier_out", answer);
}

static int pmi_get(struct launch *launch, int rank, const char *key,
		   char *value, size_t size)
{
	char line[PMI_LINE_MAX], answer[PMI_LINE_MAX];

	(void) launch;
	(void) rank;
	snprintf(line, sizeof(line), "cmd=get kvsname=%s key=%s\n", pmi_job,
		 key);
	if (pmi_ask(line, "get_result", answer))
		return -1;
	return pmi_word(answer, " value=", value, size);
}

static void pmi_end(struct launch *launch)
{
	char answer[PMI_LINE_MAX];

	(void) launch;
	pmi_ask("cmd=finalize\n", "finalize_ack", answer);
}

static const struct launch_ops pmi_ops = {
	.put = pmi_put,
	.fence = pmi_fence,
	.get = pmi_get,
	.end = pmi_end,
};

int launch_pmi_begin(struct launch *launch)
{
	const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
	char answer[PMI_LINE_MAX];

	pmi_fd = atoi(getenv("PMI_FD"));
	launch->rank = rank ? atoi(rank) : -1;
	launch->size = size ? atoi(size) : 0;
	if (launch->rank < 0 || launch->rank >= launch->size)
		return pmi_failed("PMI_RANK and PMI_SIZE", "not set");
	if (pmi_ask("cmd=init pmi_version=1 pmi_subversion=1\n",
		    "response_to_init", answer) ||
	    pmi_ask("cmd=get_my_kvsname\n", "my_kvsname", answer) ||
	    pmi_word(answer, " kvsname=", pmi_job, sizeof(pmi_job)))
		return -1;
	launch->ops = &pmi_ops;
	return 0;
}
