/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_poll() returns contexts of CQs with entries and of changed counters. */

#include "fixture.h"
#include "obj/cntr.h"

static struct slot slot[3];
static struct fid_poll *set;

/* The functions of fi_poll(3) are deprecated; these call the operations. */
static int poll_add(struct fid *fid)
{
	return set->ops->poll_add(set, fid, 0);
}

static int poll_del(struct fid *fid)
{
	return set->ops->poll_del(set, fid, 0);
}

static int poll_open(struct fid_poll **new_set)
{
	struct fi_poll_attr attr = { 0 };

	return fx.domain->ops->poll_open(fx.domain, &attr, new_set);
}

/* Asserts that fi_poll() returns these contexts, in any order; NULL: none. */
static void expect_ready(void *one, void *two)
{
	void *context[4] = { 0 };
	int n = set->ops->poll(set, context, 4);

	ck_assert_int_eq(n, !!one + !!two);
	ck_assert((context[0] == one && context[1] == two) ||
		  (context[0] == two && context[1] == one));
}

static void setup(void)
{
	static const struct fixture_attr attr = {
		.two_cqs = true, .cntr_flags = FI_RECV,
	};

	pair_open(&attr);
	fx.cq->fid.context = &fx.cq;
	fx.tx_cq->fid.context = &fx.tx_cq;
	fx.cntr->fid.context = &fx.cntr;
	ck_assert_int_eq(poll_open(&set), 0);
	ck_assert_uint_eq(set->fid.fclass, FI_CLASS_POLL);
	ck_assert_int_eq(poll_add(&fx.cq->fid), 0);
	ck_assert_int_eq(poll_add(&fx.tx_cq->fid), 0);
	ck_assert_int_eq(poll_add(&fx.cntr->fid), 0);
}

static void close_set(void)
{
	ck_assert_int_eq(fi_close(&set->fid), 0);
}

static void teardown(void)
{
	close_set();
	fixture_close();
}

UNIT_CASE("poll", setup, teardown);

/* fi_poll() returns a CQ until it is empty, and a counter once per change. */
UNIT_LOOP(received_message_is_returned, 0, FI_DUO_PATH_COUNT)
{
	struct fi_cq_tagged_entry entry;
	int i;

	expect_ready(NULL, NULL);
	for (i = 0; i < 2; i++) {
		post_recv(&slot[0], source(_i), TAG);
		expect_ready(NULL, NULL);
		arrive(_i, DUO_TAGGED, "x");
		expect_ready(&fx.cq, &fx.cntr);
		expect_ready(&fx.cq, NULL);
		ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
		ck_assert_ptr_eq(entry.op_context, &slot[0]);
		expect_ready(NULL, NULL);
	}
}

UNIT_LOOP(sent_message_is_returned, 0, FI_DUO_PATH_COUNT)
{
	struct fi_cq_tagged_entry entry;

	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, source(_i), TAG, NULL),
			 0);
	expect_ready(&fx.tx_cq, NULL);
	ck_assert_int_eq(fi_cq_read(fx.tx_cq, &entry, 1), 1);
	expect_ready(NULL, NULL);
}

/*
 * A truncated message is an error in the CQ, and changes the counter's error
 * value.
 */
UNIT_LOOP(error_is_returned, 0, FI_DUO_PATH_COUNT)
{
	struct fi_cq_err_entry err = { 0 };

	ck_assert_int_eq(fi_trecv(fx.ep, slot[0].buf, 2, NULL, source(_i),
				  TAG, 0, &slot[0]), 0);
	expect_ready(NULL, NULL);
	arrive(_i, DUO_TAGGED, "too long");
	expect_ready(&fx.cq, &fx.cntr);
	expect_ready(&fx.cq, NULL);
	ck_assert_int_eq(fi_cq_readerr(fx.cq, &err, 0), 1);
	ck_assert_int_eq(err.err, FI_ETRUNC);
	expect_ready(NULL, NULL);
}

