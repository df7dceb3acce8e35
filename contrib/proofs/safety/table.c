/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Look-up of a key in a peer's region table, with any bytes in the table: the
 * look-up reads only mapped entries, and ends. A range that is granted lies in
 * the entry's region.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/table.c near_table_view_open near_table_view_find
 * C: near/rma/table.c near_table_view_try near_table_view_map
 * C: near/rma/table.h near_table_view_known near_region_check near_table_hash
 * CBMC: --unwind 5 --object-bits 10
 * EDIT near/rma/table.c: s/PROBES 4096/PROBES 3/
 * EDIT near/rma/table.c: s/TRIES 64/TRIES 2/
 * EDIT near/rma/table.h: s/key \* 0x9e3779b97f4a7c15u/any(uint64_t)/
 * MUTANT size-unchecked near/rma/table.c: s/ \|\| bits > NEAR_TABLE_MAX_BITS//
 * MUTANT mapped-less near/rma/table.c: s/mmap(\(NULL, near_table_size\(bits)/mmap\1 - 1/
 * MUTANT bits-of-their-table near/rma/table.c: s/mask = \(1u << view->bits\)/mask = (1u << hostile(view->head->bits))/
 * MUTANT not-wrapped near/rma/table.c: s/at = \(at \+ 1\) & mask;\n\t\}\n\treturn -EKEY/at = at + 1;\n\t}\n\treturn -EKEY/
 * MUTANT file-may-be-short near/rma/table.c: s/size < near_table_size\(NEAR_TABLE_MAX_BITS\)/0/
 * MUTANT offset-unchecked near/rma/table.h: s/offset > entry->len \|\| //
 * MUTANT sum-overflows near/rma/table.h: s/len > entry->len - offset/offset + len > entry->len/
 */

#include <stdlib.h>
#include <sys/mman.h>

#include "hostile.h"

#undef memcpy
#define memcpy hostile_memcpy
#include "near/rma/table.c"
#undef memcpy

static size_t file_size;

/* A mapping beyond the end of the file would raise SIGBUS. */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	(void)addr;
	(void)prot;
	(void)flags;
	(void)fd;
	check(len <= file_size && !offset);
	if (any(bool))
		return malloc(len);
	hostile_fails();
	return MAP_FAILED;
}

int munmap(void *addr, size_t len)
{
	check(readable(addr, len));
	free(addr);
	return 0;
}

int close(int fd)
{
	return fd < 0 ? -1 : 0;
}

int near_segment_check_file(int fd, size_t *size)
{
	(void)fd;
	*size = file_size;
	return any(bool) ? 0 : -ENOENT;
}

int near_segment_reserve(int fd, size_t offset, size_t size)
{
	return any(int);
}

void near_segment_clear(int fd, size_t offset, size_t size)
{
}

int near_segment_file(const char *name, size_t size, size_t first)
{
	return any(int);
}

int main(void)
{
	struct near_table_view *view;
	struct near_region_entry entry;
	uint64_t addr = any(uint64_t), len = any(uint64_t), memory;

	file_size = any(size_t);
	if (near_table_view_open(&view, any(int), any(uint64_t)))
		return 0;
	near_table_view_find(view, any(uint64_t), &entry);
	near_table_view_find(view, any(uint64_t), &entry);
	near_table_view_close(view);
	entry = any(struct near_region_entry);
	if (!near_region_check(&entry, addr, len, any(uint32_t), &memory)) {
		check(addr >= entry.start && len <= entry.len);
		check(addr - entry.start <= entry.len - len);
		check(memory - entry.memory <= entry.len - len);
	}
	return 0;
}
