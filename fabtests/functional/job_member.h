/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A member's operations and peers: job_member.c, and job_any.c for the receives
 * from any source.
 */
#ifndef JOB_MEMBER_H
#define JOB_MEMBER_H

#include "job.h"

/* An operation that may be pending, and its buffer. */
struct job_act {
	struct ft_op op;
	struct ft_buf buf;
	bool busy;
};

/* Steps of one-sided operations with a member. */
enum { JOB_WRITE, JOB_READ, JOB_ADD, JOB_VERBS };

struct job_peer {
	fi_addr_t addr;
	bool over;		/* it has failed, and nothing with it is pending */
	uint64_t dead_ns;	/* CPU time when its failure was found; 0: alive */
	struct job_act tx[JOB_KINDS], in, verb[JOB_VERBS];
	int at;			/* verb to start or pending */
	uint64_t was;		/* result of the addition */
	unsigned int seed, len;	/* of the data in its cell */
	uint32_t got[JOB_KINDS], onesided;
	unsigned int any_turn;	/* of the receive that had its last message */
	uint32_t old_got[JOB_KINDS], old_onesided;	/* before the round */
};

/* job_member.c */
/*
 * True once if the operation has ended. *ok: with success. One with a remote
 * member that failed stays busy, since efa may report its error again. p: the
 * member itself for a receive from any source.
 */
bool job_ended(int p, struct job_act *act, bool *ok);
/* Posts a receive. It is busy then, or has to be posted later. */
void job_receive(int p, struct job_act *act, int kind);
/* Checks a message that has arrived, and counts it. */
void job_got(const struct job_act *act, int kind);

/* job_any.c: receives from any source */
void job_any_open(struct ft_ep *e, struct job *job, int self,
		  struct job_peer *peers);
/* Takes messages that have arrived, and posts receives. */
void job_any_step(void);
/*
 * Cancels all receives. Each must end, except for those that efa has matched
 * with a message of a dead remote member.
 */
void job_any_cancel(void);
void job_any_close(void);

#endif /* JOB_MEMBER_H */
