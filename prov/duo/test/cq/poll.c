/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Poll sets: who is reported, how often, and what becomes of who is closed. */

#include <rdma/fi_errno.h>

#include "fixture.h"
#include "obj/cntr.h"

/* libfabric 2.0 says so of all of them; they are there. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const struct fixture_attr attr = { .cntr_flags = FI_RECV };
static struct fid_poll *set;
static struct slot slot[2];
static fi_addr_t far;

static void setup(void)
{
	struct fi_poll_attr poll_attr = { 0 };

	fixture_open(&attr);
	ck_assert_int_eq(fixture_try(&attr), 0);
	fx.cq->fid.context = &slot[0];
	fx.cntr->fid.context = &slot[1];
	far = peer_insert(2);
	ck_assert_int_eq(fi_poll_open(fx.domain, &poll_attr, &set), 0);
	ck_assert_int_eq(fi_poll_add(set, &fx.cq->fid, 0), 0);
	ck_assert_int_eq(fi_poll_add(set, &fx.cntr->fid, 0), 0);
	ck_assert_int_eq(fi_poll_add(set, &fx.cntr->fid, 0), 0);
}

static void teardown(void)
{
	if (set)
		ck_assert_int_eq(fi_close(&set->fid), 0);
	fixture_close();
}

/* Bits: the CQ, the counter. */
static int ready(int count)
{
	void *context[4];
	int i, bits = 0, n = fi_poll(set, context, count);

	ck_assert_int_ge(n, 0);
	ck_assert_int_le(n, count);
	for (i = 0; i < n; i++)
		bits |= 1 << ((struct slot *) context[i] - slot);
	return bits;
}

static void receive(void)
{
	post_recv(&slot[0], far, TAG);
	fake_core_arrive(DUO_TAGGED, far, TAG, "x");
}

/* A CQ until it is read, a counter once. */
START_TEST(completion)
{
	ck_assert_int_eq(ready(4), 0);
	receive();
	ck_assert_int_eq(ready(4), 3);
	ck_assert_int_eq(ready(4), 1);
	expect_recv(&slot[0], "x", far);
	ck_assert_int_eq(ready(4), 0);
}
END_TEST

START_TEST(error)
{
	post_recv(&slot[0], far, TAG);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	ck_assert_int_eq(ready(4), 3);
	expect_error(&slot[0], FI_ECANCELED);
	ck_assert_int_eq(ready(4), 0);
	ck_assert_int_eq(fi_cntr_adderr(fx.cntr, 1), 0);
	ck_assert_int_eq(ready(4), 2);
}
END_TEST

/* Who finds no place is reported the next time. */
START_TEST(little_room)
{
	receive();
	ck_assert_int_eq(ready(0), 0);
	ck_assert_int_eq(ready(1), 2);
	ck_assert_int_eq(ready(1), 1);
}
END_TEST

START_TEST(removed)
{
	receive();
	ck_assert_int_eq(fi_poll_del(set, &fx.cq->fid, 0), 0);
	ck_assert_int_eq(fi_poll_del(set, &fx.cq->fid, 0), 0);
	ck_assert_int_eq(ready(4), 2);
}
END_TEST

START_TEST(closed)
{
	struct fi_cq_attr cq_attr = { 0 };
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &cq, slot), 0);
	ck_assert_int_eq(fi_cntr_open(fx.domain, NULL, &cntr, slot), 0);
	ck_assert_int_eq(fi_poll_add(set, &cq->fid, 0), 0);
	ck_assert_int_eq(fi_poll_add(set, &cntr->fid, 0), 0);
	ck_assert_int_eq(fi_cntr_add(cntr, 1), 0);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	ck_assert_int_eq(ready(4), 0);
}
END_TEST

static int busy(struct fid *fid)
{
	return -FI_EBUSY;
}

/* fi_close of an object whose core's cannot be closed. */
static void fail_to_close(struct fid *fid, struct fid *core)
{
	struct fi_ops busy_ops = { .size = sizeof(busy_ops), .close = busy };
	struct fi_ops *ops = core->ops;

	core->ops = &busy_ops;
	ck_assert_int_eq(fi_close(fid), -FI_EBUSY);
	core->ops = ops;
}

/* It is open, and is looked at. */
START_TEST(not_closed)
{
	struct fi_cq_attr cq_attr = { 0 };
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct duo_cq *duo_cq;

	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &cq, &slot[0]), 0);
	ck_assert_int_eq(fi_cntr_open(fx.domain, NULL, &cntr, &slot[1]), 0);
	duo_cq = duo_container_of(cq, struct duo_cq, cq_fid);
	ck_assert_int_eq(fi_poll_add(set, &cq->fid, 0), 0);
	ck_assert_int_eq(fi_poll_add(set, &cntr->fid, 0), 0);
	fail_to_close(&cq->fid, &duo_cq->path_cq[FI_DUO_CORE]->fid);
	fail_to_close(&cntr->fid,
		      &duo_cntr_of(&cntr->fid)->path_cntr[FI_DUO_CORE]->fid);
	ck_assert_int_eq(ready(4), 0);
	ck_assert_int_eq(fi_cntr_add(cntr, 1), 0);
	duo_cq_push_sent(duo_cq, NULL, FI_SEND);
	ck_assert_int_eq(ready(4), 3);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	ck_assert_int_eq(ready(4), 0);
}
END_TEST

START_TEST(refuses)
{
	struct fi_poll_attr poll_attr = { .flags = 1 };
	struct fid_poll *other;

	ck_assert_int_eq(fi_poll_open(fx.domain, &poll_attr, &other),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_poll_add(set, &fx.av->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_poll_add(set, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&fx.domain->fid), -FI_EBUSY);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("poll");
	TCase *tcase = unit_case(suite, "poll", setup, teardown);

	tcase_add_test(tcase, completion);
	tcase_add_test(tcase, error);
	tcase_add_test(tcase, little_room);
	tcase_add_test(tcase, removed);
	tcase_add_test(tcase, closed);
	tcase_add_test(tcase, not_closed);
	tcase_add_test(tcase, refuses);
	return unit_run(suite);
}
