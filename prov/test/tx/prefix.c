/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_MSG_PREFIX: the buffers of calls begin with a prefix, which ofi_duo skips.
 * Messages contain no prefix, so that peers may be endpoints without
 * FI_MSG_PREFIX.
 */

#include "fixture.h"

#define PREFIX 16
#define TEXT "hello"
#define LEN (PREFIX + sizeof(TEXT) - 1)

static char buf[PREFIX + 64];
static int context;

FIXTURE_SETUP(open_prefixed, pair_open, .core = "efa", .prefix = PREFIX);

static void setup(void)
{
	open_prefixed();
	memset(buf, '#', sizeof(buf));
}

/*
 * Calls that send or receive. Each call gets one buffer, or several if it
 * accepts them.
 */
enum call {
	ONE, VECTOR, MSG, INJECT, DATA, INJECTDATA, CALLS,
};

/* Place of the prefix in a message of two buffers */
enum split {
	IN_THE_FIRST,	/* followed by one byte of the message */
	APART,		/* alone in the first buffer */
	SPLITS,
};

/* Returns the number of buffers: 1 if len is below the prefix. */
static size_t split(struct iovec iov[2], enum split how, size_t len)
{
	size_t first = how == APART ? PREFIX : PREFIX + 1;

	if (len < PREFIX)
		first = len;
	iov[0] = (struct iovec) { buf, first };
	iov[1] = (struct iovec) { buf + first, len - first };
	return len < PREFIX ? 1 : 2;
}

static ssize_t send_as(bool tagged, enum call call, enum split how, size_t len,
		       fi_addr_t to)
{
	struct iovec iov[2];
	const size_t count = split(iov, how, len);
	const struct fi_msg msg = {
		.msg_iov = iov, .iov_count = count, .addr = to,
		.context = &context,
	};
	const struct fi_msg_tagged tmsg = {
		.msg_iov = iov, .iov_count = count, .addr = to, .tag = TAG,
		.context = &context,
	};

	switch (call) {
	case ONE:
		return tagged ? fi_tsend(fx.ep, buf, len, NULL, to, TAG,
					 &context) :
				fi_send(fx.ep, buf, len, NULL, to, &context);
	case VECTOR:
		return tagged ? fi_tsendv(fx.ep, iov, NULL, count, to, TAG,
					  &context) :
				fi_sendv(fx.ep, iov, NULL, count, to, &context);
	case MSG:
		return tagged ? fi_tsendmsg(fx.ep, &tmsg, FI_COMPLETION) :
				fi_sendmsg(fx.ep, &msg, FI_COMPLETION);
	case INJECT:
		return tagged ? fi_tinject(fx.ep, buf, len, to, TAG) :
				fi_inject(fx.ep, buf, len, to);
	case DATA:
		return tagged ? fi_tsenddata(fx.ep, buf, len, NULL, 1, to, TAG,
					     &context) :
				fi_senddata(fx.ep, buf, len, NULL, 1, to,
					    &context);
	default:
		return tagged ? fi_tinjectdata(fx.ep, buf, len, 1, to, TAG) :
				fi_injectdata(fx.ep, buf, len, 1, to);
	}
}

static ssize_t recv_as(bool tagged, enum call call, enum split how, size_t len)
{
	struct iovec iov[2];
	const struct fi_msg msg = {
		.msg_iov = iov, .iov_count = split(iov, how, len),
		.addr = FI_ADDR_UNSPEC, .context = &context,
	};
	const struct fi_msg_tagged tmsg = {
		.msg_iov = iov, .iov_count = msg.iov_count, .addr = msg.addr,
		.tag = TAG, .context = &context,
	};

	if (call == ONE)
		return tagged ? fi_trecv(fx.ep, buf, len, NULL, msg.addr, TAG,
					 0, &context) :
				fi_recv(fx.ep, buf, len, NULL, msg.addr,
					&context);
	if (call == VECTOR)
		return tagged ? fi_trecvv(fx.ep, iov, NULL, msg.iov_count,
					  msg.addr, TAG, 0, &context) :
				fi_recvv(fx.ep, iov, NULL, msg.iov_count,
					 msg.addr, &context);
	return tagged ? fi_trecvmsg(fx.ep, &tmsg, FI_COMPLETION) :
			fi_recvmsg(fx.ep, &msg, FI_COMPLETION);
}

