/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages match wildcard receives as fast as these are posted. A message
 * that waits at the core must still be received.
 */

#include "fixture.h"

#define WINDOW 16
#define OTHER_TAG (TAG + 1)

static struct slot slot[WINDOW];

static void setup(void)
{
	pair_setup();
	/*
	 * With a delay of 0, ofi_duo reads the clock in each poll, and each
	 * poll may post a deferred receive by aging.
	 */
	duo_params.defer_us = 0;
}

/* Posts a wildcard receive. A tagged receive with tag 0 matches any tag. */
static void post(enum duo_rx_kind kind, struct slot *at, uint64_t tag)
{
	memset(at, 0, sizeof(*at));
	ck_assert_int_eq(kind == DUO_MSG ?
			 fi_recv(fx.ep, at->buf, sizeof(at->buf), NULL,
				 FI_ADDR_UNSPEC, at) :
			 fi_trecv(fx.ep, at->buf, sizeof(at->buf), NULL,
				  FI_ADDR_UNSPEC, tag, tag ? 0 : ~0ULL, at),
			 0);
}

/*
 * Delivers a local message, polls, and reposts the matched receive. Returns the
 * source of the received message.
 */
static fi_addr_t poll_busy(enum duo_rx_kind kind)
{
	struct fi_cq_tagged_entry entry;
	struct slot *ended;
	fi_addr_t src;

	arrive(FI_DUO_LOCAL, kind, "near");
	ck_assert_int_eq(fi_cq_readfrom(fx.cq, &entry, 1, &src), 1);
	ended = entry.op_context;
	ck_assert_str_eq(ended->buf, src == remote ? "far" : "near");
	post(kind, ended, entry.tag);
	return src;
}

/*
 * Asserts that the remote message is received within 6 polls. Each poll may
 * post a receive by aging.
 */
static void expect_served(enum duo_rx_kind kind)
{
	int start = fake.shm.polls;

	while (fake.shm.polls - start <= 6) {
		if (poll_busy(kind) == remote)
			return;
	}
	ck_abort_msg("the remote message waits");
}

UNIT_CASE("starve", setup, fixture_close);

static void put_off_all(void)
{
	fixture_ep()->lazy.aged_us = 1;
	fixture_ep()->lazy.all_us = INT64_MAX;
}

/*
 * Aging posts only the oldest receive to the core, because each posted receive
 * might have to be recalled.
 */
UNIT_TEST(aging_posts_only_oldest_receive)
{
	int i, start, turns;

	for (i = 0; i < WINDOW; i++)
		post(DUO_TAGGED, &slot[i], TAG);
	put_off_all();
	start = fake.shm.polls;
	for (i = 0; i < 1000; i++)
		poll_busy(DUO_TAGGED);
	turns = fake.shm.polls - start;
	ck_assert_int_ge(fake.core.posts, turns - 1);
	ck_assert_int_le(fake.core.posts, turns + 1);
	ck_assert_uint_le(fake_core_posted(), 1);
	far("far");
	expect_served(DUO_TAGGED);
}

/*
 * The oldest receive does not match the message at the core. Aging must post
 * later receives, too.
 */
UNIT_TEST(aging_posts_all_receives_in_the_end)
{
	struct slot other[2];

	post(DUO_TAGGED, &slot[0], TAG);
	post(DUO_TAGGED, &slot[1], TAG);
	post(DUO_TAGGED, &other[0], OTHER_TAG);
	post(DUO_TAGGED, &other[1], OTHER_TAG);
	fake_core_arrive(DUO_TAGGED, remote, OTHER_TAG, "far");
	expect_served(DUO_TAGGED);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &other[0]), 0);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &other[1]), 0);
}

/*
 * After aging has posted a receive that the core completes, the core's next
 * messages are received without aging.
 */
UNIT_TEST(delivery_receives_next_without_aging)
{
	int i, start, served = 0;

	for (i = 0; i < WINDOW; i++)
		post(DUO_TAGGED, &slot[i], TAG);
	put_off_all();
	for (i = 0; i < WINDOW; i++)
		far("far");
	expect_served(DUO_TAGGED);
	duo_params.defer_us = 1 << 30;
	start = fake.shm.polls;
	while (fake.shm.polls - start <= 2 * WINDOW)
		served += poll_busy(DUO_TAGGED) == remote;
	ck_assert_int_eq(served, WINDOW - 1);
}

/*
 * Normally the post of a receive grants a core poll budget of 1,024. A post by
 * aging must not.
 */
UNIT_TEST(aging_grants_no_core_poll_budget)
{
	int i;

	duo_params.core_poll_interval = 1 << 20;
	for (i = 0; i < WINDOW; i++)
		post(DUO_TAGGED, &slot[i], TAG);
	put_off_all();
	for (i = 0; i < 1000; i++)
		poll_busy(DUO_TAGGED);
	ck_assert_int_gt(fake.core.posts, 1);
	/* one poll for the post, one for the recall */
	ck_assert_int_le(fake.core.polls, 2 * fake.core.posts);
}

/* Grants a core poll budget without a lock, as a send over the core does. */
static void grant_poll_budget(void)
{
	duo_cq_core_active(fixture_ep()->tx_cq);
}

UNIT_TEST(send_during_aging_keeps_poll_budget)
{
	post(DUO_TAGGED, &slot[0], TAG);
	put_off_all();
	fake.core.on_post = grant_poll_budget;
	while (!fake.core.posts)
		poll_busy(DUO_TAGGED);
	ck_assert_uint_gt(fixture_ep()->rx_cq->core_poll_budget, 0);
}

/*
 * Without a core poll budget, the core is polled once in core_poll_interval
 * reads.
 */
UNIT_TEST(core_is_polled_without_poll_budget)
{
	int i, start = fake.core.polls;

	duo_params.defer_us = 1 << 30;
	duo_params.core_poll_interval = 10;
	post(DUO_TAGGED, &slot[0], TAG);
	for (i = 0; i < 100; i++) {
		fixture_ep()->rx_cq->core_poll_budget = 0;
		poll_busy(DUO_TAGGED);
	}
	ck_assert_int_eq(fake.core.polls - start, 10);
}
