/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Rings on kernels with pages of pages[_i] bytes: a ring has whole pages. */

#include <unistd.h>

#include "unit.h"

static const size_t pages[] = { 4096, 16384, 65536 };

static uint8_t buf[60000], got[sizeof(buf)];

/* Makes near assume this page size. False: the kernel's pages are larger. */
static bool assume(size_t page)
{
	near_page_assume(page);
	return page >= (size_t)sysconf(_SC_PAGESIZE);
}

static void large(struct rig *a, struct near_peer *to_b, struct rig *b)
{
	uint32_t received = b->count, sent = a->count;

	ck_assert_int_eq(rig_send_large(a, to_b, 2, buf, sizeof(buf), buf), 0);
	rig_until(b, a, received + 1);
	memset(got, 0, sizeof(got));
	rig_take(b, received, got, sizeof(got));
	rig_until(b, a, received + 2);
	ck_assert_mem_eq(got, buf, sizeof(buf));
	rig_until(a, b, sent + 1);
}

/* Overfills the ring until it is resized. */
static void grow(struct rig *a, struct near_peer *to_b, struct rig *b)
{
	uint32_t resizes = to_b->resize.count, round;

	for (round = 0; to_b->resize.count == resizes && round < 100; round++) {
		b->count = a->count = 0;
		rig_overfill(a, to_b, 1);
		rig_poll(b, 100);
	}
	b->count = a->count = 0;
	rig_poll(b, 100);
}

UNIT_CASE("page", NULL, rig_close_all);

/*
 * Messages of all lengths arrive in all ring sizes; after the sender's close,
 * no page remains allocated.
 */
UNIT_LOOP(messages_pass_with_large_pages, 0, 3)
{
	struct rig *a, *b;
	struct near_peer *to_b;
	uint32_t tier;
	size_t len;

	if (!assume(pages[_i]))
		return;
	a = rig_open(false);
	b = rig_open(false);
	to_b = rig_peer(a, b);
	rig_fill(buf, sizeof(buf), 7);
	for (;;) {
		for (len = 1; len <= 16384; len = len * 9 / 8 + 1) {
			int ret = rig_send(a, to_b, 1, buf, len);

			if (ret == NEAR_LARGE)
				break;
			ck_assert_int_eq(ret, 0);
			b->count = 0;
			rig_until(b, NULL, 1);
			ck_assert_uint_eq(b->event[0].sum, rig_sum(buf, len));
			near_peer_put(b->port, b->event[0].peer);
		}
		ck_assert_uint_ge(len, 1024);
		b->count = a->count = 0;
		large(a, to_b, b);
		tier = to_b->resize.tier;
		ck_assert_uint_eq(rig_pages(b), near_tier_pages(tier));
		if (tier == NEAR_TIERS - 1)
			break;
		grow(a, to_b, b);
		ck_assert_uint_gt(to_b->resize.tier, tier);
	}
	b->count = 0;
	rig_close(a);
	rig_until_event(b, NULL, 1, RIG_GONE, 0);
	ck_assert_uint_eq(rig_pages(b), 0);
}

UNIT_LOOP(each_sender_gets_a_page, 0, 3)
{
	enum { MANY = 60 };
	struct rig *us, *other[MANY];
	struct near_peer *to[MANY];
	uint32_t i;

	if (!assume(pages[_i]))
		return;
	us = rig_open(false);
	rig_connect_many(other, to, MANY, us, 1000);
	ck_assert_uint_ge(rig_pages(us), MANY);
	ck_assert_uint_le(rig_taken(us), near_memory(NEAR_MEMORY, MANY));
	for (i = 0; i < MANY; i++)
		rig_close(other[i]);
	rig_until(us, NULL, 2 * MANY);
	ck_assert_uint_eq(rig_pages(us), 0);
}

UNIT_TEST(other_page_size_is_rejected)
{
	struct rig *a, *b = rig_open(false);
	struct near_peer *to_b;

	near_page_assume(4 * (size_t)sysconf(_SC_PAGESIZE));
	a = rig_open(false);
	to_b = rig_peer(a, b);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EHOSTUNREACH);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EHOSTUNREACH);
	ck_assert_int_eq(a->warnings, 1);
	rig_close(a);
	near_page_assume((size_t)sysconf(_SC_PAGESIZE));
}