UNIT_TEST(earlier_change_is_returned)
{
	ck_assert_int_eq(poll_del(&fx.cntr->fid), 0);
	ck_assert_int_eq(fi_cntr_add(fx.cntr, 1), 0);
	expect_ready(NULL, NULL);
	ck_assert_int_eq(poll_add(&fx.cntr->fid), 0);
	expect_ready(&fx.cntr, NULL);
	expect_ready(NULL, NULL);
}

/*
 * A call with space for one context returns one. The other event is returned by
 * the next call.
 */
UNIT_TEST(event_without_space_is_kept)
{
	void *context[2] = { 0 };
	struct fi_cq_tagged_entry entry;
	bool cntr = false;
	int i;

	post_recv(&slot[0], local, TAG);
	near("x");
	ck_assert_int_eq(set->ops->poll(set, NULL, 0), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(set->ops->poll(set, context, 1), 1);
		ck_assert_ptr_null(context[1]);
		if (context[0] == &fx.cq)
			ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
		else
			cntr = context[0] == &fx.cntr;
	}
	ck_assert(cntr);
	expect_ready(NULL, NULL);
}

UNIT_TEST(member_added_twice_is_returned_once)
{
	ck_assert_int_eq(poll_add(&fx.tx_cq->fid), 0);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, local, TAG, NULL), 0);
	expect_ready(&fx.tx_cq, NULL);
	ck_assert_int_eq(poll_del(&fx.tx_cq->fid), 0);
	expect_ready(NULL, NULL);
	ck_assert_int_eq(poll_del(&fx.tx_cq->fid), 0);
}

/* As in efa, tcp and ofi_rxm, a member may be closed before the set. */
UNIT_TEST(member_may_be_closed)
{
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = NULL;
	ck_assert_int_eq(fi_close(&fx.cq->fid), 0);
	fx.cq = NULL;
	ck_assert_int_eq(fi_close(&fx.cntr->fid), 0);
	fx.cntr = NULL;
}

/*
 * As in efa, tcp and ofi_rxm, members may belong to any domain. With the hook
 * this can be a domain of the core.
 */
UNIT_TEST(members_of_other_domains_are_polled)
{
	struct fi_info *info = fixture_info(&(struct fixture_attr) { 0 });
	struct fid_cntr *core_cntr =
		duo_cntr_of(&fx.cntr->fid)->path_cntr[FI_DUO_CORE];
	struct fid_poll *other;
	struct fid_domain *domain;
	void *context[4];

	ck_assert_int_eq(duo_domain_open(&fx.fabric.fabric_fid, info, &domain,
					 NULL), 0);
	fi_freeinfo(info);
	ck_assert_int_eq(domain->ops->poll_open(domain, NULL, &other), 0);
	ck_assert_int_eq(other->ops->poll_add(other, &fx.cntr->fid, 0), 0);
	ck_assert_int_eq(other->ops->poll_add(other, &fx.cq->fid, 0), 0);
	ck_assert_int_eq(other->ops->poll_add(other, &core_cntr->fid, 0), 0);
	ck_assert_int_eq(other->ops->poll(other, context, 4), 0);
	fake_obj_of(&core_cntr->fid)->bad++;
	post_recv(&slot[0], local, TAG);
	near("x");
	ck_assert_int_eq(other->ops->poll(other, context, 4), 3);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
}

/* Only CQs and counters can be members, and there are no flags. */
UNIT_TEST(other_objects_are_rejected)
{
	struct fi_poll_attr attr = { .flags = 1 };
	struct fid_poll *other;

	ck_assert_int_eq(poll_add(&fx.ep->fid), -FI_EINVAL);
	ck_assert_int_eq(poll_add(&fx.av->fid), -FI_EINVAL);
	ck_assert_int_eq(poll_add(&set->fid), -FI_EINVAL);
	ck_assert_int_eq(poll_add(NULL), -FI_EINVAL);
	ck_assert_int_eq(fx.domain->ops->poll_open(fx.domain, &attr, &other),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_control(&set->fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_open_ops(&set->fid, FAKE_OPS, 0, NULL, NULL),
			 -FI_ENOSYS);
}
