/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The file behind a port: a memfd, which has no name, is not bounded by the
 * mount of /dev/shm, and goes when the last process that maps it ends. Others
 * of the same user open it as /proc/PID/fd/N. It is sealed against shrinking:
 * no process can make another one's access to it fail (SIGBUS). Memory is
 * taken ring by ring, by the sender that gets the ring.
 */
#ifndef NEAR_LINK_SEGMENT_H
#define NEAR_LINK_SEGMENT_H

#include "near/link/shm.h"

/* A new one, its head mapped. Returns its descriptor or a negative errno. */
int near_segment_create(struct near_segment **segment, uint32_t growing,
			uint64_t nonce, bool fence);

/* A memfd of that size, sealed, whose first bytes have memory; or an error. */
int near_segment_file(const char *name, size_t size, size_t first);

/* Gives memory back, in whole pages: it reads as zeros from now on. */
void near_segment_clear(int fd, size_t offset, size_t size);

/*
 * Takes memory, so that touching it cannot fail: where the system commits no
 * more than it has, a page that is not there when it is touched kills.
 * -ENOMEM: there is none, or a control group has none left (link/group.h).
 */
int near_segment_reserve(int fd, size_t offset, size_t size);

/*
 * Takes over fd: that of a port with this nonce, its struct near_segment mapped,
 * and how many of its rings grow, by its size. -ENOENT: there is no such port
 * (any more); -ENOTSUP: its pages are of another size.
 */
int near_segment_open(struct near_segment **segment, uint32_t *growing, int fd,
		      uint64_t nonce);
/* Only a memfd that cannot shrink is safe to be mapped. */
int near_segment_check_file(int fd, size_t *size);
void near_segment_close(struct near_segment *segment);

/*
 * A ring, with room for its largest size; the memory of place->size must have
 * been taken.
 */
int near_ring_map(int fd, const struct near_place *place, void **ring);
/* So much of a ring that is mapped may be accessed from now on. */
int near_ring_extend(void *ring, size_t size);

#endif /* NEAR_LINK_SEGMENT_H */
