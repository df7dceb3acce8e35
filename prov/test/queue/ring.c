/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* queue/ring.h: entry formats, wrap-around, growth, and the list of errors */

#include <rdma/fi_errno.h>

#include "unit.h"

#define ENTRY_BYTES 64

static struct duo_ring ring;
static struct duo_err_list errs;

static void setup(void)
{
	ck_assert_int_eq(duo_ring_init(&ring, 1), 0);
	duo_err_init(&errs);
}

static void teardown(void)
{
	duo_ring_fini(&ring);
	duo_err_fini(&errs);
}

static struct fi_cq_tagged_entry entry_of(uint64_t n)
{
	return (struct fi_cq_tagged_entry) {
		.op_context = (void *) (uintptr_t) (n + 1),
		.flags = n + 2,
		.len = n + 3,
		.buf = (void *) (uintptr_t) (n + 4),
		.data = n + 5,
		.tag = n + 6,
	};
}

static void push(uint64_t n)
{
	const struct fi_cq_tagged_entry entry = entry_of(n);

	ck_assert_int_eq(duo_ring_push(&ring, &entry, n + 100), 0);
}

static void expect(uint64_t n)
{
	const struct fi_cq_tagged_entry want = entry_of(n);
	struct fi_cq_tagged_entry got;
	fi_addr_t src;

	ck_assert_uint_eq(duo_ring_read(&ring, FI_CQ_FORMAT_TAGGED, &got, 1,
					&src), 1);
	ck_assert_mem_eq(&got, &want, sizeof(got));
	ck_assert_uint_eq(src, n + 100);
}

