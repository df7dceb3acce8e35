/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Receives that fail or are rejected, and the statistics of receives */

#include "fixture.h"

static struct slot slot[3];

static void expect_idle(void)
{
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live,
			  fixture_ep()->lazy.retired_count);
}

UNIT_CASE("receive", pair_setup, fixture_close);

/* efa reports a truncated receive twice; the application gets one error. */
UNIT_TEST(second_truncation_report_is_dropped)
{
	struct fi_cq_err_entry again = { .err = FI_ETRUNC };
	int i;

	ck_assert_int_eq(recv_flags(&slot[0], slot[0].buf, 4, remote, 0), 0);
	arrive(FI_DUO_CORE, DUO_TAGGED, "0123456789");
	expect_error(&slot[0], FI_ETRUNC);
	again.op_context = TAILQ_FIRST(&fixture_ep()->lazy.retired);
	ck_assert_ptr_nonnull(again.op_context);

	/* the second report must not fail one of the next receives */
	for (i = 1; i < 3; i++)
		ck_assert_int_eq(recv_flags(&slot[i], slot[i].buf, 4, remote,
					    0), 0);
	fake_core_event(NULL, &again, remote);
	again.err = 0;
	fake_core_event(NULL, &again, remote);
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->match[DUO_TAGGED].posted_count, 2);
}

#define TOO_LARGE ((size_t) 1 << 62)	/* bytes, more than any memory */

/*
 * The message does not fit in its receive, and no memory is left for a buffer
 * of the message's size. The message must stay, and match a longer receive. If
 * _i is 1, the sender is published after the insert of its address. The message
 * is then unresolved at first: ofi_duo must look up its sender before it can
 * match the message.
 */
UNIT_LOOP(failed_truncation_keeps_message, 0, 2)
{
	const char *from = local_name;
	fi_addr_t src = _i ? peer_insert(3) : local;
	int i;

	for (i = 0; i < 3; i++) {
		memset(&slot[i], 0, sizeof(slot[i]));
		ck_assert_int_eq(recv_flags(&slot[i], slot[i].buf,
					    i < 2 ? 4 : TOO_LARGE,
					    FI_ADDR_UNSPEC, 0), 0);
	}
	if (_i)
		from = peer_publish(3);
	fake_shm_arrive(DUO_TAGGED, from, TAG, "hello")->reported_len =
		TOO_LARGE;
	expect_error(&slot[0], FI_ENOMEM);
	expect_error(&slot[1], FI_ENOMEM);
	expect_recv(&slot[2], "hello", src);
	expect_idle();
}

UNIT_TEST(receive_without_memory_fails)
{
	ck_assert_int_eq(recv_flags(&slot[0], slot[0].buf, 4, local, 0), 0);
	fake_shm_arrive(DUO_TAGGED, local_name, TAG, "hello")->reported_len =
		TOO_LARGE;
	expect_error(&slot[0], FI_ENOMEM);
	ck_assert_int_eq(recv_flags(&slot[1], slot[1].buf, 4, local, 0),
			 -FI_ENOMEM);
	memset(&slot[2], 0, sizeof(slot[2]));
	ck_assert_int_eq(recv_flags(&slot[2], slot[2].buf, TOO_LARGE, local,
				    0), 0);
	expect_recv(&slot[2], "hello", local);
	expect_idle();
}

UNIT_TEST(too_many_buffers_are_rejected)
{
	struct iovec iov[DUO_IOV_LIMIT + 1] = { { slot, 1 } };

	ck_assert_int_eq(fi_trecvv(fx.ep, iov, NULL, DUO_IOV_LIMIT + 1, local,
				   TAG, 0, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_trecvv(fx.ep, NULL, NULL, 1, local, TAG, 0, NULL),
			 -FI_EINVAL);
	expect_idle();
}

/*
 * An error of shm has no flags, tag or source. So ofi_duo copies those of the
 * message. If _i is 1, the receive is a wildcard, otherwise it names the
 * source.
 */
UNIT_LOOP(shm_error_fails_receive, 0, 2)
{
	fi_addr_t src = peer_insert(3);
	struct fi_cq_err_entry err;

	ck_assert_uint_ne(src, 0);
	fake.shm.rx_err = FI_EIO;
	post_recv(&slot[0], _i ? FI_ADDR_UNSPEC : src, TAG);
	fake_shm_arrive(DUO_TAGGED, peer_publish(3), TAG, "1");
	err = expect_error(&slot[0], FI_EIO);
	ck_assert_uint_eq(err.flags, FI_RECV | FI_TAGGED);
	ck_assert_uint_eq(err.tag, TAG);
	ck_assert_uint_eq(err.src_addr, src);
	ck_assert_ptr_nonnull(fi_cq_strerror(fx.cq, err.prov_errno, NULL, NULL,
					     0));
	expect_idle();
}

/*
 * prov_errno of an error of the core is the core's. So fi_cq_strerror() must
 * return the core's text.
 */
UNIT_TEST(core_error_has_core_text)
{
	struct fi_cq_err_entry err;

	fake_core_error(&slot[0], FI_EIO);
	err = expect_error(&slot[0], FI_EIO);
	ck_assert_str_eq(fi_cq_strerror(fx.cq, err.prov_errno, NULL, NULL, 0),
			 "the core's text");
}

UNIT_TEST(source_beyond_table_is_rejected)
{
	const fi_addr_t large = DUO_AV_MAX;
	const struct fi_msg msg = { .addr = large };

	ck_assert_int_eq(try_recv(&slot[0], large, TAG), -FI_EINVAL);
	ck_assert_int_eq(fi_recv(fx.ep, slot[0].buf, sizeof(slot[0].buf),
				 NULL, large, &slot[0]), -FI_EINVAL);
	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, 0), -FI_EINVAL);
	ck_assert_int_eq(recv_flags(&slot[0], NULL, 0, large, FI_PEEK),
			 -FI_EINVAL);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

UNIT_LOOP(statistics_count_receives, 0, 2)
{
	struct fi_duo_stats stats;

	arrive(_i, DUO_TAGGED, "12345");
	poll_cq(1);
	post_recv(&slot[0], source(_i), TAG);
	expect_recv(&slot[0], "12345", source(_i));
	stats = stats_now();
	ck_assert_uint_eq(stats.path[_i].rx_msgs, 1);
	ck_assert_uint_eq(stats.path[_i].rx_bytes, 5);
	ck_assert_uint_eq(stats.path[!_i].rx_msgs, 0);
	ck_assert_uint_eq(stats.unexpected, _i == FI_DUO_LOCAL);
	ck_assert_uint_eq(stats.core_posted, _i == FI_DUO_CORE);
	ck_assert_uint_gt(stats.core_polls, 0);
}
