/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Atomic operations on memory of this process, by instructions that are
 * atomic to those of any other emulation on processors that does so without
 * locks: libfabric's among them. Numbers are those of enum fi_op and enum
 * fi_datatype. Pure.
 */
#ifndef NEAR_RMA_ATOMIC_H
#define NEAR_RMA_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum near_type {
	NEAR_INT8,
	NEAR_UINT8,
	NEAR_INT16,
	NEAR_UINT16,
	NEAR_INT32,
	NEAR_UINT32,
	NEAR_INT64,
	NEAR_UINT64,
	NEAR_FLOAT,
	NEAR_DOUBLE,
	NEAR_FLOAT_COMPLEX,
	NEAR_TYPES,	/* wider ones need a lock */
};

enum near_op {
	NEAR_MIN,
	NEAR_MAX,
	NEAR_SUM,
	NEAR_PROD,
	NEAR_LOR,
	NEAR_LAND,
	NEAR_BOR,
	NEAR_BAND,
	NEAR_LXOR,
	NEAR_BXOR,
	NEAR_ATOMIC_READ,
	NEAR_ATOMIC_WRITE,
	NEAR_CSWAP,
	NEAR_CSWAP_NE,
	NEAR_CSWAP_LE,
	NEAR_CSWAP_LT,
	NEAR_CSWAP_GE,
	NEAR_CSWAP_GT,
	NEAR_MSWAP,
	NEAR_OP_COUNT,
};

/* Bytes of one; 0: there is no such type. */
size_t near_type_size(unsigned int type);
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
