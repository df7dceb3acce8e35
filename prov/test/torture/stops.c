/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stops.h"

#define STOPS_RANGES 256

extern const char __executable_start[];

static struct stops_site *sites;
static uint32_t count[STOPS_SITES]; /* executions of each site in this run */
static bool armed;
static int armed_signal;
static uint32_t armed_run, armed_site, armed_nth;
static struct {
	uintptr_t start, end;
} range[STOPS_RANGES];
static uint32_t ranges;

void stops_init(void)
{
	/* a system call, because the linker replaces mmap() */
	long at = syscall(SYS_mmap, NULL, STOPS_SITES * sizeof(*sites),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	if (at == -1)
		abort();
	sites = (struct stops_site *)at;
}

void stops_clear(void)
{
	uint32_t i;

	for (i = 0; i < STOPS_SITES; i++)
		sites[i] = (struct stops_site) { 0 };
}

void stops_arm(uint32_t run, int signal, uint32_t site, uint32_t nth)
{
	armed_run = run;
	armed_signal = signal;
	armed_site = site;
	armed_nth = nth;
	armed = true;
}

struct stops_site *stops_site(uint32_t i)
{
	return i < STOPS_SITES && sites[i].pc ? &sites[i] : NULL;
}

uintptr_t stops_offset(const struct stops_site *site)
{
	return site->pc - (uintptr_t)__executable_start;
}

static uint32_t stops_number(uintptr_t pc)
{
	uint32_t i;

	for (i = 0; i < STOPS_SITES; i++) {
		if (!sites[i].pc)
			sites[i].pc = pc;
		if (sites[i].pc == pc)
			return i;
	}
	abort();
}

static void stops_here(const void *pc)
{
	uint32_t i;

	if (!armed)
		return;
	i = stops_number((uintptr_t)pc);
	if (++count[i] > sites[i].seen) {
		sites[i].seen = count[i];
		sites[i].run = armed_run;
	}
	if (i != armed_site || count[i] != armed_nth)
		return;
	sites[i].stopped++;
	kill(getpid(), armed_signal);
}

static bool stops_shared(const volatile void *addr)
{
	uint32_t i;

	for (i = 0; i < ranges; i++)
		if ((uintptr_t)addr >= range[i].start &&
		    (uintptr_t)addr < range[i].end)
			return true;
	return false;
}

static void stops_store(const volatile void *addr, const void *pc)
{
	if (armed && stops_shared(addr))
		stops_here(pc);
}

#define STOPS_PC __builtin_return_address(0)

/* Declares and begins a function, which no header declares. */
#define STOPS_DEFINE(...) __VA_ARGS__; __VA_ARGS__

#define STOPS_LOAD(name)						\
	STOPS_DEFINE(void __tsan_##name(void *addr)) {}

#define STOPS_STORE(name)						\
	STOPS_DEFINE(void __tsan_##name(void *addr))			\
	{								\
		stops_store(addr, STOPS_PC);				\
	}

/*
 * The compiler inserts a call of these functions before each load and store.
 * Only stores count.
 */
#define STOPS_PLAIN(n)							\
	STOPS_LOAD(read##n)						\
	STOPS_LOAD(unaligned_read##n)					\
	STOPS_LOAD(volatile_read##n)					\
	STOPS_STORE(write##n)						\
	STOPS_STORE(unaligned_write##n)					\
	STOPS_STORE(volatile_write##n)

STOPS_PLAIN(1)
STOPS_PLAIN(2)
STOPS_PLAIN(4)
STOPS_PLAIN(8)
STOPS_PLAIN(16)

STOPS_DEFINE(void __tsan_init(void)) {}
STOPS_DEFINE(void __tsan_func_entry(void *pc)) {}
STOPS_DEFINE(void __tsan_func_exit(void)) {}
STOPS_DEFINE(void __tsan_read_range(void *addr, size_t size)) {}

STOPS_DEFINE(void __tsan_write_range(void *addr, size_t size))
{
	stops_store(addr, STOPS_PC);
}

STOPS_DEFINE(void __tsan_atomic_thread_fence(int order))
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

STOPS_DEFINE(void __tsan_atomic_signal_fence(int order))
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#define STOPS_FETCH(n, type, name)					\
	STOPS_DEFINE(type __tsan_atomic##n##_fetch_##name(		\
			     volatile type *at, type value, int order))	\
	{								\
		type old = __atomic_fetch_##name(at, value,		\
						 __ATOMIC_SEQ_CST);	\
									\
		stops_store(at, STOPS_PC);				\
		return old;						\
	}

#define STOPS_SWAP(n, type, name)					\
	STOPS_DEFINE(int __tsan_atomic##n##_compare_exchange_##name(	\
			     volatile type *at, type *old, type value,	\
			     int order, int failed))			\
	{								\
		bool done = __atomic_compare_exchange_n(		\
			at, old, value, false, __ATOMIC_SEQ_CST,	\
			__ATOMIC_SEQ_CST);				\
									\
		stops_store(at, STOPS_PC);				\
		return done;						\
	}

/*
 * The compiler inserts calls of these functions in place of atomic operations.
 * They execute each operation with sequential consistency.
 */
#define STOPS_ATOMIC(n, type)						\
	STOPS_DEFINE(type __tsan_atomic##n##_load(			\
			     const volatile type *at, int order))	\
	{								\
		return __atomic_load_n(at, __ATOMIC_SEQ_CST);		\
	}								\
	STOPS_DEFINE(void __tsan_atomic##n##_store(			\
			     volatile type *at, type value, int order))	\
	{								\
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST);		\
		stops_store(at, STOPS_PC);				\
	}								\
	STOPS_DEFINE(type __tsan_atomic##n##_exchange(			\
			     volatile type *at, type value, int order))	\
	{								\
		type old = __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); \
									\
		stops_store(at, STOPS_PC);				\
		return old;						\
	}								\
	STOPS_FETCH(n, type, add)					\
	STOPS_FETCH(n, type, sub)					\
	STOPS_FETCH(n, type, and)					\
	STOPS_FETCH(n, type, or)					\
	STOPS_FETCH(n, type, xor)					\
	STOPS_FETCH(n, type, nand)					\
	STOPS_SWAP(n, type, strong)					\
	STOPS_SWAP(n, type, weak)

STOPS_ATOMIC(8, uint8_t)
STOPS_ATOMIC(16, uint16_t)
STOPS_ATOMIC(32, uint32_t)
STOPS_ATOMIC(64, uint64_t)

/* Functions that the linker replaces (--wrap) */
void *__real_memcpy(void *to, const void *from, size_t len);
void *__real_memset(void *to, int value, size_t len);
void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t from);
int __real_munmap(void *at, size_t len);

