/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Lent operations: RMA between device memory of the initiator and pinned host
 * memory of the target. The initiator lends its memory to the target, whose
 * device makes one copy.
 *
 * The chunk (stage.h) of a lent operation has a loan, which names a region of
 * the initiator. The target maps the region's allocation (mapped.h), takes the
 * loan, starts the copy, and replies when the copy has ended. If the target
 * rejects the loan, the initiator stages the operation. Until the reply the
 * operation stays in the queue, so that no later operation overtakes it.
 *
 * A port that closes revokes its loans, or waits until the targets' copies have
 * ended: afterwards the application may reuse the memory. See docs/near/rma.md.
 */
#ifndef NEAR_RMA_LOAN_H
#define NEAR_RMA_LOAN_H

#include "near/rma/stage.h"

/*
 * Minimum length of a lent operation, bytes. While other operations are
 * pending, the minimum is NEAR_STAGE_CHUNK, because lent operations wait for
 * each other, but staged ones overlap.
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
	/* RMA address in that region: see near_region_entry.start */
	uint64_t addr;
};

/*
 * Initiator: true if the operation should be lent. If only at->loan_skip
 * forbids lending, decrements at->loan_skip and returns false.
 */
bool near_loan_can(const struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry);
/*
 * Initiator: if op, the first operation in the queue, may begin now, lends its
 * local buffer. Always returns -EAGAIN, because op stays in the queue until the
 * reply.
 */
int near_loan_issue(struct near_port *port, struct near_rma_op *op);
/*
 * Initiator: handles the reply to a loan. err: the error in the reply. If the
 * target has rejected the loan, stages the operation and returns 0. Otherwise
 * returns err.
 */
int near_loan_answered(struct near_port *port, struct near_chunk *chunk,
		       int err);

/*
 * Target: takes the loan of a request and starts the copy. Returns 0, or an
 * errno value > 0 for the reply; NEAR_LOAN_REJECTED: the initiator must stage
 * the operation.
 */
int near_loan_serve(struct near_port *port, struct near_rma_peer *at,
		    struct near_rma_reply *reply, struct near_loan *loan);
/* Target: ends the request's loan, if any. The copy must have ended before. */
void near_loan_end(struct near_rma_reply *reply);

/*
 * Initiator: revokes this port's loans to the peer. Waits until the copies of
 * taken loans have ended.
 */
void near_loans_revoke(const struct near_rma_peer *at);

#endif /* NEAR_RMA_LOAN_H */
