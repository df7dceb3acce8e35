/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads of a CQ and waits for it: fi_cq_sread, FI_WAIT_FD, errors, many
 * entries.
 */

#include <poll.h>

#include "fixture.h"

static struct slot slot[3];

static void open_with(const struct fixture_attr *attr)
{
	fixture_start(attr);
	pair_insert();
}

static void complete(int count)
{
	int i;

	for (i = 0; i < count; i++) {
		post_recv(&slot[i], local, TAG);
		near("12345");
	}
}

UNIT_CASE("wait", NULL, NULL);

UNIT_TEST(sread_ends_by_timeout_or_completion)
{
	static const struct fixture_attr attr;
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;

	open_with(&attr);
	ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, 5), -FI_EAGAIN);
	complete(1);
	ck_assert_int_eq(fi_cq_sreadfrom(fx.cq, &entry, 1, &src, NULL, -1),
			 1);
	ck_assert_uint_eq(src, local);
	fixture_close();
}

UNIT_CASE("read", NULL, NULL);

UNIT_TEST(readerr_without_error_returns_eagain)
{
	static const struct fixture_attr attr;
	struct fi_cq_err_entry err = { 0 };

	open_with(&attr);
	ck_assert_int_eq(fi_cq_readerr(fx.cq, &err, 0), -FI_EAGAIN);
	fixture_close();
}

/* Many more completions than the CQ's requested size: all are returned. */
UNIT_TEST(completions_beyond_size_are_kept)
{
	static const struct fixture_attr attr;
	struct fi_cq_tagged_entry entry;
	char context[5000];
	size_t i;

	open_with(&attr);
	for (i = 0; i < sizeof(context); i++)
		ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, local, TAG,
					  &context[i]), 0);
	for (i = 0; i < sizeof(context); i++) {
		ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
		ck_assert_ptr_eq(entry.op_context, &context[i]);
	}
	fixture_close();
}

/*
 * A read of 0 entries makes progress, and its result tells whether entries are
 * available.
 */
UNIT_TEST(read_of_no_entries_makes_progress)
{
	const struct fixture_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;

	open_with(&attr);
	ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), -FI_EAGAIN);
	complete(1);
	ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), 0);
	ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), 0);
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
	ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), -FI_EAGAIN);
	fake_core_error(&slot[1], FI_EIO);
	ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(fx.cq, &err, 0), 1);
	ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), -FI_EAGAIN);
	fixture_close();
}

/*
 * fi_cq_open returns the core's CQ size in the attributes: Mooncake limits the
 * number of its operations by this value.
 */
UNIT_LOOP(open_returns_size_of_core_cq, 0, 2)
{
	struct fi_cq_attr attr = {
		.size = _i ? 2 * FAKE_CQ_SIZE : 1,
		.format = FI_CQ_FORMAT_DATA,
	};
	struct fid_cq *cq;

	fixture_setup();
	ck_assert_int_eq(fi_cq_open(fx.domain, &attr, &cq, NULL), 0);
	ck_assert_uint_eq(attr.size, _i ? 2 * FAKE_CQ_SIZE : FAKE_CQ_SIZE);
	ck_assert_int_eq(attr.format, FI_CQ_FORMAT_DATA);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	fixture_close();
}