UNIT_CASE("prefix", setup, fixture_close);

/* _i is ((call * SPLITS + split) * 2 + path) * 2 + (tagged ? 1 : 0). */
UNIT_ROUNDS(send_skips_prefix, 0, 4 * SPLITS * CALLS)
{
	const int path = _i / 2 % 2;
	const struct fake_tx *tx = &fake.tx[path];

	memcpy(buf + PREFIX, TEXT, sizeof(TEXT));
	ck_assert_int_eq(send_as(_i % 2, _i / 4 / SPLITS, _i / 4 % SPLITS, LEN,
				 source(path)), 0);
	ck_assert_int_eq(tx->count, 1);
	ck_assert_uint_eq(tx->len, LEN - PREFIX);
	ck_assert_mem_eq(tx->payload, TEXT, tx->len);
	ck_assert_uint_eq(stats_now().path[path].tx_bytes, tx->len);
}

UNIT_ROUNDS(receive_skips_prefix, 0, 4 * SPLITS * (MSG + 1))
{
	const int path = _i / 2 % 2;
	struct fi_cq_tagged_entry entry;

	ck_assert_int_eq(recv_as(_i % 2, _i / 4 / SPLITS, _i / 4 % SPLITS,
				 sizeof(buf)), 0);
	poll_cq(2 * LAZY_POLLS);	/* the core has the receive, too */
	arrive(path, _i % 2 ? DUO_TAGGED : DUO_MSG, TEXT);
	entry = expect_entry(&context, source(path));
	ck_assert_uint_eq(entry.len, LEN - PREFIX);
	ck_assert_mem_eq(buf + PREFIX, TEXT, entry.len);
	ck_assert_int_eq(buf[0], '#');
	ck_assert_int_eq(buf[PREFIX - 1], '#');
}

/*
 * The inject limit of 16 bytes does not include the prefix. If _i % 2 is 1, the
 * messages are tagged. _i / 2 is the path.
 */
UNIT_ROUNDS(limits_exclude_prefix, 0, 4)
{
	const fi_addr_t to = source(_i / 2);

	ck_assert_int_eq(send_as(_i % 2, INJECT, 0, PREFIX + 16, to), 0);
	ck_assert_int_eq(send_as(_i % 2, INJECT, 0, PREFIX + 17, to),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(send_as(_i % 2, ONE, 0, PREFIX, to), 0);
	ck_assert_uint_eq(fake.tx[_i / 2].len, 0);
}

UNIT_ROUNDS(buffer_below_prefix_is_rejected, 0, 2 * CALLS)
{
	ck_assert_int_eq(send_as(_i % 2, _i / 2, 0, PREFIX - 1, local),
			 -FI_EINVAL);
	ck_assert_int_eq(recv_as(_i % 2, _i / 2, 0, PREFIX - 1), -FI_EINVAL);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
	expect_nothing();
}

/* A peek has no buffers. */
UNIT_TEST(peek_needs_no_prefix)
{
	near(TEXT);
	poll_cq(1);
	ck_assert_int_eq(recv_flags(&context, NULL, 0, FI_ADDR_UNSPEC,
				    FI_PEEK), 0);
	ck_assert_uint_eq(expect_entry(&context, local).len, LEN - PREFIX);
	ck_assert_int_eq(recv_as(true, ONE, 0, sizeof(buf)), 0);
	expect_entry(&context, local);
	ck_assert_mem_eq(buf + PREFIX, TEXT, LEN - PREFIX);
}
