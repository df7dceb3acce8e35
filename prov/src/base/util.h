/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Helpers for all layers: compiler attributes, and memory in whole cache lines.
 *
 * The layer base/, to which this file belongs, depends on no other layer. It
 * also has the differences between libfabric's versions (compat.h), parameters,
 * log, lock and clock. Cost of the layer on the data path: the lock, if it is
 * on, and a few reads of the clock.
 */
#ifndef DUO_UTIL_H
#define DUO_UTIL_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Override the compiler's decision whether to inline a function, which depends
 * on the number of its callers.
 */
#define DUO_INLINE static inline __attribute__((always_inline))
#define DUO_NOINLINE static __attribute__((noinline))
/*
 * For a function that its callers call by a tail call, with all their own
 * arguments. Without this attribute the compiler might remove an argument that
 * the function does not use. Each caller would then have to move the remaining
 * arguments to other registers before the call.
 */
#define DUO_SAME_ARGS static __attribute__((noinline, noclone))

#define duo_container_of(ptr, type, member) \
	((type *) ((char *) (ptr) - offsetof(type, member)))

#define DUO_LINE 64	/* bytes of a cache line */

/*
 * Allocates zeroed memory at the start of a cache line, so that each
 * member of a struct is in the line that the struct's declaration shows. The
 * caller releases it by free(). NULL: no memory.
 */
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
