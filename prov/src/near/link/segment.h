/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The segment of a port is a memfd: it has no name, takes no space in /dev/shm,
 * and Linux frees it after its last use. If one process truncated the memfd,
 * accesses of the others would raise SIGBUS. Therefore the memfd is sealed
 * against shrinking. A sender allocates the memory of its own ring.
 */
#ifndef NEAR_LINK_SEGMENT_H
#define NEAR_LINK_SEGMENT_H

#include "near/link/shm.h"

/*
 * Creates a segment and maps its struct near_segment. Returns a file descriptor
 * or -errno. growing: number of rings that can exceed one page. fence: true if
 * the owner has no membarrier.
 */
int near_segment_create(struct near_segment **segment, uint32_t growing,
			uint64_t nonce, bool fence);

/*
 * Creates a sealed memfd, and allocates its first `first` bytes. Returns a
 * file descriptor or -errno; -EFBIG: size exceeds RLIMIT_FSIZE.
 */
int near_segment_file(const char *name, size_t size, size_t first);

/*
 * Zeroes a part of the file, and frees its memory if possible. The part must
 * consist of whole pages of the system.
 */
void near_segment_clear(int fd, size_t offset, size_t size);

/*
 * Allocates memory for a part of the file. Without this call, the first access
 * might kill the process. Returns 0; -ENOMEM: no memory in the system or the
 * control group.
 */
int near_segment_reserve(int fd, size_t offset, size_t size);

/*
 * Maps a peer's struct near_segment; stores near_segment.growing in *growing.
 * Returns 0 or -errno:
 * - -ENOENT: fd is not the segment of the port with this nonce
 * - -ENOTSUP: the owner has another page size
 */
int near_segment_open(struct near_segment **segment, uint32_t *growing, int fd,
		      uint64_t nonce);
/*
 * Stores the file's size in *size. Returns 0 or -errno; -ENOENT: the file is
 * too small for a segment, or is not sealed by F_SEAL_SHRINK.
 */
int near_segment_check_file(int fd, size_t *size);
void near_segment_close(struct near_segment *segment);

/*
 * Maps place->span bytes for a ring; the first place->size are accessible.
 * Returns 0 or -errno.
 */
int near_ring_map(int fd, const struct near_place *place, void **ring);
/* Makes the first size bytes of a ring accessible. Returns 0 or -errno. */
int near_ring_extend(void *ring, size_t size);

#endif /* NEAR_LINK_SEGMENT_H */
