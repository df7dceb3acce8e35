/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Atomic operations on memory of this process, by instructions that are
 * atomic to those of any other emulation on processors that does so without
 * locks: libfabric's among them. Pure.
 */
#ifndef NEAR_RMA_ATOMIC_H
#define NEAR_RMA_ATOMIC_H

#include "near/near.h"

bool near_op_compares(unsigned int op);
/* Does it make sense for that type? */
bool near_atomic_valid(unsigned int op, unsigned int type);
/*
 * count elements at target, aligned by their size. What they were goes to
 * result, unless that is NULL; compare is read by CSWAP* and MSWAP only. The
 * other three need no alignment. Must be valid.
 */
void near_atomic_apply(unsigned int op, unsigned int type, void *target,
		       const void *operand, const void *compare, void *result,
		       size_t count);

#endif /* NEAR_RMA_ATOMIC_H */
