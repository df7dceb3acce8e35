/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A member of the job (job.h), its peers and its operations. job_any.c has the
 * receives from any source, job_member.c all other operations.
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

/* The one-sided operations with a member, in the order of their execution. */
enum { JOB_WRITE, JOB_READ, JOB_ADD, JOB_VERBS };

struct job_peer {
	fi_addr_t addr;
	bool over; /* the peer has failed, and no operation is pending */
	/* CPU time of this process when it found the failure, ns; 0: alive */
	uint64_t dead_ns;
	struct job_act tx[JOB_KINDS], in, verb[JOB_VERBS];
	int at; /* index in verb[] of the pending or next operation */
	unsigned int seed, len;	/* data written to the peer: seed, length */
	uint32_t got[JOB_KINDS], onesided;
	/* turn[] (job_any.c) of the receive that got the peer's last message */
	unsigned int any_turn;
	/* got and onesided at the start of the round */
	uint32_t old_got[JOB_KINDS], old_onesided;
};

/* job_member.c */
/*
 * Returns true once when the operation with member p has ended. Then *ok is
 * true if the operation has succeeded. For a receive from any source, p is the
 * calling member.
 *
 * If an operation with a member on another host has failed, this function
 * returns false and the operation stays busy, because efa may report the error
 * again.
 */
bool job_ended(int p, struct job_act *act, bool *ok);
/* Posts a receive. If act->busy is false afterwards, the caller must retry. */
void job_receive(int p, struct job_act *act, int kind);
/* Checks and counts a message that has arrived. */
void job_got(const struct job_act *act, int kind);

/* job_any.c: receives from any source */
void job_any_open(struct ft_ep *e, struct job *job, int self,
		  struct job_peer *peers);
void job_any_step(void);
/*
 * Cancels all receives, and waits until they have ended. Does not wait for
 * receives that efa has matched with a message of a dead member on another
 * host: they may have no end.
 */
void job_any_cancel(void);
void job_any_close(void);

#endif /* JOB_MEMBER_H */
