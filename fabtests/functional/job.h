/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A job whose members are killed. Each rank of the test is a *keeper*
 * (job_deaths.c): it forks the job's members on its host (job_member.c), and
 * shares a struct job with them. The keepers exchange its contents.
 */
#ifndef JOB_H
#define JOB_H

#include "common/ft.h"

#define JOB_MEMBERS 4		/* number of living members */
#define JOB_MAX 8 /* largest number of members, with the killed ones */
#define JOB_LEN 70000		/* longest message and RMA, bytes */

/*
 * Kinds of messages, and their tags. JOB_ANY: for receives from any source;
 * JOB_DIRECTED: for receives that name the sender.
 */
enum { JOB_ANY, JOB_DIRECTED, JOB_KINDS };

/* Description of a member, by which other members reach it. */
struct job_about {
	char name[FT_NAME_MAX];
	/* RMA key and address of a struct job_cell for each other member */
	uint64_t key, base;
	int host;
};

struct job_cell {
	uint64_t count;		/* number of additions */
	uint8_t data[JOB_LEN];
} __attribute__((aligned(4096)));

/* Numbers of messages and additions from a member to each other member. */
struct job_row {
	uint32_t sent[JOB_MAX][JOB_KINDS];
	uint32_t added[JOB_MAX];
};

/* Doomed: the keepers are about to kill the member. Dead: it has exited. */
enum job_fate { JOB_ALIVE, JOB_DOOMED, JOB_DEAD };

/*
 * Steps of a member. Its job_about is valid from JOB_OPEN, its job_row from
 * JOB_STOPPED. It enters JOB_STOPPED and later steps only after the keepers
 * have stored the step in job.step.
 */
enum job_step { JOB_START, JOB_OPEN, JOB_STOPPED, JOB_CHECKED, JOB_CLOSED };

struct job {
	struct job_about about[JOB_MAX];
	struct job_row row[JOB_MAX];
	atomic_int count;	/* number of members with a valid job_about */
	atomic_int round;	/* number of the round; each death begins one */
	atomic_int step;	/* highest enum job_step that may be entered */
	atomic_int fate[JOB_MAX];
	atomic_int entered[JOB_MAX];	/* enum job_step of each member */
	/* number of completed rounds of each member */
	atomic_int rounds[JOB_MAX];
};

void job_member(struct job *job, int me, int host) __attribute__((noreturn));

/* job_util.c */
size_t job_len(int from, int kind, uint32_t seq);
/* Writes a message, and returns its length. */
size_t job_fill(uint8_t *buf, int from, int to, int kind, uint32_t seq);
/* Checks all of a message but its number. Returns its sender. */
int job_verify(const uint8_t *buf, size_t len, int to, int kind);
int job_from(const uint8_t *buf);	/* sender of a message */
uint32_t job_seq(const uint8_t *buf);	/* number of a message */
uint64_t job_cpu_ns(void);	/* CPU time of this process, ns */
/*
 * True if this process holds only resources of "members" members, itself
 * included: at most one pidfd for each, and one or two mapped files of near (a
 * segment and a region table) for each. With "late", fails the test instead of
 * returning false.
 */
bool job_is_clean(int members, bool late);

#endif /* JOB_H */
