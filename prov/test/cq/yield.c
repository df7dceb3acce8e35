/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A thread that reads an empty CQ for long yields to other processes. */

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

#define POLLS 8

static struct slot slot;
static int yields;
static int cpus;		/* CPUs that all processes may run on */
static pid_t other;		/* pid of the publishing process; 0: this one */

/* Replaces the C library's. */
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
	if (fake.lock && fake.lock->on) {
		ck_assert_msg(duo_lock_try(fake.lock),
			      "the lock is held meanwhile");
		duo_lock_give(fake.lock);
	}
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
}

/* A local peer in another process, which has to be there. */
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

UNIT_TEST(after_empty_reads)
{
	poll_cq(POLLS - 1);
	ck_assert_int_eq(yields, 0);
	poll_cq(1);
	ck_assert_int_eq(yields, 1);
	poll_cq(3 * POLLS);
	ck_assert_int_eq(yields, 4);
}

/* With a CPU for each process, a yield would help unrelated ones only. */
UNIT_TEST(not_where_all_have_processors)
{
	cpus = 2;
	poll_cq(3 * POLLS);
	ck_assert_int_eq(yields, 0);
	/* fewer CPUs are noticed after a while */
	cpus = 1;
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 0);
	unit_pass(100000);
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 1);
	/* one more process */
	cpus = 2;
	unit_pass(100000);
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 1);
	neighbour(2);
	unit_pass(100000);
	poll_cq(POLLS);
	ck_assert_int_eq(yields, 2);
}

/* FI_OFI_DUO_YIELD_POLLS makes it yield always. */
UNIT_TEST(always)
{
	duo_params.yield_always = true;
	cpus = 2;
	poll_cq(3 * POLLS);
	ck_assert_int_eq(yields, 3);
}

/* None while messages come, expected or not. */
UNIT_TEST(not_while_shm_is_busy)
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

/* No yields without shm, for the domain or for its endpoints. */
UNIT_TEST(without_shm)
{
	static const struct fixture_attr attr = { .no_shm = true };

	fixture_close();
	setup_attr(&attr);
	poll_cq(4 * POLLS);
	ck_assert_int_eq(yields, 0);
}

/* FI_OPT_SHARED_MEMORY_PERMITTED is false, as NCCL's plugin has it. */
UNIT_TEST(endpoint_without_shm)
{
	static const struct fixture_attr attr;
	struct fi_info *info = fixture_info(&attr);
	bool permitted = false;

	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &fx.ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &fx.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &fx.cq->fid,
				    FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_setopt(&fx.ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_SHARED_MEMORY_PERMITTED, &permitted,
				   sizeof(permitted)), 0);
	ck_assert_int_eq(fi_enable(fx.ep), 0);
	fi_freeinfo(info);
	poll_cq(4 * POLLS);
	ck_assert_int_eq(yields, 0);
}

UNIT_TEST(without_a_lock)
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

UNIT_TEST(never)
{
	duo_params.yield_mask = UINT32_MAX;
	poll_cq(10000);
	ck_assert_int_eq(yields, 0);
}
