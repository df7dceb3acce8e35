/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The application gets the core's key and descriptor of a region. The core gets
 * only its own objects.
 */

#include "fixture.h"

#define KEY 42

static char buf[64];

/* Registers buf by fi_mr_reg() (0), fi_mr_regv() (1) or fi_mr_regattr(). */
static int reg(int how, struct fid_mr **mr)
{
	const struct iovec iov = { buf, sizeof(buf) };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_RECV,
		.requested_key = KEY,
		.context = buf,
	};

	switch (how) {
	case 0:
		return fi_mr_reg(fx.domain, buf, sizeof(buf), FI_RECV, 0, KEY,
				 0, mr, buf);
	case 1:
		return fi_mr_regv(fx.domain, &iov, 1, FI_RECV, 0, KEY, 0, mr,
				  buf);
	default:
		return fi_mr_regattr(fx.domain, &attr, 0, mr);
	}
}

UNIT_CASE("mr", fixture_setup, fixture_close);

UNIT_LOOP(region_has_key_and_descriptor_of_core, 0, 3)
{
	struct fid_mr *mr;

	ck_assert_int_eq(reg(_i, &mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr), KEY);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ck_assert_ptr_eq(mr->fid.context, buf);
	ck_assert_uint_eq(mr->fid.fclass, FI_CLASS_MR);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}

UNIT_LOOP(core_error_is_returned, 0, 3)
{
	struct fid_mr *mr = NULL;

	fake.path[FI_DUO_CORE].fail_at = fake.path[FI_DUO_CORE].calls + 1;
	ck_assert_int_eq(reg(_i, &mr), -FAKE_ERROR);
	ck_assert_ptr_null(mr);
}

UNIT_LOOP(bind_to_endpoint_gets_core_endpoint, 0, 3)
{
	struct fid *core = &fixture_ep()->path_ep[FI_DUO_CORE]->fid;
	struct fid_mr *mr;
	void *desc;

	ck_assert_int_eq(reg(_i, &mr), 0);
	desc = fi_mr_desc(mr);
	ck_assert_int_eq(fi_mr_bind(mr, &fx.ep->fid, 0), 0);
	ck_assert_ptr_eq(fake.core.mr_bound, core);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr), KEY + 1);
	ck_assert_ptr_ne(fi_mr_desc(mr), desc);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}

UNIT_LOOP(bind_to_counter_gets_core_counter, 0, 3)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(reg(_i, &mr), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	ck_assert_ptr_eq(fake.core.mr_bound, &fake.core.cntr->fid);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}

/*
 * Sub-regions are not supported. libfabric's hooks may pass an undefined
 * attr.base_mr, which ofi_duo must not use.
 */
UNIT_TEST(base_region_is_ignored)
{
	const struct fi_mr_attr attr = {
		.access = FI_RECV, .base_mr = (const struct fid_mr *) 1,
	};
	struct fid_mr *mr;

	ck_assert_int_eq(fi_mr_regattr(fx.domain, &attr, 0, &mr), 0);
	ck_assert_ptr_null(fake.core.base_mr);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}

UNIT_LOOP(bind_to_other_object_fails, 0, 3)
{
	struct fid_mr *mr;

	ck_assert_int_eq(reg(_i, &mr), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &fx.cq->fid, 0), -FI_ENOSYS);
	ck_assert_int_eq(mr->fid.ops->bind(&mr->fid, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &mr->fid, 0), -FI_ENOSYS);
	ck_assert_ptr_null(fake.core.mr_bound);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}

UNIT_LOOP(open_region_keeps_domain_open, 0, 3)
{
	int refs = duo_domain_of(fx.domain)->refs;
	struct fid_mr *mr;

	ck_assert_int_eq(reg(_i, &mr), 0);
	ck_assert_int_eq(duo_domain_of(fx.domain)->refs, refs + 1);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_int_eq(duo_domain_of(fx.domain)->refs, refs);
}

UNIT_TEST(domain_binds_event_queues_only)
{
	ck_assert_int_eq(fi_domain_bind(fx.domain, &fx.cq->fid, 0),
			 -FI_EINVAL);
}
