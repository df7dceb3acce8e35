/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Counters: the core's own, and of RMA alone. */

#include <rdma/fi_errno.h>

#include "fixture.h"

#define ALL_RMA (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
static struct fid_ep *ep;

/* One that can still be bound to: the fixture's is enabled. */
static void setup(void)
{
	static const struct fixture_attr defaults;
	struct fi_info *info = fixture_info(&defaults);

	fixture_setup();
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &ep, NULL), 0);
	fi_freeinfo(info);
}

static void teardown(void)
{
	if (ep)
		ck_assert_int_eq(fi_close(&ep->fid), 0);
	fixture_close();
}

static const struct {
	const char *name;
	uint64_t flags;
	int ret;
} binds[] = {
	{ "as MPICH does", FI_READ | FI_WRITE, 0 },
	{ "all of RMA", ALL_RMA, 0 },
	{ "sends", FI_SEND, -FI_ENOSYS },
	{ "receives", FI_RECV, -FI_ENOSYS },
	{ "sends among RMA", FI_SEND | FI_WRITE, -FI_ENOSYS },
};

/* The fake core takes references to its own objects only. */
START_TEST(bound)
{
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &cntr, NULL), 0);
	ck_assert_msg(fi_ep_bind(ep, &cntr->fid, binds[_i].flags) ==
		      binds[_i].ret, "%s", binds[_i].name);
	if (!binds[_i].ret) {
		ck_assert_int_eq(fi_close(&ep->fid), 0);
		ep = NULL;
	}
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}
END_TEST

START_TEST(core_refuses)
{
	struct fid_cntr *cntr = NULL;

	fake.path[FI_DUO_CORE].fail_at = fake.path[FI_DUO_CORE].calls + 1;
	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &cntr, NULL),
			 -FAKE_ERROR);
	ck_assert_ptr_null(cntr);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cntr");
	TCase *tcase = unit_case(suite, "cntr", setup, teardown);

	tcase_add_loop_test(tcase, bound, 0, sizeof(binds) / sizeof(binds[0]));
	tcase_add_test(tcase, core_refuses);
	return unit_run(suite);
}
