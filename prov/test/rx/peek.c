/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_PEEK, FI_CLAIM and FI_DISCARD, on both paths. */

#include "fixture.h"

static struct slot slot;
static int context;

static ssize_t peek(fi_addr_t src, uint64_t flags)
{
	return recv_flags(&context, NULL, 0, src, FI_PEEK | flags);
}

static void expect_peek(int path, size_t len)
{
	struct fi_cq_tagged_entry entry = expect_entry(&context, source(path));

	ck_assert_uint_eq(entry.len, len);
	ck_assert_uint_eq(entry.tag, TAG);
	ck_assert_uint_eq(entry.flags & (FI_RECV | FI_TAGGED),
			  FI_RECV | FI_TAGGED);
}

static void expect_idle(void)
{
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live,
			  fixture_ep()->lazy.spent_count);
	ck_assert(TAILQ_EMPTY(&fixture_ep()->rx.claimed));
}

UNIT_CASE("peek", pair_setup, fixture_close);

UNIT_LOOP(peek_reports, 0, 2)
{
	arrive(_i, DUO_TAGGED, "12345");
	ck_assert_int_eq(peek(FI_ADDR_UNSPEC, 0), 0);
	expect_peek(_i, 5);
	/* as often as it is asked, and then it is received */
	ck_assert_int_eq(peek(source(_i), 0), 0);
	expect_peek(_i, 5);
	post_recv(&slot, source(_i), TAG);
	expect_recv(&slot, "12345", source(_i));
	expect_idle();
}

UNIT_TEST(peek_reports_cq_data)
{
	struct fake_msg *msg = fake_shm_arrive(DUO_TAGGED, local_name, TAG,
					       "x");
	struct fi_cq_tagged_entry entry;

	msg->data = 0x1234567890abcdef;
	msg->flags = FI_REMOTE_CQ_DATA;
	ck_assert_int_eq(peek(local, 0), 0);
	entry = expect_entry(&context, local);
	ck_assert_uint_eq(entry.data, 0x1234567890abcdef);
	ck_assert_uint_ne(entry.flags & FI_REMOTE_CQ_DATA, 0);
	post_recv(&slot, local, TAG);
	entry = expect_entry(&slot, local);
	ck_assert_uint_eq(entry.data, 0x1234567890abcdef);
	ck_assert_uint_ne(entry.flags & FI_REMOTE_CQ_DATA, 0);
}

UNIT_LOOP(peek_finds_nothing, 0, 2)
{
	ck_assert_int_eq(peek(source(_i), 0), 0);
	ck_assert_uint_eq(expect_error(&context, FI_ENOMSG).tag, TAG);
	expect_idle();
}

/* Its source sends over shm: the core need not be asked. */
UNIT_TEST(peek_for_a_confirmed_local)
{
	arrive(FI_DUO_LOCAL, DUO_TAGGED, "1");
	post_recv(&slot, local, TAG);
	expect_recv(&slot, "1", local);
	ck_assert_int_eq(peek(local, 0), 0);
	expect_error(&context, FI_ENOMSG);
	ck_assert_int_eq(fake.core.peeks, 0);
	expect_idle();
}

UNIT_LOOP(peek_does_not_see_what_a_receive_takes, 0, 2)
{
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	arrive(_i, DUO_TAGGED, "mine");
	ck_assert_int_eq(peek(FI_ADDR_UNSPEC, 0), 0);
	expect_recv(&slot, "mine", source(_i));
	expect_error(&context, FI_ENOMSG);
	expect_idle();
}

UNIT_LOOP(peek_and_discard, 0, 2)
{
	arrive(_i, DUO_TAGGED, "12345");
	arrive(_i, DUO_TAGGED, "next");
	ck_assert_int_eq(peek(source(_i), FI_DISCARD), 0);
	expect_peek(_i, 5);
	expect_nothing();	/* one completion, not two */
	post_recv(&slot, source(_i), TAG);
	expect_recv(&slot, "next", source(_i));
	expect_idle();
}

