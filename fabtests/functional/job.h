/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A job whose members are killed: job_deaths.c has the keepers, job_member.c
 * the members. Each rank of the test is a keeper, with the members of its host
 * as children. They share the memory of a struct job; keepers exchange its
 * contents with those of other hosts.
 */
#ifndef JOB_H
#define JOB_H

#include "common/ft.h"

#define JOB_MEMBERS 4		/* alive at any time */
#define JOB_MAX 8		/* with those that are killed */
#define JOB_LEN 70000		/* longest message and RMA, bytes */

/* Kinds of messages, and their tags. */
enum { JOB_ANY, JOB_DIRECTED, JOB_KINDS };

/* Data by which other members reach one. */
struct job_about {
	char name[FT_NAME_MAX];
	uint64_t key, base;	/* region: a struct job_cell of each member */
	int host;
};

struct job_cell {
	uint64_t count;		/* of additions */
	uint8_t data[JOB_LEN];
} __attribute__((aligned(4096)));

/* Numbers of messages and additions of a member to each other one. */
struct job_row {
	uint32_t sent[JOB_MAX][JOB_KINDS];
	uint32_t added[JOB_MAX];
};

/* A doomed member may be killed at any moment; a dead one has exited. */
enum job_fate { JOB_ALIVE, JOB_DOOMED, JOB_DEAD };

/*
 * Steps of a member. After JOB_OPEN its description is valid, after JOB_STOPPED
 * its row. It enters each step when the keepers have begun it.
 */
enum job_step { JOB_START, JOB_OPEN, JOB_STOPPED, JOB_CHECKED, JOB_CLOSED };

struct job {
	struct job_about about[JOB_MAX];
	struct job_row row[JOB_MAX];
	atomic_int count;	/* members that all can reach */
	atomic_int round;	/* begins after each death */
	atomic_int step;	/* enum job_step that members may enter */
	atomic_int fate[JOB_MAX];
	atomic_int entered[JOB_MAX];	/* enum job_step, by member */
	atomic_int rounds[JOB_MAX];	/* rounds that it has completed */
};

/* Main function of a member. Ends the process. */
void job_member(struct job *job, int me, int host) __attribute__((noreturn));

/* job_util.c */
/* Returns the length of a message. */
size_t job_len(int from, int kind, uint32_t seq);
/* Writes a message. Returns its length. */
size_t job_fill(uint8_t *buf, int from, int to, int kind, uint32_t seq);
/* Checks a message, except its number. Returns its sender. */
int job_verify(const uint8_t *buf, size_t len, int to, int kind);
int job_from(const uint8_t *buf);	/* sender of a message */
uint32_t job_seq(const uint8_t *buf);	/* number of a message */
uint64_t job_cpu_ns(void);	/* of this process */
/*
 * True if this process has pidfds and memory of at most that number of members,
 * itself among them: a segment and a region table of each. If not and `late`,
 * fails.
 */
bool job_is_clean(int members, bool late);

#endif /* JOB_H */
