/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "near/link/ring.h"

/*
 * If NEAR_ALONE is not 0, near_barrier_begin() registers the process itself,
 * and creates no thread. In a process with one thread, the registration is
 * fast.
 */
#ifdef __SANITIZE_THREAD__
/* TSan forbids the creation of threads in a forked child */
#define NEAR_ALONE 1
#elif defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define NEAR_ALONE __libc_single_threaded
#endif
#endif
#ifndef NEAR_ALONE
#define NEAR_ALONE 0
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* pid of the process that began to register; a forked child begins again */
static pid_t begun;
static pthread_t thread;
static pid_t threaded;	/* process that created `thread`; 0: none */
static bool ready;	/* this process is registered for membarrier */

static void *near_barrier_register(void *none)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
		     0, 0))
		__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
	return none;
}

bool near_barrier_begin(void)
{
	long offered = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	if (offered < 0 || !(offered & MEMBARRIER_CMD_GLOBAL_EXPEDITED) ||
	    !(offered & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED))
		return false;
	pthread_mutex_lock(&lock);
	if (begun != getpid()) {
		begun = getpid();
		__atomic_store_n(&ready, false, __ATOMIC_RELAXED);
		if (NEAR_ALONE ||
		    duo_thread_start(&thread, near_barrier_register, NULL))
			near_barrier_register(NULL);
		else
			threaded = begun;
	}
	pthread_mutex_unlock(&lock);
	return true;
}

bool near_barrier_ready(void)
{
	return __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
}

bool near_barrier(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

/* Joins the thread before this library is unloaded. */
__attribute__((destructor)) static void near_barrier_end(void)
{
	if (threaded == getpid())
		pthread_join(thread, NULL);
}
