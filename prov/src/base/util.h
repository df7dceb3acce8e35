/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Compiler attributes, and small functions for all layers. Cost of this layer,
 * base/, on the data path: the lock, if it is on, and a few reads of the clock.
 */
#ifndef DUO_UTIL_H
#define DUO_UTIL_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* force the compiler to inline a function, or forbid it to do so */
#define DUO_INLINE static inline __attribute__((always_inline))
#define DUO_NOINLINE static __attribute__((noinline))
/*
 * For functions that receive all arguments of their caller by a tail call. The
 * compiler must not remove an unused argument of such a function, because
 * callers would then have to move the other arguments to other registers.
 */
#define DUO_SAME_ARGS static __attribute__((noinline, noclone))

#define duo_container_of(ptr, type, member) \
	((type *) ((char *) (ptr) - offsetof(type, member)))

#define DUO_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define DUO_LINE 64	/* size of a cache line, bytes */

/* Allocates whole cache lines, zeroed; free() frees them. NULL: no memory. */
static inline void *duo_alloc(size_t bytes)
{
	size_t whole = (bytes + DUO_LINE - 1) / DUO_LINE * DUO_LINE;
	void *memory = aligned_alloc(DUO_LINE, whole);

	return memory ? memset(memory, 0, whole) : NULL;
}

static inline size_t duo_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif /* DUO_UTIL_H */
