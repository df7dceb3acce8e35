/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The lock of a group (obj/group.h): a futex, because the C library's mutex
 * takes 50 instructions per call. Not recursive. A waiting thread spins for a
 * microsecond, then sleeps. Cost: an atomic operation to lock, and another one
 * to unlock. With FI_THREAD_DOMAIN the lock is off, and costs one branch.
 *
 * A *single* lock is the kind of lock for data that only one thread at a time
 * uses, because the application serializes its calls (FI_THREAD_COMPLETION).
 * This thread, the *application thread*, enters and leaves the lock by plain
 * stores to `inside`. In rare cases a second thread, the *other thread*, must
 * access the data. It takes the lock, calls duo_lock_barrier(), and waits by
 * duo_lock_empty() until the application thread is not inside. While the other
 * thread has the lock, the application thread cannot enter.
 *
 * Memory order (store buffering): the application thread stores `inside`, then
 * loads `state`. The other thread stores `state` when it takes the lock, calls
 * duo_lock_barrier(), then loads `inside`. duo_lock_barrier() calls
 * membarrier(2), which executes a memory barrier in all threads of the process,
 * so also in the application thread. If this barrier comes before the
 * application thread's store, this thread's load returns that the lock is
 * taken, and the thread does not enter. If the barrier comes after that store,
 * the other thread's load returns that a thread is inside, and the other thread
 * waits.
 */
#ifndef DUO_LOCK_H
#define DUO_LOCK_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/util.h"

enum {
	DUO_LOCK_FREE,
	DUO_LOCK_HELD,
	DUO_LOCK_AWAITED, /* held; threads may sleep until the release */
	DUO_LOCK_RETIRED,	/* replaced by another lock; never free */
};

/*
 * How the functions that an application calls take the lock. fi/calls.c and
 * cq/read.c, which define these functions, are compiled once for each mode. An
 * endpoint or CQ gets the table of functions for the mode of its group's lock.
 */
enum duo_lock_mode {
	DUO_LOCK_OFF,	/* FI_THREAD_DOMAIN: does not take the lock */
	DUO_LOCK_SHARED,	/* takes the lock, which several threads use */
	/* FI_THREAD_COMPLETION: enters the lock by duo_lock_enter() */
	DUO_LOCK_SINGLE,
};

struct duo_lock {
	atomic_uint state;
	bool on;	/* false: the lock is never taken */
	/* the lock is of the kind "single", see the head of this file */
	bool single;
	atomic_bool inside;	/* single lock: a thread has entered */
};

static inline void duo_lock_init(struct duo_lock *lock, bool on)
{
	atomic_init(&lock->state, DUO_LOCK_FREE);
	atomic_init(&lock->inside, false);
	lock->on = on;
	lock->single = false;
}

static inline enum duo_lock_mode duo_lock_mode(const struct duo_lock *lock)
{
	return !lock->on ? DUO_LOCK_OFF :
	       lock->single ? DUO_LOCK_SINGLE : DUO_LOCK_SHARED;
}

/*
 * Waits until the lock is free, and takes it. False: the lock was retired,
 * which means that another lock has replaced it.
 */
bool duo_lock_wait(struct duo_lock *lock);
/*
 * Retires a lock that the caller holds. duo_lock_wait() then returns false in
 * all threads that wait for the lock, or will wait for it later.
 */
void duo_lock_retire(struct duo_lock *lock);
/* Prepares this process for single locks. False: membarrier(2) has failed. */
bool duo_lock_prepare(void);
/* Executes a full barrier in all threads of the process. */
void duo_lock_barrier(void);
/*
 * Waits until no application thread is inside a single lock, which the caller
 * must have taken. Must follow duo_lock_barrier().
 */
void duo_lock_empty(const struct duo_lock *lock);
/*
 * Wakes a thread in duo_lock_wait(). Must be called if duo_lock_release() has
 * returned true. Returns ret, for tail calls.
 */
ssize_t duo_lock_wake(struct duo_lock *lock, ssize_t ret);

/* Takes the lock if it is free. Acquire: pairs with duo_lock_release(). */
DUO_INLINE bool duo_lock_try(struct duo_lock *lock)
{
	unsigned int state = DUO_LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(&lock->state, &state,
						       DUO_LOCK_HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/*
 * Releases the lock. True: the caller must call duo_lock_wake(). Release: pairs
 * with duo_lock_try() and duo_lock_wait().
 */
DUO_INLINE bool duo_lock_release(struct duo_lock *lock)
{
	return atomic_exchange_explicit(&lock->state, DUO_LOCK_FREE,
					memory_order_release) ==
	       DUO_LOCK_AWAITED;
}

/* Releases the lock, and wakes a thread if necessary. Returns ret. */
DUO_INLINE ssize_t duo_lock_release_last(struct duo_lock *lock, ssize_t ret)
{
	return __builtin_expect(duo_lock_release(lock), false) ?
	       duo_lock_wake(lock, ret) : ret;
}

/* Leaves a single lock. Release: pairs with duo_lock_empty(). */
DUO_INLINE void duo_lock_leave(struct duo_lock *lock)
{
	atomic_store_explicit(&lock->inside, false, memory_order_release);
}

/*
 * Enters a single lock. False: another thread has taken the lock. Acquire:
 * pairs with duo_lock_release(). Store buffering: see the head of this file.
 */
DUO_INLINE bool duo_lock_enter(struct duo_lock *lock)
{
	assert(lock->single);
	atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&lock->state,
						  memory_order_acquire) ==
			     DUO_LOCK_FREE, true))
		return true;
	duo_lock_leave(lock);
	return false;
}

/* Takes the lock in this mode. False: the lock is not free. */
DUO_INLINE bool duo_lock_take(struct duo_lock *lock,
			      const enum duo_lock_mode mode)
{
	return mode == DUO_LOCK_SINGLE ? duo_lock_enter(lock) :
	       mode == DUO_LOCK_OFF || duo_lock_try(lock);
}

/* Releases a lock that duo_lock_take() took. Returns ret, for tail calls. */
DUO_INLINE ssize_t duo_lock_end(struct duo_lock *lock,
				const enum duo_lock_mode mode, ssize_t ret)
{
	if (mode == DUO_LOCK_SHARED)
		return duo_lock_release_last(lock, ret);
	if (mode == DUO_LOCK_SINGLE)
		duo_lock_leave(lock);
	return ret;
}

/* Waits for a lock and takes it. Single locks need duo_group_lock() instead. */
static inline void duo_lock(struct duo_lock *lock)
{
	assert(!lock->single);
	if (lock->on && !duo_lock_try(lock))
		duo_lock_wait(lock);
}

/* Releases a lock of any mode. Returns ret, for tail calls. */
DUO_INLINE ssize_t duo_unlock_last(struct duo_lock *lock, ssize_t ret)
{
	return duo_lock_end(lock, duo_lock_mode(lock), ret);
}

static inline void duo_unlock(struct duo_lock *lock)
{
	duo_unlock_last(lock, 0);
}

#endif /* DUO_LOCK_H */
