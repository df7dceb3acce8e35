/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The segment of a port: a memfd that is sealed against shrinking, because an
 * access to removed memory would raise SIGBUS. The sender that attaches to a
 * ring allocates the ring's memory.
 */
#ifndef NEAR_LINK_SEGMENT_H
#define NEAR_LINK_SEGMENT_H

#include "near/link/shm.h"

/*
 * Creates a segment and maps its struct near_segment. Returns a file descriptor
 * or -errno. fence: the owner has no membarrier.
 */
int near_segment_create(struct near_segment **segment, uint32_t growing,
			uint64_t nonce, bool fence);
/*
 * Creates a sealed memfd of size bytes, and allocates the first `first` bytes.
 * Returns a file descriptor or -errno; -EFBIG: size exceeds RLIMIT_FSIZE.
 */
int near_segment_file(const char *name, size_t size, size_t first);
/* Zeroes whole pages of the file, and frees their memory if possible. */
void near_segment_clear(int fd, size_t offset, size_t size);
/* Allocates memory for a part of the file. Returns 0 or -ENOMEM. */
int near_segment_reserve(int fd, size_t offset, size_t size);

#define NEAR_GROUP_SPARE (1u << 20)	/* for near_group_has(), bytes */
/*
 * group.c: true if each control group of the process permits an allocation of
 * size + NEAR_GROUP_SPARE bytes: docs/near/design.md, *Control groups*. Cost:
 * two or three reads of small files for each group with a limit.
 */
bool near_group_has(size_t size);
/* Checks only the control group of directory dir. v2: its version is 2. */
bool near_group_dir_has(const char *dir, bool v2, size_t size);

/*
 * Maps a peer's struct near_segment; stores near_segment.growing in *growing.
 * Returns 0 or -errno:
 * - -ENOENT: fd is not the segment of the port with this nonce
 * - -ENOTSUP: the owner has another page size
 */
int near_segment_open(struct near_segment **segment, uint32_t *growing, int fd,
		      uint64_t nonce);
/*
 * Stores a file's size. Returns 0 or -errno; -ENOENT: the file may shrink, or
 * has no bytes beyond a struct near_segment, so the file is not a segment.
 */
int near_segment_check_file(int fd, size_t *size);
void near_segment_close(struct near_segment *segment);

/* Maps place->span bytes; place->size are accessible. Returns 0 or -errno. */
int near_ring_map(int fd, const struct near_place *place, void **ring);
/* Makes the first size bytes of a ring accessible. Returns 0 or -errno. */
int near_ring_extend(void *ring, size_t size);

#endif /* NEAR_LINK_SEGMENT_H */
