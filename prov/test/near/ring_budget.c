/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Division of a port's ring budget among many senders */

#include "unit.h"

#define MANY 63
#define SHARE near_tier_fit(4)	/* size class of an even share */
#define PAGES (MANY * near_tier_pages(SHARE))	/* in the ring budget */

static struct rig *talker[MANY];
static struct near_peer *to_us[MANY];
static uint8_t buf[20000];

static void setup(void)
{
	rig_fill(buf, sizeof(buf), 5);
}

static struct rig *open_us(void)
{
	return rig_open_with(false, PAGES * near_page_size());
}

UNIT_CASE("budget", setup, rig_close_all);

UNIT_TEST(known_senders_get_equal_rings)
{
	struct rig *us = open_us();
	uint32_t i;

	for (i = 0; i < MANY; i++) {
		talker[i] = rig_open(false);
		rig_peer(us, talker[i]);
	}
	/* the port itself is not one of its senders */
	rig_peer(us, us);
	for (i = 0; i < MANY; i++) {
		to_us[i] = rig_peer(talker[i], us);
		ck_assert_int_eq(rig_send(talker[i], to_us[i], i, buf, 4096),
				 0);
	}
	rig_until(us, NULL, MANY);
	for (i = 0; i < MANY; i++) {
		ck_assert_uint_eq(us->event[i].sum, rig_sum(buf, 4096));
		ck_assert_uint_eq(to_us[i]->resize.tier, SHARE);
	}
	ck_assert_uint_eq(rig_pages(us), PAGES);
	ck_assert_uint_le(rig_taken(us),
			  near_memory(PAGES * near_page_size(), MANY));
	for (i = 0; i < MANY; i++)
		rig_close(talker[i]);
	rig_until(us, NULL, 2 * MANY);
	ck_assert_uint_eq(rig_pages(us), 0);
}

static void receive_all(struct rig *us)
{
	static uint8_t got[3000];
	struct rig_event *event;

	while (us->count) {
		event = &us->event[--us->count];
		if (event->kind == RIG_RNDV)
			rig_take(us, us->count, got, sizeof(got));
		if (event->kind == RIG_RNDV || event->kind == RIG_MSG)
			near_peer_put(us->port, event->peer);
	}
}

/* Sends 3000 bytes; "us" receives them, and a RESIZE after them. */
static void send_long(struct rig *rig, struct near_peer *peer, struct rig *us)
{
	int i;

	if (rig_send(rig, peer, 1, buf, 3000) == NEAR_LARGE)
		rig_send_large(rig, peer, 1, buf, 3000, NULL);
	for (i = 0; i < 3; i++) {
		rig_poll(us, 1);
		receive_all(us);
		rig_poll(rig, 1);
	}
	rig->count = 0;
}

/* Later senders get one page at least, even if the budget is used up. */
UNIT_TEST(first_senders_get_large_rings)
{
	struct rig *us = open_us();
	uint32_t i, round, pages;

	for (i = 0; i < MANY; i++) {
		talker[i] = rig_open(false);
		to_us[i] = rig_peer(talker[i], us);
		send_long(talker[i], to_us[i], us);
	}
	for (round = 0; round < 20; round++)
		for (i = 0; i < MANY; i++)
			send_long(talker[i], to_us[i], us);
	ck_assert_uint_gt(to_us[0]->resize.tier, SHARE);
	pages = rig_pages(us);
	ck_assert_uint_le(pages, PAGES + MANY);
	ck_assert_uint_ge(pages, PAGES - MANY);
	for (i = 0; i < MANY; i++)
		rig_close(talker[i]);
	rig_until(us, NULL, MANY);
	ck_assert_uint_eq(rig_pages(us), 0);
}
