/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* How a port divides its ring budget among the rings of many senders. */

#include "base/proc.h"
#include "unit.h"

#define MANY 63
#define SHARE near_tier_fit(4)	/* size class of an even share */
#define PAGES (MANY * near_tier_pages(SHARE))	/* of the budget */
#define ROUNDS 1000

static struct rig *talker[MANY];
static struct near_peer *to_us[MANY];
static uint8_t buf[20000];
static bool by_hand;	/* the test itself calls run_checks() */

static void setup(void)
{
	rig_fill(buf, sizeof(buf), 5);
}

static struct rig *open_us(void)
{
	return rig_open_with(false, PAGES * near_page_size());
}

UNIT_CASE("budget", setup, rig_close_all);

/*
 * The number of senders is known in advance: all get equal rings at once,
 * without resizes.
 */
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
	ck_assert_uint_le(rig_taken(us), near_memory(PAGES * near_page_size(), MANY));
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

static void poll_us(struct rig *us)
{
	if (by_hand)
		us->port->checked_ms = duo_now_ms();
	rig_poll(us, 1);
	receive_all(us);
}

/* Return the length of the longest eager message in a ring of class SHARE. */
static uint32_t share_max(void)
{
	struct near_place place;

	near_place(NEAR_SENDERS, 0, SHARE, &place);
	return near_data_max(place.data);
}

/*
 * Send 3000 bytes; "us" receives them, and a RESIZE after them. With large pages
 * every ring has space for them: then the sender requests its even share.
 */
static void send_long(struct rig *rig, struct near_peer *peer, struct rig *us)
{
	int i;

	if (rig_send(rig, peer, 1, buf, 3000) == NEAR_LARGE)
		rig_send_large(rig, peer, 1, buf, 3000, NULL);
	else if (peer->resize.tier < SHARE)
		near_too_small(rig->port, peer, share_max());
	for (i = 0; i < 3; i++) {
		poll_us(us);
		rig_poll(rig, 1);
	}
	rig->count = 0;
}

/*
 * The first senders get large rings until further senders need their even
 * share. At the end all rings are equal. At no time do the rings exceed the
 * budget, or leave less than a page for each other sender.
 */
UNIT_TEST(first_senders_shrink_to_even_share)
{
	struct rig *us = open_us();
	uint32_t i, round, share = SHARE, even = 0;

	for (i = 0; i < MANY; i++) {
		talker[i] = rig_open(false);
		to_us[i] = rig_peer(talker[i], us);
		send_long(talker[i], to_us[i], us);
		ck_assert_uint_le(rig_pages(us), PAGES + MANY);
	}
	ck_assert_uint_gt(to_us[0]->resize.tier, share);
	for (round = 0; round < 10000 && even < MANY; round++) {
		even = 0;
		for (i = 0; i < MANY; i++) {
			send_long(talker[i], to_us[i], us);
			even += to_us[i]->resize.tier == share;
		}
	}
	ck_assert_uint_eq(even, MANY);
	ck_assert_uint_eq(rig_pages(us), PAGES);
	for (i = 0; i < MANY; i++)
		rig_close(talker[i]);
	rig_until(us, NULL, MANY);
	ck_assert_uint_eq(rig_pages(us), 0);
}

/* An idle sender gives back memory that other senders need. */
UNIT_TEST(idle_sender_gives_back_memory)
{
	struct rig *us = open_us();
	uint32_t i, share = SHARE;

	for (i = 0; i < MANY; i++) {
		talker[i] = rig_open(false);
		to_us[i] = rig_peer(talker[i], us);
		send_long(talker[i], to_us[i], us);
	}
	ck_assert_uint_gt(to_us[0]->resize.tier, share);
	/*
	 * a rejected sender requests more only some time after memory is free
	 */
	while (to_us[MANY - 1]->resize.tier < share) {
		for (i = 0; i < MANY; i++)
			rig_poll(talker[i], NEAR_TICK_POLLS);
		/* only the last sender still needs memory */
		send_long(talker[MANY - 1], to_us[MANY - 1], us);
	}
	ck_assert_uint_eq(to_us[MANY - 1]->resize.tier, share);
	for (i = 0; i < MANY; i++)
		rig_close(talker[i]);
	rig_until(us, NULL, MANY);
}

/* Open a port and MANY senders, each of which gets its even share. */
static struct rig *all_even(void)
{
	struct rig *us = open_us();
	uint32_t i;

	for (i = 0; i < MANY; i++) {
		talker[i] = rig_open(false);
		rig_peer(us, talker[i]);
	}
	for (i = 0; i < MANY; i++) {
		to_us[i] = rig_peer(talker[i], us);
		send_long(talker[i], to_us[i], us);
	}
	/*
	 * the last sender got less at first, because more senders were possible
	 */
	for (i = 0; i < MANY; i++) {
		send_long(talker[i], to_us[i], us);
		ck_assert_uint_eq(to_us[i]->resize.tier, SHARE);
	}
	return us;
}

