/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The owner lock of a domain, see docs/objects.md. Under FI_THREAD_DOMAIN the
 * application serializes all calls into a domain, and the lock is off: one
 * predictable branch. The lock is a futex, because the C library's mutex takes
 * 50 instructions per call of the data path. Not recursive.
 *
 * Cost: one atomic operation each to lock and to unlock, inline. A thread that
 * finds the lock held spins for a microsecond, then sleeps (lock.c).
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
	/* Called before the release; NULL: no thread sleeps on a counter. */
	void (*watch)(struct duo_lock *lock);
};

static inline void duo_lock_init(struct duo_lock *lock, bool on)
{
	atomic_init(&lock->state, DUO_LOCK_FREE);
	lock->on = on;
	lock->watch = NULL;
}

/* lock.c: takes the lock when another thread releases it. */
void duo_lock_wait(struct duo_lock *lock);
/*
 * Wake a waiting thread; unlock. Both return ret, so that a call of the data
 * path ends with a tail call.
 */
ssize_t duo_lock_wake(struct duo_lock *lock, ssize_t ret);
ssize_t duo_unlock_last(struct duo_lock *lock, ssize_t ret);

/* False: the lock is held. Acquire; pairs with duo_lock_give()'s release. */
DUO_INLINE bool duo_lock_try(struct duo_lock *lock)
{
	unsigned int state = DUO_LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(&lock->state, &state,
						       DUO_LOCK_HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/* Releases the lock. True: the caller must call duo_lock_wake(). */
DUO_INLINE bool duo_lock_give(struct duo_lock *lock)
{
	return atomic_exchange_explicit(&lock->state, DUO_LOCK_FREE,
					memory_order_release) ==
	       DUO_LOCK_AWAITED;
}

/* duo_lock_give() as the tail call of a function that returns ret. */
DUO_INLINE ssize_t duo_lock_give_last(struct duo_lock *lock, ssize_t ret)
{
	return __builtin_expect(duo_lock_give(lock), false) ?
	       duo_lock_wake(lock, ret) : ret;
}

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
