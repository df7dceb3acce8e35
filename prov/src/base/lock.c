/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"

#define DUO_LOCK_SPINS 100	/* number of attempts; together about 1 us */
#define DUO_LOCK_PAUSE_NS 1000
#define DUO_LOCK_BARRIER_NS 10000000	/* 10 ms */

static void duo_lock_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

static bool duo_lock_spin(struct duo_lock *lock)
{
	int i;

	for (i = 0; i < DUO_LOCK_SPINS; i++) {
		if (atomic_load_explicit(&lock->state, memory_order_relaxed) ==
		    DUO_LOCK_FREE && duo_lock_try(lock))
			return true;
		duo_lock_pause();
	}
	return false;
}

/*
 * After the spins, takes the lock in the state DUO_LOCK_AWAITED, because other
 * threads may be asleep. If no thread is asleep, the release makes a needless
 * futex call. Acquire: pairs with duo_lock_release() and duo_lock_retire().
 */
bool duo_lock_wait(struct duo_lock *lock)
{
	unsigned int state;

	if (duo_lock_spin(lock))
		return true;
	for (;;) {
		state = atomic_load_explicit(&lock->state,
					     memory_order_acquire);
		if (state == DUO_LOCK_RETIRED)
			return false;
		if (state != DUO_LOCK_AWAITED &&
		    !atomic_compare_exchange_strong_explicit(
			    &lock->state, &state, DUO_LOCK_AWAITED,
			    memory_order_acquire, memory_order_relaxed))
			continue;
		if (state == DUO_LOCK_FREE)
			return true;
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE,
			DUO_LOCK_AWAITED, NULL, NULL, 0);
	}
}

void duo_lock_retire(struct duo_lock *lock)
{
	atomic_store_explicit(&lock->state, DUO_LOCK_RETIRED,
			      memory_order_release);
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL,
		NULL, 0);
}

bool duo_lock_prepare(void)
{
	return !syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

static bool duo_lock_membarrier(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/*
 * Calls membarrier. If the call fails, as in a forked child, registers the
 * process again and repeats the call. If seccomp forbids membarrier, sleeps for
 * 10 ms. In this time each CPU makes its earlier stores visible.
 */
void duo_lock_barrier(void)
{
	struct timespec left = { .tv_nsec = DUO_LOCK_BARRIER_NS };

	if (duo_lock_membarrier() ||
	    (duo_lock_prepare() && duo_lock_membarrier()))
		return;
	while (nanosleep(&left, &left))
		;
}

/*
 * After the spins, sleeps between two loads, because the thread that is inside
 * the lock may need this CPU to continue.
 */
void duo_lock_empty(const struct duo_lock *lock)
{
	const struct timespec pause = { .tv_nsec = DUO_LOCK_PAUSE_NS };
	unsigned int i;

	for (i = 0; atomic_load_explicit(&lock->inside, memory_order_acquire);
	     i++) {
		if (i < DUO_LOCK_SPINS)
			duo_lock_pause();
		else
			nanosleep(&pause, NULL);
	}
}

ssize_t duo_lock_wake(struct duo_lock *lock, ssize_t ret)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return ret;
}