static void all_close(struct rig *us)
{
	uint32_t i;

	for (rig_poll(us, 1); us->count; rig_poll(us, 1))
		receive_all(us);
	for (i = 0; i < MANY; i++)
		rig_close(talker[i]);
	rig_until(us, NULL, MANY);
	ck_assert_uint_eq(rig_pages(us), 0);
}

/* Overfill the ring four times, so that the sender may request more. */
static void overfill_repeatedly(uint32_t i, struct rig *us)
{
	rig_overfill(talker[i], to_us[i], 0);
	poll_us(us);
	rig_poll(talker[i], 1);
	ck_assert_uint_le(rig_pages(us), PAGES);
}

/*
 * Return the number of rings, from the first index on, that have another size.
 */
static uint32_t others_than(uint32_t first, uint32_t tier)
{
	uint32_t i, n = 0;

	for (i = first; i < MANY; i++)
		n += to_us[i]->resize.tier != tier;
	return n;
}

/* Run the port's periodic check of 100 ms, and the replies of the senders. */
static void run_checks(struct rig *us)
{
	uint32_t i;

	near_budget_check(us->port);
	for (i = 0; i < MANY; i++)
		near_resize_check(talker[i]->port, to_us[i]);
	poll_us(us);
	for (i = 0; i < MANY; i++)
		near_resize_check(talker[i]->port, to_us[i]);
}

/*
 * All senders have an even share, then only two of them send. These two get the
 * memory of idle rings. When the idle senders send, they get it back.
 */
UNIT_TEST(active_senders_get_idle_memory)
{
	uint32_t i, rounds = 0, most = NEAR_TIERS - 1;
	struct rig *us = all_even();

	by_hand = true;
	while (to_us[0]->resize.tier < most || to_us[1]->resize.tier < most) {
		ck_assert_uint_lt(rounds++, ROUNDS);
		overfill_repeatedly(0, us);
		overfill_repeatedly(1, us);
		run_checks(us);
	}
	while (others_than(0, SHARE)) {
		ck_assert_uint_lt(rounds++, ROUNDS);
		for (i = 0; i < MANY; i++)
			send_long(talker[i], to_us[i], us);
		run_checks(us);
	}
	ck_assert_uint_eq(rig_pages(us), PAGES);
	all_close(us);
}

/*
 * While all senders send, even if seldom, none gets more than its even share.
 */
UNIT_TEST(rare_senders_keep_even_share)
{
	struct rig *us = all_even();
	uint32_t i, round, resizes = 0;

	by_hand = true;
	for (i = 1; i < MANY; i++)
		resizes += to_us[i]->resize.count;
	for (round = 0; round < 30; round++) {
		overfill_repeatedly(0, us);
		for (i = 1; i < MANY && round % 3 == 0; i++)
			rig_send(talker[i], to_us[i], 1, buf, 8);
		run_checks(us);
	}
	ck_assert(rig_rx_ring(us, talker[0])->starved);
	ck_assert_uint_eq(others_than(0, SHARE), 0);
	for (i = 1; i < MANY; i++)
		resizes -= to_us[i]->resize.count;
	ck_assert_uint_eq(resizes, 0);
	ck_assert_uint_le(to_us[0]->resize.count, 8);
	all_close(us);
}

/*
 * Memory is free for a waiting sender: it gets this memory, and no ring has to
 * shrink.
 */
UNIT_TEST(free_memory_goes_to_waiting_sender)
{
	struct rig *us = rig_open_with(false, (MANY + 8) * near_page_size());
	struct near_rx_ring *first;

	talker[0] = rig_open(false);
	talker[1] = rig_open(false);
	to_us[0] = rig_peer(talker[0], us);
	to_us[1] = rig_peer(talker[1], us);
	rig_send(talker[0], to_us[0], 1, buf, 8);
	rig_send(talker[1], to_us[1], 1, buf, 8);
	rig_until(us, NULL, 2);
	receive_all(us);
	first = rig_rx_ring(us, talker[0]);
	ck_assert_uint_gt(first->tier, near_tier_least());
	while (first->idle_checks < 5) {
		rig_send(talker[1], to_us[1], 1, buf, 8);
		poll_us(us);
		near_budget_check(us->port);
	}
	rig_rx_ring(us, talker[1])->starved = true;
	near_budget_check(us->port);
	ck_assert_uint_eq(rig_rx_ring(us, talker[1])->rx.ctl->resize, 1);
	ck_assert_uint_eq(first->rx.ctl->resize, 0);
	ck_assert(!first->shrink_requested);
}
