/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Reads of a CQ and waits for it: fi_cq_sread, FI_WAIT_FD, errors. */

#include "fixture.h"

static struct slot slot[3];

static void complete(int count)
{
	int i;

	for (i = 0; i < count; i++) {
		post_recv(&slot[i], local, TAG);
		near("12345");
	}
}

UNIT_CASE("pair", pair_setup, fixture_close);

UNIT_TEST(sread_ends_by_timeout_or_completion)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;

	ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, 5), -FI_EAGAIN);
	complete(1);
	ck_assert_int_eq(fi_cq_sreadfrom(fx.cq, &entry, 1, &src, NULL, -1),
			 1);
	ck_assert_uint_eq(src, local);
}

UNIT_TEST(readerr_without_error_returns_eagain)
{
	struct fi_cq_err_entry err = { 0 };

	ck_assert_int_eq(fi_cq_readerr(fx.cq, &err, 0), -FI_EAGAIN);
}

UNIT_TEST(completions_beyond_size_are_kept)
{
	struct fi_cq_tagged_entry entry;
	char context[5000];
	size_t i;

	for (i = 0; i < sizeof(context); i++)
		ck_assert_int_eq(send_x(fx.ep, local, &context[i]), 0);
	for (i = 0; i < sizeof(context); i++) {
		ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
		ck_assert_ptr_eq(entry.op_context, &context[i]);
	}
}

/* A read of 0 entries polls. It returns 0 if entries are available. */
UNIT_TEST(read_of_no_entries_makes_progress)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;

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
}

UNIT_CASE("open", fixture_setup, fixture_close);

/*
 * fi_cq_open() stores the size of the core's CQ in the attributes. Mooncake
 * limits its number of operations by this size. If _i is 1, the application
 * requests a larger size than the core's minimum, otherwise a smaller one.
 */
UNIT_LOOP(open_returns_size_of_core_cq, 0, 2)
{
	struct fi_cq_attr attr = {
		.size = _i ? 2 * FAKE_CQ_SIZE : 1,
		.format = FI_CQ_FORMAT_DATA,
	};
	struct fid_cq *cq;

	ck_assert_int_eq(fi_cq_open(fx.domain, &attr, &cq, NULL), 0);
	ck_assert_uint_eq(attr.size, _i ? 2 * FAKE_CQ_SIZE : FAKE_CQ_SIZE);
	ck_assert_int_eq(attr.format, FI_CQ_FORMAT_DATA);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
}

static void open_cq(enum fi_cq_format format, struct fid_cq **cq)
{
	struct fi_cq_attr attr = { .format = format };

	ck_assert_int_eq(fi_cq_open(fx.domain, &attr, cq, NULL), 0);
}

static int refs_at_close;

static int close_counts_refs(struct fid *fid)
{
	refs_at_close = duo_domain_of(fx.domain)->refs;
	return fake_close(fid);
}

/*
 * Another thread must not be able to close the domain before fi_close() of the
 * CQ has closed the CQs of both paths.
 */
UNIT_LOOP(domain_stays_until_paths_are_closed, 0, FI_DUO_PATH_COUNT)
{
	static struct fi_ops ops = { .close = close_counts_refs };
	struct fid_cq *cq;
	int refs;

	open_cq(FI_CQ_FORMAT_TAGGED, &cq);
	refs = duo_domain_of(fx.domain)->refs;
	duo_cq_of(cq)->path_cq[_i]->fid.ops = &ops;
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	ck_assert_int_eq(refs_at_close, refs);
	ck_assert_int_eq(duo_domain_of(fx.domain)->refs, refs - 1);
}

/* Asserts that no byte of out behind offset "at" was written. */
static void expect_unwritten(const void *out, size_t at, size_t size)
{
	const uint8_t *byte = out;

	for (; at < size; at++)
		ck_assert_uint_eq(byte[at], 0x5a);
}

static const struct {
	enum fi_cq_format format;
	size_t size;
} format_cases[] = {
	{ FI_CQ_FORMAT_UNSPEC, sizeof(struct fi_cq_entry) },
	{ FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

/*
 * A read must not write behind the entry. Applications expect a struct
 * fi_cq_entry for FI_CQ_FORMAT_UNSPEC.
 */
UNIT_LOOP(read_writes_one_entry, 0, ARRAY_SIZE(format_cases))
{
	const struct fi_cq_tagged_entry done = { .op_context = slot };
	size_t size = format_cases[_i].size;
	uint8_t out[2 * sizeof(done)];
	struct fid_cq *cq;

	open_cq(format_cases[_i].format, &cq);
	memset(out, 0x5a, sizeof(out));
	duo_cq_push(duo_cq_of(cq), &done, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fi_cq_read(cq, out, 1), 1);
	ck_assert_mem_eq(out, &done, size);
	expect_unwritten(out, size, sizeof(out));
	ck_assert_int_eq(fi_close(&cq->fid), 0);
}

static const struct {
	uint32_t version;
	size_t size;	/* size of the application's struct fi_cq_err_entry */
} error_cases[] = {
	{ FI_VERSION(1, 4), offsetof(struct fi_cq_err_entry, err_data_size) },
#if DUO_HEADERS(1, 20)
	{ FI_VERSION(1, 19), offsetof(struct fi_cq_err_entry, src_addr) },
#endif
	{ DUO_FI_VERSION, sizeof(struct fi_cq_err_entry) },
};

/*
 * Applications that were built for an older API version have shorter error
 * entries. fi_cq_readerr() must not write behind them.
 */
UNIT_LOOP(readerr_writes_entry_of_api_version, 0, ARRAY_SIZE(error_cases))
{
	size_t size = error_cases[_i].size;
	struct {
		struct fi_cq_err_entry entry;
		uint8_t behind[sizeof(struct fi_cq_err_entry)];
	} out;
	struct fid_cq *cq;

	open_cq(FI_CQ_FORMAT_TAGGED, &cq);
	fx.fabric.fabric_fid.api_version = error_cases[_i].version;
	memset(&out, 0x5a, sizeof(out));
	out.entry.err_data_size = 0;
	duo_cq_push_own_err(duo_cq_of(cq), slot, FI_RECV, TAG, local, FI_EIO);
	if (size <= offsetof(struct fi_cq_err_entry, err_data_size))
		memset(&out.entry.err_data_size, 0x5a,
		       sizeof(out.entry.err_data_size));
	/* not fi_cq_readerr(), which writes src_addr itself in newer headers */
	ck_assert_int_eq(cq->ops->readerr(cq, &out.entry, 0), 1);
	ck_assert_ptr_eq(out.entry.op_context, slot);
	ck_assert_int_eq(out.entry.err, FI_EIO);
	expect_unwritten(&out, size, sizeof(out));
	ck_assert_int_eq(fi_close(&cq->fid), 0);
}
