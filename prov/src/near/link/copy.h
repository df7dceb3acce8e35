/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#ifndef NEAR_LINK_COPY_H
#define NEAR_LINK_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#define near_likely(x) __builtin_expect(!!(x), 1)
#define near_unlikely(x) __builtin_expect(!!(x), 0)
#define near_inline inline __attribute__((always_inline))

/* Prefetches for writing, which __builtin_prefetch() does not on x86-64. */
static inline void near_prefetch_write(const void *addr)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
#else
	__builtin_prefetch(addr, 1, 3);
#endif
}

/* Copies the first n and the last n of len bytes, where n <= len <= 2 n. */
#define NEAR_COPY_ENDS(dst, src, len, n) do {				\
	uint8_t near_head_[n], near_tail_[n];				\
									\
	memcpy(near_head_, (src), (n));					\
	memcpy(near_tail_, (src) + (len) - (n), (n));			\
	memcpy((dst), near_head_, (n));					\
	memcpy((dst) + (len) - (n), near_tail_, (n));			\
} while (0)

/* Copies up to 48 bytes. Tests the most frequent length, 8, first. */
static near_inline void near_copy_small(void *to, const void *from, size_t len)
{
	const uint8_t *src = from;
	uint8_t *dst = to;

	if (near_likely(len == 8)) {
		memcpy(dst, src, 8);
	} else if (len > 32) {
		memcpy(dst, src, 16);
		NEAR_COPY_ENDS(dst + 16, src + 16, len - 16, 16);
	} else if (len >= 16) {
		NEAR_COPY_ENDS(dst, src, len, 16);
	} else if (len >= 8) {
		NEAR_COPY_ENDS(dst, src, len, 8);
	} else if (len >= 4) {
		NEAR_COPY_ENDS(dst, src, len, 4);
	} else if (len) {
		dst[0] = src[0];
		dst[len / 2] = src[len / 2];
		dst[len - 1] = src[len - 1];
	}
}

/*
 * Copies len bytes from `flat` to iov (in: true) or from iov to `flat`. Skips
 * `offset` bytes of iov, which must have offset + len bytes.
 */
static near_inline void near_iov_copy(const struct iovec *iov, size_t offset,
				      uint8_t *flat, size_t len, bool in)
{
	uint8_t *at;
	size_t n;

	for (; len; iov++) {
		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		at = (uint8_t *)iov->iov_base + offset;
		n = iov->iov_len - offset;
		if (n > len)
			n = len;
		if (in)
			memcpy(at, flat, n);
		else
			memcpy(flat, at, n);
		flat += n;
		len -= n;
		offset = 0;
	}
}

static inline void near_iov_out(void *to, const struct iovec *iov,
				size_t offset, size_t len)
{
	near_iov_copy(iov, offset, to, len, false);
}

static inline void near_iov_in(const struct iovec *iov, size_t offset,
			       const void *from, size_t len)
{
	near_iov_copy(iov, offset, (uint8_t *)from, len, true);
}

/*
 * Describes up to len bytes of iov, from byte `offset` on, in the array `rest`,
 * which must have `count` elements. Returns the number of elements used.
 */
static inline size_t near_iov_from(const struct iovec *iov, size_t count,
				   size_t offset, size_t len,
				   struct iovec *rest)
{
	size_t n = 0, i;

	for (i = 0; i < count && len; i++) {
		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		rest[n].iov_base = (char *)iov[i].iov_base + offset;
		rest[n].iov_len = iov[i].iov_len - offset;
		if (rest[n].iov_len > len)
			rest[n].iov_len = len;
		len -= rest[n++].iov_len;
		offset = 0;
	}
	return n;
}

static inline size_t near_iov_len(const struct iovec *iov, size_t count)
{
	size_t i, len = 0;

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

#endif /* NEAR_LINK_COPY_H */
