/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory that a hostile process may write at any time.
 * contrib/proofs/safety/run compiles a copy of prov/src in which each access
 * to such memory is one of these macros. Each load returns any value, so two
 * loads of a word need not return the same. Each access must be within an
 * object.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* any value of the type */
#define any(type) ({ type any_; any_; })
#define assume(x) __CPROVER_assume(x)
#define check(x) __CPROVER_assert(x, #x)
#define readable(p, n) __CPROVER_r_ok(p, n)
#define writable(p, n) __CPROVER_w_ok(p, n)

#define hostile(x) ({							\
	__CPROVER_assert(readable(&(x), sizeof(x)), "load " #x);	\
	any(__typeof__(x));						\
})
#define hostile_load(p, order) hostile(*(p))
#define hostile_store(p, value, order) ({				\
	__CPROVER_assert(writable(p, sizeof(*(p))), "store " #p);	\
	(void)(value);							\
})
#define hostile_change(p, value, order) ({				\
	hostile_store(p, value, order);					\
	any(__typeof__(*(p)));						\
})
/*
 * A compare-and-swap fails at most HOSTILE_RACES times in a row, so that loops
 * end: the hostile process cannot win the race between load and swap each time.
 */
#ifndef HOSTILE_RACES
#define HOSTILE_RACES 2
#endif
static unsigned int hostile_races;
#define hostile_swap(p, expected, value, ...) ({			\
	bool swap_ = any(bool) || hostile_races == HOSTILE_RACES;	\
	hostile_store(p, value, 0);					\
	hostile_races = swap_ ? 0 : hostile_races + 1;			\
	if (!swap_)							\
		*(expected) = any(__typeof__(*(expected)));		\
	swap_;								\
})

/*
 * A copy of payload: checks the bounds only, because no check depends on the
 * contents of payload.
 */
#define hostile_bytes(to, from, n) ({					\
	__CPROVER_assert(!(n) || readable(from, n), "memcpy from " #from); \
	__CPROVER_assert(!(n) || writable(to, n), "memcpy to " #to);	\
})
/* A copy of values on which checks depend: stores any values. */
#define hostile_memcpy(to, from, n) ({					\
	hostile_bytes(to, from, n);					\
	if (n)								\
		__CPROVER_havoc_slice(to, n);				\
})

/* Returns -1 with any errno, as a system call that fails. */
static inline int hostile_fails(void)
{
	errno = any(int);
	assume(errno > 0 && errno < 4096);
	return -1;
}

#endif /* HOSTILE_H */
