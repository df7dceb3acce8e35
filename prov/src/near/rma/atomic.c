/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Atomics: docs/near/rma.md. An element is replaced by a compare-and-exchange
 * that compares the element's bits as an integer. A floating-point comparison
 * would never succeed for a NaN, which is not equal to itself.
 */

#include <complex.h>
#include <string.h>

#include "near/rma/ops.h"

/* True for NEAR_CSWAP* and NEAR_MSWAP, which have a compare operand. */
static bool near_op_compares(unsigned int op)
{
	return op >= NEAR_CSWAP && op < NEAR_OP_COUNT;
}

bool near_atomic_valid(unsigned int op, unsigned int type)
{
	if (op >= NEAR_OP_COUNT || type >= NEAR_TYPES)
		return false;
	switch (op) {
	case NEAR_BOR:
	case NEAR_BAND:
	case NEAR_BXOR:
	case NEAR_MSWAP:
		return type <= NEAR_UINT64;
	case NEAR_MIN:
	case NEAR_MAX:
	case NEAR_CSWAP_LE:
	case NEAR_CSWAP_LT:
	case NEAR_CSWAP_GE:
	case NEAR_CSWAP_GT:
		return type != NEAR_FLOAT_COMPLEX;
	default:
		return true;
	}
}

bool near_rma_has_atomic(unsigned int verb, unsigned int op, unsigned int type)
{
	return near_atomic_valid(op, type) &&
	       near_op_compares(op) == (verb == NEAR_COMPARE) &&
	       (op != NEAR_ATOMIC_READ || verb == NEAR_FETCH);
}

/* Cases of the switch in near_next_<name>(), which NEAR_DEFINE defines */
#define NEAR_NEXT_ALL							\
	case NEAR_LOR: return old != 0 || operand != 0;			\
	case NEAR_LAND: return old != 0 && operand != 0;		\
	case NEAR_LXOR: return (old != 0) != (operand != 0);		\
	case NEAR_CSWAP_NE: return compare != old ? operand : old;

#define NEAR_NEXT_COMPLEX NEAR_NEXT_ALL					\
	case NEAR_SUM: return old + operand;				\
	case NEAR_PROD: return old * operand;

#define NEAR_NEXT_ORDERED						\
	case NEAR_MIN: return old > operand ? operand : old;		\
	case NEAR_MAX: return old < operand ? operand : old;		\
	case NEAR_CSWAP_LE: return compare <= old ? operand : old;	\
	case NEAR_CSWAP_LT: return compare < old ? operand : old;	\
	case NEAR_CSWAP_GE: return compare >= old ? operand : old;	\
	case NEAR_CSWAP_GT: return compare > old ? operand : old;

#define NEAR_NEXT_REAL NEAR_NEXT_COMPLEX NEAR_NEXT_ORDERED

/* Sums and products wrap. Overflow of signed + or * would be undefined. */
#define NEAR_NEXT_INT NEAR_NEXT_ALL NEAR_NEXT_ORDERED			\
	case NEAR_SUM:							\
		__builtin_add_overflow(old, operand, &old);		\
		return old;						\
	case NEAR_PROD:							\
		__builtin_mul_overflow(old, operand, &old);		\
		return old;						\
	case NEAR_BOR: return old | operand;				\
	case NEAR_BAND: return old & operand;				\
	case NEAR_BXOR: return old ^ operand;				\
	case NEAR_MSWAP: return (operand & compare) | (old & ~compare);

/*
 * Defines near_next_<name>(), which returns an element's new value, and
 * near_apply_<name>(), which implements near_atomic_apply() for a type. ctype:
 * the type. bits: integer type of the same size. cases: the operations.
 */
#define NEAR_DEFINE(name, ctype, bits, cases)				\
static ctype near_next_##name(unsigned int op, ctype old,		\
			      ctype operand, ctype compare)		\
{									\
	(void)compare;							\
	switch (op) {							\
	cases								\
	default: return old;						\
	}								\
}									\
									\