/* Copies two halves, with a possible stop between them. */
STOPS_DEFINE(void *__wrap_memcpy(void *to, const void *from, size_t len))
{
	size_t half = len / 2;

	if (!armed || !stops_shared(to))
		return __real_memcpy(to, from, len);
	__real_memcpy(to, from, half);
	stops_here(STOPS_PC);
	__real_memcpy((char *)to + half, (const char *)from + half, len - half);
	return to;
}

STOPS_DEFINE(void *__wrap_memset(void *to, int value, size_t len))
{
	stops_store(to, STOPS_PC);
	return __real_memset(to, value, len);
}

STOPS_DEFINE(void *__wrap_mmap(void *at, size_t len, int prot, int flags,
			       int fd, off_t from))
{
	void *got = __real_mmap(at, len, prot, flags, fd, from);

	if (got != MAP_FAILED && (flags & MAP_TYPE) != MAP_PRIVATE) {
		if (ranges == STOPS_RANGES)
			abort();
		range[ranges].start = (uintptr_t)got;
		range[ranges++].end = (uintptr_t)got + len;
	}
	return got;
}

STOPS_DEFINE(int __wrap_munmap(void *at, size_t len))
{
	uint32_t i;

	for (i = 0; i < ranges; i++)
		if (range[i].start == (uintptr_t)at)
			range[i--] = range[--ranges];
	return __real_munmap(at, len);
}

#define STOPS_VM_PARAMS							\
	(pid_t pid, const struct iovec *here, unsigned long heres,	\
	 const struct iovec *there, unsigned long theres, unsigned long flags)
#define STOPS_VM_ARGS (pid, here, heres, there, theres, flags)

/* System calls that act on another process: a process stops after the call. */
#define STOPS_CALL(name, declare, pass)					\
	ssize_t __real_##name declare;					\
	STOPS_DEFINE(ssize_t __wrap_##name declare)			\
	{								\
		ssize_t ret = __real_##name pass;			\
									\
		stops_here(STOPS_PC);					\
		return ret;						\
	}

STOPS_CALL(write, (int fd, const void *buf, size_t len), (fd, buf, len))
STOPS_CALL(sendmsg, (int fd, const struct msghdr *msg, int flags),
	   (fd, msg, flags))
STOPS_CALL(process_vm_readv, STOPS_VM_PARAMS, STOPS_VM_ARGS)
STOPS_CALL(process_vm_writev, STOPS_VM_PARAMS, STOPS_VM_ARGS)

/* fallocate() returns int, so that STOPS_CALL does not fit. */
int __real_fallocate(int fd, int mode, off_t from, off_t len);

STOPS_DEFINE(int __wrap_fallocate(int fd, int mode, off_t from, off_t len))
{
	int ret = __real_fallocate(fd, mode, from, len);

	stops_here(STOPS_PC);
	return ret;
}
