/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Wait sets: what is in one wakes who waits for it. */

#include <pthread.h>
#include <unistd.h>

#include "cq/cq.h"
#include "wait_fixture.h"

static struct slot slot;

static const struct fixture_attr attr = {
	.near = true, .wait_obj = FI_WAIT_SET,
	.cntr_flags = FI_SEND, .cntr_wait = FI_WAIT_SET,
};

static void setup(void)
{
	wait_open(&attr);
}

/* fi_wait(3), which newer headers want nobody to call. */
static int wait_for(int ms)
{
	return fx.set->ops->wait(fx.set, ms);
}

/* Nothing is left to be looked at. */
static void silence(void)
{
	int i, ret = 0;

	for (i = 0; i < 1000 && !ret; i++)
		ret = wait_for(0);
	ck_assert_int_eq(ret, -FI_ETIMEDOUT);
	ck_assert_int_eq(wait_for(20), -FI_ETIMEDOUT);
}

/* Later, when the other one sleeps. */
static void *later(void *do_it)
{
	usleep(20000);
	((void (*)(void)) do_it)();
	return NULL;
}

static void local_message(void)
{
	say("local");
}

/* The fake core has no lock of its own. */
static void far_message(void)
{
	struct duo_domain *domain = fixture_ep()->domain;

	duo_lock(&domain->lock);
	fake_core_arrive(DUO_TAGGED, far, TAG, "far");
	duo_unlock(&domain->lock);
}

static void counted(void)
{
	fi_cntr_add(fx.cntr, 1);
}

static void signalled(void)
{
	fi_cq_signal(fx.cq);
}

static void (*const wakers[])(void) = {
	local_message, far_message, counted, signalled,
};

START_TEST(wakes)
{
	pthread_t thread;

	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	silence();
	ck_assert_int_eq(pthread_create(&thread, NULL, later, wakers[_i]), 0);
	ck_assert_int_eq(wait_for(_i % 2 ? -1 : LONG_MS), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	if (_i < 2)
		expect_entry(&slot, _i ? far : far + 1);
	silence();
}
END_TEST

/* It stays due until it has been read. */
START_TEST(until_it_is_read)
{
	int i;

	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	silence();
	say("x");
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(wait_for(LONG_MS), 0);
		ck_assert_int_eq(trywait(&fx.set->fid), -FI_EAGAIN);
	}
	expect_entry(&slot, far + 1);
	silence();
	ck_assert_int_eq(trywait(&fx.set->fid), 0);
	ck_assert_int_eq(woken(&fx.set->fid, 20), 0);
}
END_TEST

START_TEST(refused)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET };
	struct fid_wait *set;
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	ck_assert_int_eq(duo_waitset_open(&fx.fabric.fabric_fid, &wait_attr,
					  &set), -FI_ENOSYS);
	wait_attr = (struct fi_wait_attr) { .flags = 1 };
	ck_assert_int_eq(duo_waitset_open(&fx.fabric.fabric_fid, &wait_attr,
					  &set), -FI_EINVAL);
	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &cq, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_cntr_open(fx.domain, &cntr_attr, &cntr, NULL),
			 -FI_EINVAL);
	/* it has members */
	ck_assert_int_eq(fi_close(&fx.set->fid), -FI_EBUSY);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wait sets");
	TCase *tcase = unit_case(suite, "set", setup, wait_close);

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, wakes, 0, ARRAY_SIZE(wakers));
	tcase_add_test(tcase, until_it_is_read);
	tcase_add_test(tcase, refused);
	return unit_run(suite);
}