UNIT_LOOP(peek_and_discard_of_nothing_long, 0, 2)
{
	arrive(_i, DUO_TAGGED, "");
	ck_assert_int_eq(peek(source(_i), FI_DISCARD), 0);
	expect_peek(_i, 0);
	expect_idle();
}

/* Claimed, it is nobody else's, and the second one is received first. */
UNIT_LOOP(claim, 0, 2)
{
	arrive(_i, DUO_TAGGED, "first");
	arrive(_i, DUO_TAGGED, "second");
	ck_assert_int_eq(peek(source(_i), FI_CLAIM), 0);
	expect_peek(_i, 5);
	post_recv(&slot, source(_i), TAG);
	expect_recv(&slot, "second", source(_i));
	ck_assert_int_eq(recv_flags(&context, slot.buf, sizeof(slot.buf),
				    source(_i), FI_CLAIM), 0);
	ck_assert_uint_eq(expect_entry(&context, source(_i)).len, 5);
	ck_assert_mem_eq(slot.buf, "first", 5);
	expect_idle();
}

UNIT_LOOP(claim_and_discard, 0, 2)
{
	arrive(_i, DUO_TAGGED, "first");
	ck_assert_int_eq(peek(source(_i), FI_CLAIM), 0);
	expect_peek(_i, 5);
	ck_assert_int_eq(recv_flags(&context, NULL, 0, source(_i),
				    FI_CLAIM | FI_DISCARD), 0);
	expect_entry(&context, source(_i));
	expect_idle();
}

UNIT_LOOP(claim_truncated, 0, 2)
{
	struct fi_cq_err_entry err;

	arrive(_i, DUO_TAGGED, "12345");
	ck_assert_int_eq(peek(source(_i), FI_CLAIM), 0);
	expect_peek(_i, 5);
	memset(&slot, 0, sizeof(slot));
	ck_assert_int_eq(recv_flags(&context, slot.buf, 3, source(_i),
				    FI_CLAIM), 0);
	err = expect_error(&context, FI_ETRUNC);
	ck_assert_uint_eq(err.olen, 2);
	ck_assert_str_eq(slot.buf, "123");
	expect_idle();
}

UNIT_TEST(claim_of_what_was_not_claimed)
{
	arrive(FI_DUO_LOCAL, DUO_TAGGED, "1");
	poll_cq(1);
	ck_assert_int_eq(recv_flags(&context, slot.buf, sizeof(slot.buf),
				    local, FI_CLAIM), -FI_EINVAL);
	post_recv(&slot, local, TAG);
	expect_recv(&slot, "1", local);
	expect_idle();
}

UNIT_TEST(core_is_full_at_a_peek)
{
	fake.core.eagain = 1;
	ck_assert_int_eq(peek(remote, 0), -FI_EAGAIN);
	expect_idle();
}

/* The claim is still there for the next attempt. */
UNIT_TEST(core_is_full_at_a_claim)
{
	arrive(FI_DUO_CORE, DUO_TAGGED, "first");
	ck_assert_int_eq(peek(remote, FI_CLAIM), 0);
	expect_peek(FI_DUO_CORE, 5);
	fake.core.eagain = 1;
	ck_assert_int_eq(recv_flags(&context, slot.buf, sizeof(slot.buf),
				    remote, FI_CLAIM), -FI_EAGAIN);
	ck_assert_int_eq(recv_flags(&context, slot.buf, sizeof(slot.buf),
				    remote, FI_CLAIM), 0);
	expect_entry(&context, remote);
	expect_idle();
}

UNIT_TEST(wrong_flags)
{
	const struct fi_msg msg = { .addr = FI_ADDR_UNSPEC };

	ck_assert_int_eq(recv_flags(&context, NULL, 0, FI_ADDR_UNSPEC,
				    FI_DISCARD), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	expect_idle();
}
