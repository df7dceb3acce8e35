/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Peeks and claims that the core gets, and invalid ones */

#include "fixture.h"

static struct slot slot;
static int context;

static ssize_t peek(fi_addr_t src, uint64_t flags)
{
	return recv_flags(&context, NULL, 0, src, FI_PEEK | flags);
}

static void expect_idle(void)
{
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live,
			  fixture_ep()->lazy.retired_count);
	ck_assert(TAILQ_EMPTY(&fixture_ep()->rx.claimed));
}

UNIT_CASE("peek", pair_setup, fixture_close);

UNIT_TEST(peek_for_confirmed_source_skips_core)
{
	arrive(FI_DUO_LOCAL, DUO_TAGGED, "1");
	post_recv(&slot, local, TAG);
	expect_recv(&slot, "1", local);
	ck_assert_int_eq(peek(local, 0), 0);
	expect_error(&context, FI_ENOMSG);
	ck_assert_int_eq(fake.core.peeks, 0);
	expect_idle();
}

UNIT_TEST(claim_without_peek_fails)
{
	arrive(FI_DUO_LOCAL, DUO_TAGGED, "1");
	poll_cq(1);
	ck_assert_int_eq(recv_flags(&context, slot.buf, sizeof(slot.buf),
				    local, FI_CLAIM), -FI_EINVAL);
	post_recv(&slot, local, TAG);
	expect_recv(&slot, "1", local);
	expect_idle();
}

UNIT_TEST(busy_core_returns_eagain_for_peek)
{
	fake.core.eagain = 1;
	ck_assert_int_eq(peek(remote, 0), -FI_EAGAIN);
	expect_idle();
}

UNIT_TEST(busy_core_keeps_claimed_message)
{
	arrive(FI_DUO_CORE, DUO_TAGGED, "first");
	ck_assert_int_eq(peek(remote, FI_CLAIM), 0);
	expect_entry(&context, remote);
	fake.core.eagain = 1;
	ck_assert_int_eq(recv_flags(&context, slot.buf, sizeof(slot.buf),
				    remote, FI_CLAIM), -FI_EAGAIN);
	ck_assert_int_eq(recv_flags(&context, slot.buf, sizeof(slot.buf),
				    remote, FI_CLAIM), 0);
	expect_entry(&context, remote);
	expect_idle();
}

UNIT_TEST(invalid_flags_are_rejected)
{
	const struct fi_msg msg = { .addr = FI_ADDR_UNSPEC };

	ck_assert_int_eq(recv_flags(&context, NULL, 0, FI_ADDR_UNSPEC,
				    FI_DISCARD), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	expect_idle();
}
