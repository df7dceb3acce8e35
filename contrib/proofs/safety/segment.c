/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Opening of a peer's segment, a file of any size with any bytes: the segment's
 * head and each ring that is mapped later lie in the file, which cannot shrink.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/segment.c near_segment_open near_segment_check_head
 * C: near/link/segment.c near_segment_check_file near_ring_map near_map
 * CBMC: --unwind 9 --object-bits 10
 * EDIT near/link/shm.h: s/NEAR_SENDERS 4096/NEAR_SENDERS 128/
 * MUTANT size-not-compared near/link/segment.c: s/ && near_segment_size\(\*growing\) == size//
 * MUTANT growing-loaded-twice near/link/segment.c: s/near_segment_size\(\*growing\)/near_segment_size(hostile_load(\&head->growing, 0))/
 * MUTANT short-file near/link/segment.c: s/return \*size > sizeof\(struct near_segment\) \? 0 : -ENOENT/return 0/
 * MUTANT may-shrink near/link/segment.c: s/seals < 0 \|\| !\(seals & F_SEAL_SHRINK\)/0/
 * MUTANT rings-uncounted near/link/segment.c: s/\*growing <= NEAR_SENDERS && //
 */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"

static int file_seals;
#define fcntl(...) (file_seals)
#include "near/link/place.c"
#include "near/link/segment.c"

static size_t file_size;
static struct near_segment head;	/* the start of the file */

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	check(file_seals >= 0 && file_seals & F_SEAL_SHRINK);
	check((size_t)offset <= file_size && len <= file_size - (size_t)offset);
	if (any(bool)) {
		hostile_fails();
		return MAP_FAILED;
	}
	return offset ? malloc(1) : (void *)&head;
}

int munmap(void *addr, size_t len)
{
	return 0;
}

int madvise(void *addr, size_t len, int advice)
{
	return 0;
}

int mprotect(void *addr, size_t len, int prot)
{
	return any(bool) ? 0 : hostile_fails();
}

int close(int fd)
{
	return 0;
}

int fstat(int fd, struct stat *st)
{
	st->st_size = (off_t)file_size;
	return any(bool) ? 0 : hostile_fails();
}

bool near_group_has(size_t bytes)
{
	return any(bool);
}

int main(void)
{
	struct near_segment *segment;
	struct near_place place;
	uint32_t growing, index = any(uint32_t);
	void *ring;

	near_page_assume(4096);
	file_seals = any(int);
	file_size = any(size_t);
	assume(file_size <= PTRDIFF_MAX && index < NEAR_SENDERS);
	if (near_segment_open(&segment, &growing, 0, any(uint64_t)))
		return 0;
	check(growing <= NEAR_SENDERS);
	if (near_place(growing, index, any(uint32_t), &place)) {
		check(place.size <= place.span);
		near_ring_map(0, &place, &ring);
	}
	return 0;
}
