/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * base/ is for all layers and needs none: libfabric's versions (compat.h),
 * parameters, log, lock, clock, and here what the compiler is told. No lock is
 * taken in it but by who asks for it; nothing costs anything on the data path
 * but a lock that is on and, now and then, a look at the clock.
 */
#ifndef DUO_UTIL_H
#define DUO_UTIL_H

#include <stddef.h>

/* Inlined, or not, where a compiler that counts callers decides otherwise. */
#define DUO_INLINE static inline __attribute__((always_inline))
#define DUO_NOINLINE static __attribute__((noinline))
/* Called last, with the caller's own arguments: a jump, if none is dropped. */
#define DUO_SAME_ARGS static __attribute__((noinline, noclone))

#define duo_container_of(ptr, type, member) \
	((type *) ((char *) (ptr) - offsetof(type, member)))

static inline size_t duo_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif /* DUO_UTIL_H */