static const struct {
	const char *name;
	enum fi_cq_format format;
	size_t size;
} format_cases[] = {
	{ "context", FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ "msg", FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ "data", FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ "tagged", FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

UNIT_CASE("ring", setup, teardown);

/*
 * Entries are stored in the caller's array, in its format. Nothing may be
 * written behind them.
 */
UNIT_LOOP(entries_are_packed_in_format, 0, ARRAY_SIZE(format_cases))
{
	size_t size = format_cases[_i].size;
	uint8_t buf[3 * ENTRY_BYTES];
	fi_addr_t src[3];
	uint64_t n;

	memset(buf, 0xa5, sizeof(buf));
	for (n = 0; n < 3; n++)
		push(n);
	ck_assert_uint_eq(duo_ring_read(&ring, format_cases[_i].format, buf, 2,
					src), 2);
	for (n = 0; n < 2; n++) {
		const struct fi_cq_tagged_entry want = entry_of(n);

		ck_assert_msg(!memcmp(buf + n * size, &want, size), "%s",
			      format_cases[_i].name);
		ck_assert_uint_eq(src[n], n + 100);
	}
	ck_assert_msg(buf[2 * size] == 0xa5, "%s: written beyond",
		      format_cases[_i].name);
	expect(2);
	ck_assert(duo_ring_empty(&ring));
}

UNIT_TEST(empty_ring_returns_nothing)
{
	struct fi_cq_tagged_entry entry;

	ck_assert(duo_ring_empty(&ring));
	ck_assert_uint_eq(duo_ring_read(&ring, FI_CQ_FORMAT_TAGGED, &entry, 1,
					NULL), 0);
	push(1);
	ck_assert_uint_eq(duo_ring_read(&ring, FI_CQ_FORMAT_TAGGED, &entry, 0,
					NULL), 0);
	ck_assert_uint_eq(duo_ring_read(&ring, FI_CQ_FORMAT_TAGGED, &entry, 9,
					NULL), 1);
}

UNIT_TEST(indexes_wrap_around)
{
	uint32_t size = ring.size;
	uint64_t n, read = 0;

	ring.head = ring.tail = UINT32_MAX - size / 2;
	for (n = 0; n < 3 * size; n++) {
		push(n);
		if (n >= size / 2)
			expect(read++);
	}
	ck_assert_uint_eq(ring.size, size);
	while (read < n)
		expect(read++);
	ck_assert(duo_ring_empty(&ring));
}

UNIT_TEST(growth_keeps_order)
{
	uint32_t size = ring.size;
	uint64_t n, read = 0;

	for (n = 0; n < 10; n++)
		push(n);
	while (read < 7)
		expect(read++);
	for (; n < 5 * size; n++)
		push(n);
	ck_assert_uint_ge(ring.size, 4 * size);
	while (read < n)
		expect(read++);
	ck_assert(duo_ring_empty(&ring));
}

static const struct {
	size_t hint;
	uint32_t size;
} size_cases[] = {
	{ 0, 64 }, { 1, 64 }, { 64, 64 }, { 65, 128 }, { 1000, 1024 },
};

UNIT_LOOP(size_is_rounded_up, 0, ARRAY_SIZE(size_cases))
{
	struct duo_ring sized;

	ck_assert_int_eq(duo_ring_init(&sized, size_cases[_i].hint), 0);
	ck_assert_uint_eq(sized.size, size_cases[_i].size);
	duo_ring_fini(&sized);
}

UNIT_TEST(growth_is_limited)
{
	const struct fi_cq_tagged_entry entry = entry_of(0);
	struct duo_ring full = { .size = 1U << 30, .tail = 1U << 30 };

	ck_assert_int_eq(duo_ring_push(&full, &entry, 0), -FI_ENOMEM);
	ck_assert_uint_eq(full.tail - full.head, full.size);
}

static void push_err(int err, void *data, size_t size, int path)
{
	const struct fi_cq_err_entry entry = {
		.err = err,
		.err_data = data,
		.err_data_size = size,
	};

	duo_err_push(&errs, &ring, &entry, path);
}

UNIT_CASE("errors", setup, teardown);

UNIT_TEST(errors_in_order_with_their_path)
{
	struct fi_cq_err_entry entry = { 0 };
	uint8_t data[DUO_ERR_DATA_MAX];

	ck_assert(!duo_err_due(&errs, &ring));
	ck_assert(duo_err_none(&errs));
	push_err(FI_EIO, NULL, 0, FI_DUO_LOCAL);
	push_err(FI_ETRUNC, NULL, 0, -1);
	push_err(FI_ENOMSG, NULL, 0, FI_DUO_CORE);
	ck_assert(duo_err_due(&errs, &ring));
	ck_assert_int_eq(duo_err_pop(&errs, &entry, data), FI_DUO_LOCAL);
	ck_assert_int_eq(entry.err, FI_EIO);
	ck_assert_int_eq(duo_err_pop(&errs, &entry, data), -1);
	ck_assert_int_eq(entry.err, FI_ETRUNC);
	ck_assert_int_eq(duo_err_pop(&errs, &entry, data), FI_DUO_CORE);
	ck_assert_int_eq(entry.err, FI_ENOMSG);
	ck_assert(!duo_err_due(&errs, &ring));
}

/*
 * Error data of fi_cq_readerr(3). If err_data_size is 0, err_data must point to
 * the provider's buffer ("lent"). Otherwise the bytes that fit are copied to
 * the caller's buffer.
 */
static const struct {
	const char *name;
	size_t given, space, kept;
	bool lent;
} data_cases[] = {
	{ "no data, no space", 0, 0, 0, false },
	{ "no data, space", 0, 16, 0, false },
	{ "data lent", 16, 0, 16, true },
	{ "data copied", 16, 16, 16, false },
	{ "data copied, space left", 16, 32, 16, false },
	{ "data copied, cut to the space", 16, 4, 4, false },
	{ "more than is kept", 300, 0, DUO_ERR_DATA_MAX, true },
	{ "more than is kept, copied", 300, 300, DUO_ERR_DATA_MAX, false },
};

UNIT_LOOP(error_data_fits_caller, 0, ARRAY_SIZE(data_cases))
{
	const char *name = data_cases[_i].name;
	size_t i, kept = data_cases[_i].kept, space = data_cases[_i].space;
	uint8_t lent[DUO_ERR_DATA_MAX], own[400], given[400];
	struct fi_cq_err_entry entry = {
		.err_data = space ? own : NULL,
		.err_data_size = space,
	};
	void *want = data_cases[_i].lent ? lent : space ? own : NULL;

	for (i = 0; i < sizeof(given); i++)
		given[i] = i;
	memset(own, 0xa5, sizeof(own));
	push_err(FI_EIO, data_cases[_i].given ? given : NULL,
		 data_cases[_i].given, FI_DUO_CORE);
	/* the error list must have its own copy of the error data */
	memset(given, 0, sizeof(given));

	ck_assert_int_eq(duo_err_pop(&errs, &entry, lent), FI_DUO_CORE);
	ck_assert_msg(entry.err_data_size == kept, "%s: %zu", name,
		      entry.err_data_size);
	ck_assert_msg(entry.err_data == want, "%s: whose buffer", name);
	for (i = 0; i < kept; i++)
		ck_assert_msg(((uint8_t *) entry.err_data)[i] == (uint8_t) i,
			      "%s: byte %zu", name, i);
	for (i = space ? kept : 0; i < sizeof(own); i++)
		ck_assert_msg(own[i] == 0xa5, "%s: written beyond", name);
}

/*
 * An overrun is reported after all other errors, and then at each further read.
 */
UNIT_TEST(overrun_is_permanent)
{
	struct fi_cq_err_entry entry = { 0 };
	uint8_t data[DUO_ERR_DATA_MAX];
	int i;

	push_err(FI_EIO, NULL, 0, FI_DUO_LOCAL);
	duo_err_overrun(&errs);
	ck_assert_int_eq(duo_err_pop(&errs, &entry, data), FI_DUO_LOCAL);
	for (i = 0; i < 2; i++) {
		ck_assert(duo_err_due(&errs, &ring));
		ck_assert_int_eq(duo_err_pop(&errs, &entry, data), -1);
		ck_assert_int_eq(entry.err, FI_EOVERRUN);
	}
}

/* An error is returned after earlier completions and before later ones. */
UNIT_TEST(error_keeps_its_position)
{
	struct fi_cq_err_entry entry = { 0 };
	uint8_t data[DUO_ERR_DATA_MAX];
	uint32_t size = ring.size;
	uint64_t n, read = 0;

	ring.head = ring.tail = UINT32_MAX - 2;	/* wraps around in this test */
	for (n = 0; n < 5; n++)
		push(n);
	push_err(FI_EIO, NULL, 0, FI_DUO_CORE);
	ck_assert_uint_eq(duo_err_after(&errs, &ring), 5);
	ck_assert(!duo_err_due(&errs, &ring));
	for (; n < 3 * size; n++)
		push(n);
	ck_assert_uint_eq(duo_err_after(&errs, &ring), 5);
	while (read < 5) {
		ck_assert(!duo_err_due(&errs, &ring));
		expect(read++);
	}
	ck_assert(duo_err_due(&errs, &ring));
	ck_assert_uint_eq(duo_err_after(&errs, &ring), 0);
	ck_assert_int_eq(duo_err_pop(&errs, &entry, data), FI_DUO_CORE);
	ck_assert(!duo_err_due(&errs, &ring));
	ck_assert_uint_eq(duo_err_after(&errs, &ring), n - read);
	while (read < n)
		expect(read++);
}

UNIT_TEST(overrun_follows_kept_entries)
{
	push(0);
	duo_err_overrun(&errs);
	ck_assert(!duo_err_due(&errs, &ring));
	expect(0);
	ck_assert(duo_err_due(&errs, &ring));
}

UNIT_TEST(errors_are_freed)
{
	int i;

	for (i = 0; i < 100; i++)
		push_err(FI_EIO, NULL, 0, FI_DUO_LOCAL);
	/*
	 * duo_err_fini() in the teardown must free the errors: LeakSanitizer
	 * checks
	 */
}
