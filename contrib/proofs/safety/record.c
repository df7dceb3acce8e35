/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A file of the registry, with any bytes: a record that is accepted has a
 * length and a kind within bounds and a name that ends. A look-up reads within
 * record and address, and closes the file.
 *
 * Lines for ./run, which explains their keys:
 * C: local/registry.c duo_record_open duo_record_read duo_record_valid
 * C: local/registry.c duo_registry_lookup duo_record_judge
 * CBMC: --unwind 66 --object-bits 10
 * EDIT base/log.h: s/#define DUO_WARN[^\n]+/#define DUO_WARN(...) ((void)0)/
 * MUTANT length-unchecked local/registry.c: s/record->addr_len <= DUO_ADDR_MAX && //
 * MUTANT kind-unchecked local/registry.c: s/record->peer < DUO_TRANSPORT_KINDS &&//
 * MUTANT name-unchecked local/registry.c: s/memchr\(record->peer_name, 0, sizeof\(record->peer_name\)\) &&//
 * MUTANT length-not-compared local/registry.c: s/record->addr_len != len \|\| //
 * MUTANT short-file local/registry.c: s/got != sizeof\(\*record\) \|\| //
 * MUTANT file-left-open local/registry.c: s/if \(!ret\)\n\t\treturn fd;\n\tclose\(fd\);/if (!ret)\n\t\treturn fd;/
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hostile.h"

#undef memcmp
#define memcmp(a, b, n) ({						\
	__CPROVER_assert(!(n) || (readable(a, n) && readable(b, n)),	\
			 "memcmp");					\
	any(int);							\
})
#define snprintf(to, size, ...) ({					\
	__CPROVER_havoc_slice(to, size);				\
	(to)[(size) - 1] = '\0';					\
	any(int);							\
})
#define readlink(...) (-1)
#define openat(...) opened()
#define fcntl(...) (any(bool) ? 0 : hostile_fails())

static int opened(void);

#include "local/registry.c"

#define FD 100
static bool is_open;
static ssize_t got;		/* number of bytes that were read */

static int opened(void)
{
	if (any(bool))
		return hostile_fails();
	is_open = true;
	return FD;
}

int close(int fd)
{
	check(fd == FD && is_open);
	is_open = false;
	return 0;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	check(fd == FD && is_open && writable(buffer, size));
	__CPROVER_havoc_slice(buffer, size);
	got = any(bool) ? any(uint16_t) : hostile_fails();
	assume(got <= (ssize_t)size);
	return got;
}

int fstat(int fd, struct stat *st)
{
	check(fd == FD && is_open);
	*st = any(struct stat);
	return any(bool) ? 0 : hostile_fails();
}

uid_t geteuid(void)
{
	return any(uid_t);
}

uint64_t duo_fnv(uint64_t hash, const void *data, size_t len)
{
	check(!len || readable(data, len));
	return any(uint64_t);
}

int duo_proc_check(pid_t pid, uint64_t start)
{
	check(pid > 0);
	return any(bool) ? 0 : -any(uint8_t);
}

void *memchr(const void *bytes, int byte, size_t n)
{
	const char *at = bytes;
	size_t i;

	for (i = 0; i < n; i++)
		if (at[i] == byte)
			return (void *)&at[i];
	return NULL;
}

static void opens(void)
{
	struct duo_record record;
	int fd = duo_record_open(any(int), "0123", &record);

	check(fd >= 0 ? fd == FD && is_open : !is_open);
	if (fd < 0)
		return;
	check(got == sizeof(record));
	check(record.addr_len <= DUO_ADDR_MAX);
	check(record.peer < DUO_TRANSPORT_KINDS && record.pid > 0);
	check(strlen(record.peer_name) < sizeof(record.peer_name));
}

static void looks_up(void)
{
	char name[DUO_TRANSPORT_NAME_MAX];
	struct duo_publication self;
	size_t len = any(size_t);
	char *addr;

	assume(len <= DUO_ADDR_MAX + 100);
	addr = malloc(len);
	self = any(struct duo_publication);
	duo_registry_lookup(addr, len, &self, name);
	check(!is_open);
}

int main(void)
{
	if (any(bool))
		opens();
	else
		looks_up();
	return 0;
}
