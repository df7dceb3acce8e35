/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Atomic operations by lock-free CPU instructions. Providers that emulate
 * atomics, such as efa, use such instructions as well. So the atomics of near
 * and of such a provider are atomic with respect to each other.
 */
#ifndef NEAR_RMA_ATOMIC_H
#define NEAR_RMA_ATOMIC_H

#include "near/near.h"

/* True if op has a compare operand: NEAR_CSWAP* and NEAR_MSWAP. */
bool near_op_compares(unsigned int op);
/* True if the operation is defined for this type. */
bool near_atomic_valid(unsigned int op, unsigned int type);
/*
 * Applies an operation to count elements at target. near_atomic_valid() must be
 * true, and target must be aligned. Stores the old values in result; NULL: does
 * not store them. Ignores operand or compare if op has no such operand.
 */
void near_atomic_apply(unsigned int op, unsigned int type, void *target,
		       const void *operand, const void *compare, void *result,
		       size_t count);

#endif /* NEAR_RMA_ATOMIC_H */
