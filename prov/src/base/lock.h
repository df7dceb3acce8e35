/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The owner lock of a domain, see docs/objects.md. Under FI_THREAD_DOMAIN
 * the application serialises everything in a domain and the lock is off:
 * one predictable branch. It is a futex of ours, because the C library's mutex
 * takes 50 instructions for each call of the data path. Not recursive.
 *
 * Cost: an atomic exchange each to take and to release it, inline; a thread
 * that finds it taken spins for a microsecond, and then sleeps (lock.c).
 */
#ifndef DUO_LOCK_H
#define DUO_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/util.h"

enum { DUO_LOCK_FREE, DUO_LOCK_HELD, DUO_LOCK_AWAITED };

struct duo_lock {
	atomic_uint state;	/* awaited: a thread may sleep for it */
	bool on;
	/* Before it is released; NULL: nothing asks what has changed. */
	void (*watch)(struct duo_lock *lock);
};

static inline void duo_lock_init(struct duo_lock *lock, bool on)
{
	atomic_init(&lock->state, DUO_LOCK_FREE);
	lock->on = on;
	lock->watch = NULL;
}

/* lock.c: takes a lock that is held. */
void duo_lock_wait(struct duo_lock *lock);
/*
 * Wakes a thread that sleeps for it; releases it. They return ret, so that a
 * call of the data path ends with a jump to them.
 */
ssize_t duo_lock_wake(struct duo_lock *lock, ssize_t ret);
ssize_t duo_unlock_last(struct duo_lock *lock, ssize_t ret);

/* False: it is held. Pairs with the release in duo_lock_give(). */
DUO_INLINE bool duo_lock_try(struct duo_lock *lock)
{
	unsigned int state = DUO_LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(&lock->state, &state,
						       DUO_LOCK_HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/* True: duo_lock_wake() is to be called. */
DUO_INLINE bool duo_lock_give(struct duo_lock *lock)
{
	return atomic_exchange_explicit(&lock->state, DUO_LOCK_FREE,
					memory_order_release) ==
	       DUO_LOCK_AWAITED;
}

/* duo_lock_give() as the last thing of a call that returns ret. */
DUO_INLINE ssize_t duo_lock_give_last(struct duo_lock *lock, ssize_t ret)
{
	return __builtin_expect(duo_lock_give(lock), false) ?
	       duo_lock_wake(lock, ret) : ret;
}

/* Released by duo_unlock(). */
static inline void duo_lock(struct duo_lock *lock)
{
	if (lock->on && !duo_lock_try(lock))
		duo_lock_wait(lock);
}

static inline void duo_unlock(struct duo_lock *lock)
{
	if (__builtin_expect(lock->watch != NULL, false))
		lock->watch(lock);
	if (lock->on && duo_lock_give(lock))
		duo_lock_wake(lock, 0);
}

#endif /* DUO_LOCK_H */
