/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The lock of a domain, see docs/objects.md. With FI_THREAD_DOMAIN the
 * application serializes its calls into a domain. The lock is then off, and
 * costs one predictable branch. The lock is a futex, because the mutex of the C
 * library takes 50 instructions for each call of the data path. Not recursive.
 *
 * Cost: one atomic operation to lock, and one to unlock, both inline. If
 * another thread holds the lock, a thread spins for about a microsecond and
 * then sleeps (lock.c).
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
	atomic_uint state;	/* DUO_LOCK_AWAITED: held, and a thread may
				 * sleep until it is free */
	bool on;
	/* Called before each release. NULL: no thread sleeps on a counter. */
	void (*watch)(struct duo_lock *lock);
};

static inline void duo_lock_init(struct duo_lock *lock, bool on)
{
	atomic_init(&lock->state, DUO_LOCK_FREE);
	lock->on = on;
	lock->watch = NULL;
}

/* lock.c: waits until the lock is free, and takes it. */
void duo_lock_wait(struct duo_lock *lock);
/*
 * duo_lock_wake() wakes a waiting thread after duo_lock_give().
 * duo_unlock_last() does the same as duo_unlock(). Both return ret, so that a
 * function of the data path can call them as its tail call.
 */
ssize_t duo_lock_wake(struct duo_lock *lock, ssize_t ret);
ssize_t duo_unlock_last(struct duo_lock *lock, ssize_t ret);

/*
 * Takes the lock if it is free. Returns false if another thread holds it.
 * Acquire; its partner is the release in duo_lock_give().
 */
DUO_INLINE bool duo_lock_try(struct duo_lock *lock)
{
	unsigned int state = DUO_LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(&lock->state, &state,
						       DUO_LOCK_HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/*
 * Releases the lock. Returns true if the caller must call duo_lock_wake().
 * Release; its partners are the acquires in duo_lock_try() and duo_lock_wait().
 */
DUO_INLINE bool duo_lock_give(struct duo_lock *lock)
{
	return atomic_exchange_explicit(&lock->state, DUO_LOCK_FREE,
					memory_order_release) ==
	       DUO_LOCK_AWAITED;
}

/* Releases the lock and returns ret, as the tail call of a function. */
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
