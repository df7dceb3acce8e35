/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Atomic operations on memory of this process, by lock-free instructions. They
 * are atomic with those of other emulations on CPUs, libfabric's among them.
 * Pure functions.
 */
#ifndef NEAR_RMA_ATOMIC_H
#define NEAR_RMA_ATOMIC_H

#include "near/near.h"

bool near_op_compares(unsigned int op);
/* True if the operation is defined for that type. */
bool near_atomic_valid(unsigned int op, unsigned int type);
/*
 * Applies a valid operation to count elements at target, which must be aligned
 * to their size; the other pointers need no alignment. Stores the old values to
 * result unless it is NULL. Only CSWAP* and MSWAP read compare.
 */
void near_atomic_apply(unsigned int op, unsigned int type, void *target,
		       const void *operand, const void *compare, void *result,
		       size_t count);

#endif /* NEAR_RMA_ATOMIC_H */
