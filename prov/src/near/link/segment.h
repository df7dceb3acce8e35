/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The segment of a port: a memfd. The file has no name in a file system, is not
 * limited by the size of /dev/shm, and is freed when the last process that maps
 * it exits. Other processes of the same user open it as /proc/PID/fd/N. The
 * file is sealed against shrinking, because access to mapped memory beyond the
 * end of a file raises SIGBUS. Its memory is allocated in parts: each sender
 * allocates the memory of its ring.
 */
#ifndef NEAR_LINK_SEGMENT_H
#define NEAR_LINK_SEGMENT_H

#include "near/link/shm.h"

/*
 * Creates a segment and maps its head, up to the rings. growing: number of
 * rings that can be larger than a page; fence: the owner has no membarrier.
 * Returns the descriptor or -errno.
 */
int near_segment_create(struct near_segment **segment, uint32_t growing,
			uint64_t nonce, bool fence);

/*
 * Creates a sealed memfd of this size, with memory for its first bytes only.
 * Returns a descriptor; -EFBIG: beyond the limit of file sizes; or -errno.
 */
int near_segment_file(const char *name, size_t size, size_t first);

/*
 * Frees memory of the file, in whole pages of the system. The freed part then
 * reads as zeros.
 */
void near_segment_clear(int fd, size_t offset, size_t size);

/*
 * Allocates memory of the file. Without this call, the first access to a
 * missing page could kill the process, if the system does not overcommit
 * memory. Returns 0 or -ENOMEM: the system or a control group has no memory
 * left (link/group.h).
 */
int near_segment_reserve(int fd, size_t offset, size_t size);

/*
 * Maps the head of the segment with descriptor fd, and stores the number of
 * growing rings. nonce: of the expected port. -ENOENT: no segment of this port;
 * -ENOTSUP: the page size of the segment differs from the system's. Closes fd
 * after an error.
 */
int near_segment_open(struct near_segment **segment, uint32_t *growing, int fd,
		      uint64_t nonce);
/*
 * Returns 0 and stores the size if the file cannot shrink, so that access to a
 * mapping is safe. -ENOENT: the file can shrink, or is too small for a segment.
 */
int near_segment_check_file(int fd, size_t *size);
void near_segment_close(struct near_segment *segment);

/*
 * Maps a ring with the address space of its largest size (place->span). The
 * caller has allocated memory for place->size bytes; only these are accessible.
 */
int near_ring_map(int fd, const struct near_place *place, void **ring);
/* Makes the first size bytes of a mapped ring accessible. */
int near_ring_extend(void *ring, size_t size);

#endif /* NEAR_LINK_SEGMENT_H */
