/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A thread that reads an empty CQ many times yields its CPU. */

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

#define POLLS 8

static struct slot slot;
static int yields;
static int cpus; /* number of CPUs that sched_getaffinity() returns */
/* pid that getpid() returns while a peer is published; 0: the real pid */
static pid_t other;
static void (*during)(void);	/* called in a yield; NULL: nothing */

/* Replaces getpid() of the C library. */
pid_t getpid(void)
{
	return other ? other : (pid_t) syscall(SYS_getpid);
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	int i;

	CPU_ZERO_S(size, set);
	for (i = 0; i < cpus; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

int sched_yield(void)
{
	struct duo_lock *lock = fx.cq ? &duo_cq_of(fx.cq)->group->lock : NULL;

	if (lock && lock->on) {
		ck_assert_msg(duo_lock_try(lock),
			      "the lock is held during the yield");
		duo_lock_release(lock);
	}
	if (during)
		during();
	yields++;
	return 0;
}

static void setup_attr(const struct fixture_attr *attr)
{
	fixture_open(attr);
	duo_params.yield_mask = POLLS - 1;
	ck_assert_int_eq(fixture_try(attr), 0);
	yields = 0;
	cpus = 1;
	during = NULL;
}

/*
 * Publishes a local peer, as another process. The pid must be that of a process
 * that exists: the parent or process 1.
 */
static const char *neighbour(uint64_t core_addr)
{
	const char *name;

	other = core_addr == 1 ? getppid() : 1;
	name = peer_publish(core_addr);
	other = 0;
	peer_insert(core_addr);
	return name;
}

static void setup(void)
{
	static const struct fixture_attr attr;

	setup_attr(&attr);
	local_name = neighbour(1);
}

UNIT_CASE("yield", setup, fixture_close);

UNIT_TEST(empty_reads_yield)
{
	poll_cq(POLLS - 1);
	ck_assert_int_eq(yields, 0);
	poll_cq(1);
	ck_assert_int_eq(yields, 1);
	poll_cq(3 * POLLS);
	ck_assert_int_eq(yields, 4);
}

/*
 * If each process has a CPU of its own, a yield would only help unrelated
 * processes.
 */
UNIT_TEST(enough_cpus_do_not_yield)
{
	cpus = 2;
	poll_cq(3 * POLLS);
	ck_assert_int_eq(yields, 0);
	/* reads find the lower number of CPUs only at the next check */
	cpus = 1;
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 0);
	unit_pass(200000);
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 1);
	/* the CPUs suffice for two processes, but not for three */
	cpus = 2;
	unit_pass(200000);
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 1);
	neighbour(2);
	unit_pass(200000);
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 2);
}

UNIT_TEST(yield_polls_set_yields_always)
{
	duo_params.yield_always = true;
	cpus = 2;
	poll_cq(3 * POLLS);
	ck_assert_int_eq(yields, 3);
}

/* While messages arrive, expected or unexpected, reads do not yield. */
UNIT_TEST(busy_shm_does_not_yield)
{
	struct fi_cq_tagged_entry entry;
	int i;

	for (i = 0; i < 4 * POLLS; i++) {
		post_recv(&slot, FI_ADDR_UNSPEC, TAG);
		fake_shm_arrive(DUO_TAGGED, local_name, TAG, "near");
		ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
		fake_shm_arrive(DUO_TAGGED, local_name, TAG + 1, "later");
		poll_cq(1);
	}
	ck_assert_int_eq(yields, 0);
}

UNIT_TEST(no_shm_does_not_yield)
{
	static const struct fixture_attr attr = { .no_shm = true };

	fixture_close();
	setup_attr(&attr);
	poll_cq(4 * POLLS);
	ck_assert_int_eq(yields, 0);
}

/*
 * NCCL's plugin sets FI_OPT_SHARED_MEMORY_PERMITTED to false. Reads of such an
 * endpoint's CQ must not yield.
 */
UNIT_TEST(endpoint_without_shm_does_not_yield)
{
	static const struct fixture_attr attr;
	bool permitted = false;

	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = fixture_another(&attr, FI_TRANSMIT | FI_RECV);
	ck_assert_int_eq(ep_set(fx.ep, FI_OPT_SHARED_MEMORY_PERMITTED,
				permitted), 0);
	ck_assert_int_eq(fi_enable(fx.ep), 0);
	poll_cq(4 * POLLS);
	ck_assert_int_eq(yields, 0);
}

UNIT_TEST(reads_without_lock_yield)
{
	static const struct fixture_attr attr = {
		.threading = FI_THREAD_DOMAIN,
	};

	fixture_close();
	setup_attr(&attr);
	neighbour(1);
	poll_cq(4 * POLLS);
	ck_assert_int_eq(yields, 4);
}

UNIT_TEST(yield_disabled_does_not_yield)
{
	duo_params.yield_mask = UINT32_MAX;
	poll_cq(10000);
	ck_assert_int_eq(yields, 0);
}

static void move_queue(void)
{
	struct duo_cq *cq = duo_cq_of(fx.cq);

	duo_domain_lock(cq->domain);
	ck_assert_int_eq(duo_cq_join(cq), 0);
	duo_domain_unlock(cq->domain);
}

/*
 * During the yield, another thread moves the CQ to the domain's group. The read
 * must then release the lock of the domain's group. If _i is 0, the read takes
 * the fast path, otherwise the slow path.
 */
UNIT_LOOP(queue_moves_during_yield, 0, 2)
{
	static const struct fixture_attr attr = { .near = true };
	struct duo_group *to;
	int i;

	fixture_close();
	setup_attr(&attr);
	to = &duo_domain_of(fx.domain)->group;
	duo_params.yield_always = true;
	duo_params.core_poll_interval = _i ? 1 : 64;
	for (i = 0; i < 1000000 && !_i && duo_cq_of(fx.cq)->left < POLLS; i++)
		poll_cq(1);
	ck_assert_int_eq(duo_cq_of(fx.cq)->left >= POLLS, !_i);
	yields = 0;
	during = move_queue;
	poll_cq(POLLS);
	during = NULL;	/* LeakSanitizer calls sched_yield(), too */
	ck_assert_int_eq(yields, 1);
	ck_assert_ptr_eq(duo_cq_of(fx.cq)->group, to);
	ck_assert(duo_lock_try(&to->lock));
	duo_lock_release(&to->lock);
}
