/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * base/ serves all layers and depends on none: libfabric's versions (compat.h),
 * parameters, log, lock, clock, and compiler attributes here. Cost on the data
 * path: the lock, and few reads of the clock.
 */
#ifndef DUO_UTIL_H
#define DUO_UTIL_H

#include <stddef.h>

/* Override the compiler's decision, which depends on the number of callers. */
#define DUO_INLINE static inline __attribute__((always_inline))
#define DUO_NOINLINE static __attribute__((noinline))
/* For tail calls with the caller's arguments: unused ones must stay. */
#define DUO_SAME_ARGS static __attribute__((noinline, noclone))

#define duo_container_of(ptr, type, member) \
	((type *) ((char *) (ptr) - offsetof(type, member)))

static inline size_t duo_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif /* DUO_UTIL_H */
