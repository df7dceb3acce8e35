/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Lent operations: reads and writes between device memory of the initiator and
 * host memory of the target. If such an operation is staged (stage.h), a CPU
 * copies between the host memory and the stage. But if the host memory is
 * pinned, a device of the target can copy between both memories directly: the
 * initiator lends its memory to the target.
 *
 * The chunk of a lent operation has no data, but a loan, which names a region
 * of the initiator. The target maps the region's allocation (mapped.h), takes
 * the loan, starts a copy of all bytes, and replies when the copy has ended. If
 * the target cannot map or copy, it rejects the loan, and the initiator stages
 * the operation. Until the reply the operation stays in the initiator's queue,
 * so that no later operation overtakes it.
 *
 * A port that closes revokes its loans, or waits until the targets' copies have
 * ended, because afterwards the application may reuse the memory. See
 * docs/near/rma.md.
 */
#ifndef NEAR_RMA_LOAN_H
#define NEAR_RMA_LOAN_H

#include "near/rma/stage.h"

/*
 * Minimum length of a lent operation, bytes. While other operations are
 * pending, the minimum is the length of a chunk, because lent operations wait
 * for each other, and staged operations do not.
 */
#define NEAR_LOAN_MIN (64u << 10)
/* number of operations that near does not lend after a rejected loan */
#define NEAR_LOAN_SKIP 4
/* error in the reply to a loan that the target has rejected */
#define NEAR_LOAN_REJECTED EXDEV

enum near_loan_state {
	NEAR_LOAN_OPEN,
	NEAR_LOAN_TAKEN,	/* the target is copying */
	NEAR_LOAN_ENDED,	/* the target's copy has ended */
	NEAR_LOAN_REVOKED,	/* by the initiator: the target must not copy */
};

/*
 * The content of the chunk of a lent operation, in the initiator's stage. Both
 * ends write to it, so a faulty peer may change it at any time.
 */
struct near_loan {
	uint32_t state;		/* enum near_loan_state */
	uint64_t key;		/* key of a region of the initiator */
	uint64_t addr;		/* as in near_rma_args.addr */
};

/* The initiator */
/*
 * True if an operation on this region should be lent. Counts down
 * near_rma_peer.loan_skip.
 */
bool near_loan_can(const struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry);
/*
 * Lends the local memory of the first operation in the queue. Always returns
 * -EAGAIN, because the operation stays in the queue until the reply.
 */
int near_loan_issue(struct near_port *port, struct near_rma_op *op);
/*
 * Handles the reply to a lent operation. Returns 0, or the operation's error as
 * a positive errno value. If the target has rejected the loan, turns the
 * operation into a staged one and returns 0.
 */
int near_loan_answered(struct near_port *port, struct near_chunk *chunk,
		       int err);

/* The target */
/*
 * Starts the copy for a request. Returns 0 or a positive errno value;
 * NEAR_LOAN_REJECTED: the initiator must stage the operation.
 */
int near_loan_serve(struct near_port *port, struct near_rma_peer *at,
		    struct near_rma_reply *reply, struct near_loan *loan);
/* Ends a loan whose copy has ended. */
void near_loan_end(struct near_rma_reply *reply);

/*
 * Both ends. Revokes this port's loans to the peer. If the peer has taken one
 * of them, waits until the peer's copy has ended. Also waits until this port's
 * copies for the peer's loans have ended. Must be called before
 * near_mapped_close() and near_stage_close().
 */
void near_loans_close(struct near_rma_peer *at);

#endif /* NEAR_RMA_LOAN_H */
