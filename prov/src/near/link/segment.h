/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The segment of a port: a memfd. It has no name, is not limited by /dev/shm,
 * and is freed when the last process that maps it exits. Processes of the same
 * user open it as /proc/PID/fd/N. It is sealed against shrinking, so that no
 * process can cause SIGBUS in another one. Each sender allocates the memory of
 * its ring.
 */
#ifndef NEAR_LINK_SEGMENT_H
#define NEAR_LINK_SEGMENT_H

#include "near/link/shm.h"

/* Creates a segment and maps its head. Returns its descriptor or -errno. */
int near_segment_create(struct near_segment **segment, uint32_t growing,
			uint64_t nonce, bool fence);

/* Returns a sealed memfd with memory for its first bytes, or -errno. */
int near_segment_file(const char *name, size_t size, size_t first);

/* Frees memory, in whole pages; it reads as zeros from now on. */
void near_segment_clear(int fd, size_t offset, size_t size);

/*
 * Allocates memory, so that no access can fail: without overcommit, access to
 * a missing page kills the process. -ENOMEM: no memory is left, also in a
 * control group (link/group.h).
 */
int near_segment_reserve(int fd, size_t offset, size_t size);

/*
 * Maps the head of the segment fd, which must have this nonce, and stores the
 * number of growing rings. Closes fd after an error. -ENOENT: no such port, or
 * no longer; -ENOTSUP: its page size differs.
 */
int near_segment_open(struct near_segment **segment, uint32_t *growing, int fd,
		      uint64_t nonce);
/* Returns 0 if fd cannot shrink, so that mapping is safe. Stores its size. */
int near_segment_check_file(int fd, size_t *size);
void near_segment_close(struct near_segment *segment);

/* Maps a ring and its span. Memory of place->size must be allocated. */
int near_ring_map(int fd, const struct near_place *place, void **ring);
/* Permits access to the first size bytes of a mapped ring. */
int near_ring_extend(void *ring, size_t size);

#endif /* NEAR_LINK_SEGMENT_H */
