/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Lent operations: RMA between device memory of the initiator and pinned host
 * memory of the target. The initiator lends its memory to the target, whose
 * device makes one copy.
 *
 * The chunk (stage.h) of a lent operation has a loan, which names a region of
 * the initiator. See docs/near/rma.md, *Lent operations*.
 */
#ifndef NEAR_RMA_LOAN_H
#define NEAR_RMA_LOAN_H

#include "near/rma/stage.h"

/*
 * minimum length of a lent operation, bytes; NEAR_STAGE_CHUNK while other
 * operations are pending
 */
#define NEAR_LOAN_MIN (64u << 10)
/* after a rejected loan: number of next operations that are not lent */
#define NEAR_LOAN_SKIP 4
#define NEAR_LOAN_REJECTED EXDEV /* error in the reply to a rejected loan */

enum near_loan_state {
	NEAR_LOAN_OPEN,
	NEAR_LOAN_TAKEN,	/* the target is copying */
	NEAR_LOAN_ENDED,	/* the target's copy has ended */
	NEAR_LOAN_REVOKED,	/* by the initiator: the target must not copy */
};

/* Content of a lent operation's chunk. A faulty peer may change it any time. */
struct near_loan {
	uint32_t state;		/* enum near_loan_state */
	uint64_t key;		/* key of a region of the initiator */
	uint64_t addr;		/* RMA address in that region */
};

/*
 * Initiator: true if the operation should be lent. If only at->loan_skip
 * forbids lending, decrements at->loan_skip and returns false.
 */
bool near_loan_can(const struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry);
/*
 * Initiator: lends the local buffer of op, the first one in the queue, if op
 * may begin now. Returns -EAGAIN: op stays in the queue until the reply.
 */
int near_loan_issue(struct near_port *port, struct near_rma_op *op);
/*
 * Initiator: handles a reply with the error err. If the target has rejected the
 * loan, stages the operation and returns 0. Otherwise returns err.
 */
int near_loan_answered(struct near_port *port, struct near_chunk *chunk,
		       int err);

/*
 * Target: takes the loan of a request and starts the copy. Returns 0, or the
 * error for the reply, > 0.
 */
int near_loan_serve(struct near_port *port, struct near_rma_peer *at,
		    struct near_rma_reply *reply, struct near_loan *loan);
/* Target: ends the request's loan, if any. The copy must have ended before. */
void near_loan_end(struct near_rma_reply *reply);

/* Initiator: revokes its loans, and waits for the copies of taken ones. */
void near_loans_revoke(const struct near_rma_peer *at);

#endif /* NEAR_RMA_LOAN_H */