static void near_apply_##name(unsigned int op, void *target,		\
			      const uint8_t *from, const uint8_t *with,	\
			      uint8_t *result, size_t count)		\
{									\
	bits *at = target, old, want, expect;				\
	ctype old_value, operand = 0, compare = 0, next;		\
	size_t i;							\
									\
	for (i = 0; i < count; i++, at++) {				\
		memcpy(&operand, from + i * sizeof(bits),		\
		       op == NEAR_ATOMIC_READ ? 0 : sizeof(bits));	\
		if (with)						\
			memcpy(&compare, with + i * sizeof(bits),	\
			       sizeof(bits));				\
		memcpy(&want, &operand, sizeof(want));			\
		memcpy(&expect, &compare, sizeof(expect));		\
		old = __atomic_load_n(at, __ATOMIC_SEQ_CST);		\
		for (;;) {						\
			if (op == NEAR_ATOMIC_READ ||			\
			    (op == NEAR_CSWAP && old != expect))	\
				break;					\
			if (op != NEAR_ATOMIC_WRITE &&			\
			    op != NEAR_CSWAP) {				\
				memcpy(&old_value, &old, sizeof(old));	\
				next = near_next_##name(op, old_value,	\
						operand, compare);	\
				memcpy(&want, &next, sizeof(want));	\
			}						\
			if (__atomic_compare_exchange_n(at, &old, want,	\
					false, __ATOMIC_SEQ_CST,	\
					__ATOMIC_SEQ_CST))		\
				break;					\
		}							\
		if (result)						\
			memcpy(result + i * sizeof(bits), &old,		\
			       sizeof(old));				\
	}								\
}

NEAR_DEFINE(int8, int8_t, uint8_t, NEAR_NEXT_INT)
NEAR_DEFINE(uint8, uint8_t, uint8_t, NEAR_NEXT_INT)
NEAR_DEFINE(int16, int16_t, uint16_t, NEAR_NEXT_INT)
NEAR_DEFINE(uint16, uint16_t, uint16_t, NEAR_NEXT_INT)
NEAR_DEFINE(int32, int32_t, uint32_t, NEAR_NEXT_INT)
NEAR_DEFINE(uint32, uint32_t, uint32_t, NEAR_NEXT_INT)
NEAR_DEFINE(int64, int64_t, uint64_t, NEAR_NEXT_INT)
NEAR_DEFINE(uint64, uint64_t, uint64_t, NEAR_NEXT_INT)
NEAR_DEFINE(float, float, uint32_t, NEAR_NEXT_REAL)
NEAR_DEFINE(double, double, uint64_t, NEAR_NEXT_REAL)
NEAR_DEFINE(float_complex, float complex, uint64_t, NEAR_NEXT_COMPLEX)

static const struct {
	size_t size;
	void (*apply)(unsigned int op, void *target, const uint8_t *from,
		      const uint8_t *with, uint8_t *result, size_t count);
} near_types[NEAR_TYPES] = {
	[NEAR_INT8] = { 1, near_apply_int8 },
	[NEAR_UINT8] = { 1, near_apply_uint8 },
	[NEAR_INT16] = { 2, near_apply_int16 },
	[NEAR_UINT16] = { 2, near_apply_uint16 },
	[NEAR_INT32] = { 4, near_apply_int32 },
	[NEAR_UINT32] = { 4, near_apply_uint32 },
	[NEAR_INT64] = { 8, near_apply_int64 },
	[NEAR_UINT64] = { 8, near_apply_uint64 },
	[NEAR_FLOAT] = { 4, near_apply_float },
	[NEAR_DOUBLE] = { 8, near_apply_double },
	[NEAR_FLOAT_COMPLEX] = { 8, near_apply_float_complex },
};

size_t near_type_size(unsigned int type)
{
	return type < NEAR_TYPES ? near_types[type].size : 0;
}

void near_atomic_apply(unsigned int op, unsigned int type, void *target,
		       const void *operand, const void *compare, void *result,
		       size_t count)
{
	near_types[type].apply(op, target, operand,
			       near_op_compares(op) ? compare : NULL, result,
			       count);
}
