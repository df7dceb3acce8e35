/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Registration of a process for membarrier(2), and a call of membarrier(2) that
 * fails
 */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

#ifdef __SANITIZE_THREAD__
#define NEAR_HAS_THREAD 0
#else
#define NEAR_HAS_THREAD 1
#endif

static void *wait_for_ever(void *runs)
{
	sem_post(runs);
	pause();
	return NULL;
}

/*
 * Starts a thread, as MPI libraries do. In a process with threads the kernel
 * needs 5 to 20 ms for the registration, so near registers in a new thread.
 */
static void have_thread(void)
{
	static sem_t runs;

	sem_init(&runs, 0, 0);
	pthread_detach(unit_thread(wait_for_ever, &runs));
	sem_wait(&runs);
}

/*
 * While `shut` is set, the replaced syscall() delays near's registration: it
 * posts `reached`, and waits until gate_open() was called and the main thread
 * sleeps. Then it registers the process, and sets *done.
 */
static struct gate {
	bool shut;
	sem_t reached, opened;
	bool *done;
} gate;

/* Replaces syscall() of the C library, which near calls for membarrier(2). */
long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT,
							     "syscall");
	bool shut = gate.shut && gettid() != getpid();
	long arg[6], ret;
	va_list args;
	int i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (shut) {
		sem_post(&gate.reached);
		sem_wait(&gate.opened);
		while (unit_state(getpid()) != 'S')
			sched_yield();
	}
	ret = real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (shut)
		*gate.done = true;
	return ret;
}

static void gate_open(void)
{
	sem_post(&gate.opened);
}

static void until_ready(void)
{
	uint64_t end = duo_now_ms() + RIG_TIMEOUT_MS;

	while (!near_barrier_ready()) {
		sched_yield();
		ck_assert_msg(duo_now_ms() < end, "not registered");
	}
}

UNIT_CASE("barrier", NULL, rig_close_all);

UNIT_TEST(unregistered_sender_fences)
{
	struct near_tx unregistered = { .fence = NEAR_FENCE_UNREGISTERED };
	struct near_tx always = { .fence = NEAR_FENCE_ALWAYS };

	near_tx_fence(&unregistered);
	ck_assert_int_eq(unregistered.fence, NEAR_FENCE_UNREGISTERED);
	if (!near_barrier_begin())
		return;		/* membarrier(2) is not permitted here */
	until_ready();
	near_tx_fence(&unregistered);
	near_tx_fence(&always);
	ck_assert_int_eq(unregistered.fence, NEAR_FENCE_NONE);
	ck_assert_int_eq(always.fence, NEAR_FENCE_ALWAYS);
}

UNIT_TEST(registration_beside_thread_succeeds)
{
	struct near_peer *to_b;
	struct rig *a, *b;

	have_thread();
	to_b = rig_pair(&a, &b, false);
	ck_assert_int_eq(rig_send(a, to_b, 1, "", 0), 0);
	if (near_barrier_begin()) {
		ck_assert_int_ne(to_b->tx.fence, NEAR_FENCE_ALWAYS);
		until_ready();
		ck_assert_int_eq(rig_send(a, to_b, 2, "", 0), 0);
		ck_assert_int_eq(to_b->tx.fence, NEAR_FENCE_NONE);
		rig_until(b, NULL, 2);
	}
}

/*
 * Calls exit() while near's thread registers. exit() must wait for the thread,
 * because near's library may be unloaded. In a forked child, which lacks the
 * thread, exit() must not wait. Exit status 0: membarrier(2) is not permitted;
 * 1: exit() in the child has failed; 2: the registration has ended too early;
 * 3: success.
 */
static void exit_during_registration(void)
{
	int status;
	pid_t pid;

	have_thread();
	gate.shut = true;
	if (!near_barrier_begin())
		_exit(0); /* membarrier(2) is not permitted here */
	sem_wait(&gate.reached);
	pid = fork();
	if (!pid)
		exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(1);
	atexit(gate_open);
	exit(*gate.done ? 2 : 3);
}

UNIT_LOOP(exit_during_registration_waits, 0, NEAR_HAS_THREAD)
{
	int status;
	pid_t pid;

	sem_init(&gate.reached, 0, 0);
	sem_init(&gate.opened, 0, 0);
	gate.done = mmap(NULL, sizeof(*gate.done), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(gate.done, MAP_FAILED);
	pid = fork();
	if (!pid)
		exit_during_registration();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (!WEXITSTATUS(status))
		return;
	ck_assert_int_eq(WEXITSTATUS(status), 3);
	ck_assert(*gate.done);
}

/* Asserts that no thread may sleep and no ring becomes idle. */
static void expect_awake(struct rig *rig)
{
	/* as if the kernel had no memory for the barrier */
	unit_reject(SYS_membarrier, SECCOMP_RET_ERRNO | ENOMEM);
	rig->warnings = 0;
	rig_poll(rig, 4 * NEAR_SWEEP_POLLS);
	ck_assert_uint_eq(rig->port->active_count, NEAR_ACTIVE_MIN + 1);
	ck_assert_int_eq(near_arm(rig->port), -EAGAIN);
	ck_assert_int_eq(near_arm(rig->port), -EAGAIN);
	ck_assert_int_eq(rig->warnings, 1);
}

UNIT_TEST(failed_barrier_prevents_sleep)
{
	struct rig *other[NEAR_ACTIVE_MIN + 1], *b = rig_open(false);
	struct near_peer *to[NEAR_ACTIVE_MIN + 1];

	rig_connect_many(other, to, NEAR_ACTIVE_MIN + 1, b, 0);
	ck_assert_int_ge(near_wait_fd(b->port), 0);
	while (near_arm(b->port))
		rig_poll(b, 1);
	near_woken(b->port);
	if (!b->port->fence)	/* set: there is no membarrier(2) */
		expect_awake(b);
}
