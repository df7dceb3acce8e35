/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The owner lock of a domain, see docs/overview.md. Under FI_THREAD_DOMAIN
 * the application serialises everything in a domain and the lock is off:
 * one predictable branch.
 */
#ifndef DUO_LOCK_H
#define DUO_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct duo_lock {
	pthread_mutex_t mutex;
	bool on;
	/* Before it is released; NULL: nobody asks what has changed. */
	void (*watch)(struct duo_lock *lock);
};

static inline int duo_lock_init(struct duo_lock *lock, bool on)
{
	lock->on = on;
	lock->watch = NULL;
	return -pthread_mutex_init(&lock->mutex, NULL);
}

static inline void duo_lock_destroy(struct duo_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

/* Released by duo_unlock(). Not recursive. */
static inline void duo_lock(struct duo_lock *lock)
{
	if (lock->on)
		pthread_mutex_lock(&lock->mutex);
}

static inline void duo_unlock(struct duo_lock *lock)
{
	if (__builtin_expect(lock->watch != NULL, false))
		lock->watch(lock);
	if (lock->on)
		pthread_mutex_unlock(&lock->mutex);
}

#endif /* DUO_LOCK_H */
