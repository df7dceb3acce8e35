/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The lock of a group, see obj/group.h. With FI_THREAD_DOMAIN it is off and
 * costs one branch. It is a futex, because the C library's mutex takes 50
 * instructions per call. Not recursive. A thread that must wait spins for a
 * microsecond, then sleeps. Cost: an atomic operation to lock, and another to
 * unlock.
 */
#ifndef DUO_LOCK_H
#define DUO_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/util.h"

enum {
	DUO_LOCK_FREE,
	DUO_LOCK_HELD,
	DUO_LOCK_AWAITED,	/* held, and a thread may sleep */
	DUO_LOCK_RETIRED,	/* never free again: duo_lock_retire() */
};

struct duo_lock {
	atomic_uint state;
	bool on;
};

static inline void duo_lock_init(struct duo_lock *lock, bool on)
{
	atomic_init(&lock->state, DUO_LOCK_FREE);
	lock->on = on;
}

/*
 * lock.c: waits until the lock is free, then takes it and returns true. False:
 * the lock is retired.
 */
bool duo_lock_wait(struct duo_lock *lock);
/*
 * Retires a lock that the caller holds: another lock replaces it. Wakes all
 * threads that wait for it.
 */
void duo_lock_retire(struct duo_lock *lock);
/* Wakes a thread after duo_lock_release(). Returns ret, for tail calls. */
ssize_t duo_lock_wake(struct duo_lock *lock, ssize_t ret);

/*
 * Takes the lock if it is free. Memory order: acquire; pairs with the release
 * in duo_lock_release().
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
 * Releases the lock. True: the caller must call duo_lock_wake(). Memory order:
 * release; pairs with the acquires in duo_lock_try() and duo_lock_wait().
 */
DUO_INLINE bool duo_lock_release(struct duo_lock *lock)
{
	return atomic_exchange_explicit(&lock->state, DUO_LOCK_FREE,
					memory_order_release) ==
	       DUO_LOCK_AWAITED;
}

/* Releases the lock and returns ret, for a tail call. */
DUO_INLINE ssize_t duo_lock_release_last(struct duo_lock *lock, ssize_t ret)
{
	return __builtin_expect(duo_lock_release(lock), false) ?
	       duo_lock_wake(lock, ret) : ret;
}

static inline void duo_lock(struct duo_lock *lock)
{
	if (lock->on && !duo_lock_try(lock))
		duo_lock_wait(lock);
}

static inline void duo_unlock(struct duo_lock *lock)
{
	if (lock->on && duo_lock_release(lock))
		duo_lock_wake(lock, 0);
}

/* duo_unlock() as the tail call of a function. Returns ret. */
DUO_INLINE ssize_t duo_unlock_last(struct duo_lock *lock, ssize_t ret)
{
	return lock->on ? duo_lock_release_last(lock, ret) : ret;
}

#endif /* DUO_LOCK_H */
