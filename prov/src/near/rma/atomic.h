/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Atomic operations by lock-free instructions of the CPU. libfabric's emulation
 * of atomics uses such instructions, too. So near's atomics and those of a
 * provider with this emulation are atomic to each other.
 */
#ifndef NEAR_RMA_ATOMIC_H
#define NEAR_RMA_ATOMIC_H

#include "near/near.h"

/* True for operations that compare: CSWAP* and MSWAP. */
bool near_op_compares(unsigned int op);
/* True if the operation is defined for this type. */
bool near_atomic_valid(unsigned int op, unsigned int type);
/*
 * Applies a valid operation to count elements at target, which must be aligned.
 * If result is not NULL, stores the old values there. Does not use operand for
 * NEAR_ATOMIC_READ, nor compare for operations that do not compare.
 */
void near_atomic_apply(unsigned int op, unsigned int type, void *target,
		       const void *operand, const void *compare, void *result,
		       size_t count);

#endif /* NEAR_RMA_ATOMIC_H */
