/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Each variant of a send uses the path of its destination, with unchanged
 * arguments.
 */

#include <inttypes.h>

#include "fixture.h"

#define DATA 0x1234567890abcdefULL
#define DESC ((void *) 0x1000)

static int context;

static void setup_core(void)
{
	static const struct fixture_attr attr = { .no_shm = true };

	fixture_start(&attr);
	remote = peer_insert(2);
}

static void setup(void)
{
	fixture_setup();
	peer_publish(1);
	peer_publish(3);
	/* local has fi_addr 0 in the AV of shm, and 1 in that of ofi_duo */
	remote = peer_insert(2);
	local = peer_insert(1);
}

enum variant {
	SEND, SENDV, SENDMSG, INJECT, SENDDATA, INJECTDATA,
	TSEND, TSENDV, TSENDMSG, TINJECT, TSENDDATA, TINJECTDATA,
};

static const struct {
	const char *name;
	bool data;
	bool inject;
	bool desc;
} variants[] = {
	[SEND] = { "send", .desc = true },
	[SENDV] = { "sendv", .desc = true },
	[SENDMSG] = { "sendmsg", .data = true, .desc = true },
	[INJECT] = { "inject", .inject = true },
	[SENDDATA] = { "senddata", .data = true, .desc = true },
	[INJECTDATA] = { "injectdata", .data = true, .inject = true },
	[TSEND] = { "tsend", .desc = true },
	[TSENDV] = { "tsendv", .desc = true },
	[TSENDMSG] = { "tsendmsg", .data = true, .desc = true },
	[TINJECT] = { "tinject", .inject = true },
	[TSENDDATA] = { "tsenddata", .data = true, .desc = true },
	[TINJECTDATA] = { "tinjectdata", .data = true, .inject = true },
};

static ssize_t send_as(enum variant variant, const char *text, fi_addr_t to)
{
	size_t len = strlen(text);
	const struct iovec iov[] = {
		{ (void *) text, 1 }, { (void *) (text + 1), len - 1 },
	};
	void *desc[] = { DESC, DESC };
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = 2, .addr = to,
		.context = &context, .data = DATA,
	};
	const struct fi_msg_tagged tagged = {
		.msg_iov = iov, .desc = desc, .iov_count = 2, .addr = to,
		.tag = TAG, .context = &context, .data = DATA,
	};

	switch (variant) {
	case SEND:
		return fi_send(fx.ep, text, len, DESC, to, &context);
	case SENDV:
		return fi_sendv(fx.ep, iov, desc, 2, to, &context);
	case SENDMSG:
		return fi_sendmsg(fx.ep, &msg, FI_REMOTE_CQ_DATA);
	case INJECT:
		return fi_inject(fx.ep, text, len, to);
	case SENDDATA:
		return fi_senddata(fx.ep, text, len, DESC, DATA, to,
				   &context);
	case INJECTDATA:
		return fi_injectdata(fx.ep, text, len, DATA, to);
	case TSEND:
		return fi_tsend(fx.ep, text, len, DESC, to, TAG, &context);
	case TSENDV:
		return fi_tsendv(fx.ep, iov, desc, 2, to, TAG, &context);
	case TSENDMSG:
		return fi_tsendmsg(fx.ep, &tagged, FI_REMOTE_CQ_DATA);
	case TINJECT:
		return fi_tinject(fx.ep, text, len, to, TAG);
	case TSENDDATA:
		return fi_tsenddata(fx.ep, text, len, DESC, DATA, to, TAG,
				    &context);
	default:
		return fi_tinjectdata(fx.ep, text, len, DATA, to, TAG);
	}
}

static void check_sent(enum variant variant, int path, const char *text)
{
	const struct fake_tx *tx = &fake.tx[path];
	const char *name = variants[variant].name;

	ck_assert_msg(tx->count == 1 && !fake.tx[!path].count, "%s: path",
		      name);
	ck_assert_msg(tx->kind == (variant >= TSEND ? DUO_TAGGED : DUO_MSG),
		      "%s: kind", name);
	ck_assert_msg(tx->len == strlen(text) &&
		      !memcmp(tx->payload, text, tx->len), "%s: text", name);
	ck_assert_msg(tx->dest == (path == FI_DUO_LOCAL ? 0 : remote),
		      "%s: address %" PRIu64, name, tx->dest);
	ck_assert_msg(variant < TSEND || tx->tag == TAG, "%s: tag", name);
	ck_assert_msg(!variants[variant].data ||
		      (tx->data == DATA && tx->flags & FI_REMOTE_CQ_DATA),
		      "%s: data", name);
	ck_assert_msg(tx->desc == (path == FI_DUO_CORE &&
				   variants[variant].desc ? DESC : NULL),
		      "%s: desc", name);
}

UNIT_CASE("send", setup, fixture_close);

/* _i / 2 is the variant of the send, and _i % 2 is the path. */
UNIT_ROUNDS(variant_uses_path_of_peer, 0, 2 * ARRAY_SIZE(variants))
{
	enum variant variant = _i / 2;
	int path = _i % 2;
	struct fi_duo_stats stats;

	ck_assert_int_eq(send_as(variant, "hello",
				 path == FI_DUO_LOCAL ? local : remote), 0);
	check_sent(variant, path, "hello");
	if (!variants[variant].inject)
		expect_entry(&context, FI_ADDR_NOTAVAIL);
	expect_nothing();
	stats = stats_now();
	ck_assert_uint_eq(stats.path[path].tx_msgs, 1);
	ck_assert_uint_eq(stats.path[path].tx_bytes, 5);
	ck_assert_uint_eq(stats.path[!path].tx_msgs, 0);
}

UNIT_ROUNDS(invalid_address_is_rejected, 0, ARRAY_SIZE(variants))
{
	ck_assert_int_eq(send_as(_i, "hello", FI_ADDR_UNSPEC), -FI_EINVAL);
	ck_assert_int_eq(send_as(_i, "hello", local + 1), -FI_EINVAL);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
}

UNIT_LOOP(inject_limit_is_smaller_of_paths, 0, 2)
{
	static const char text[] = "0123456789abcdefg";	/* 17 bytes */
	fi_addr_t to = _i == FI_DUO_LOCAL ? local : remote;

	ck_assert_int_eq(fi_tinject(fx.ep, text, 16, to, TAG), 0);
	ck_assert_int_eq(fi_tinject(fx.ep, text, 17, to, TAG), -FI_EMSGSIZE);
	ck_assert_int_eq(fi_inject(fx.ep, text, 17, to), -FI_EMSGSIZE);
	ck_assert_int_eq(fi_tinjectdata(fx.ep, text, 17, 0, to, TAG),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(fi_injectdata(fx.ep, text, 17, 0, to),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(fake.tx[_i].count, 1);
}

/*
 * With the default flag FI_INJECT, a vector may be longer than the inject size.
 * A path would truncate such a message if it got this flag. If _i / 2 is 1, the
 * message is tagged. _i % 2 is the path.
 */
UNIT_LOOP(long_vector_is_not_injected, 0, 4)
{
	static const char text[] = "0123456789abcdefg";	/* 17 bytes */
	int path = _i % 2;

	fixture_ep()->tx.op_flags |= FI_INJECT;
	ck_assert_int_eq(send_as(_i / 2 ? TSENDV : SENDV, text,
				 path == FI_DUO_LOCAL ? local : remote), 0);
	ck_assert_int_eq(fake.tx[path].count, 1);
	ck_assert_uint_eq(fake.tx[path].flags & FI_INJECT, 0);
}

UNIT_LOOP(message_limit_is_enforced, 0, 2)
{
	static const char text[1];
	fi_addr_t to = _i == FI_DUO_LOCAL ? local : remote;
	struct iovec iov[DUO_IOV_LIMIT + 1] = { { (void *) text, 1 } };

	ck_assert_int_eq(fi_tsend(fx.ep, text, (1 << 20) + 1, NULL, to, TAG,
				  NULL), -FI_EMSGSIZE);
	ck_assert_int_eq(fi_send(fx.ep, text, (1 << 20) + 1, NULL, to, NULL),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(fi_tsendv(fx.ep, iov, NULL, DUO_IOV_LIMIT + 1, to,
				   TAG, NULL), -FI_EINVAL);
	ck_assert_int_eq(fake.tx[_i].count, 0);
}

UNIT_ROUNDS(full_shm_returns_eagain, 0, ARRAY_SIZE(variants))
{
	fake.shm.tx_eagain = true;
	ck_assert_int_eq(send_as(_i, "hello", local), -FI_EAGAIN);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, 0);
	fake.shm.tx_eagain = false;
	ck_assert_int_eq(send_as(_i, "hello", local), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
}

UNIT_TEST(application_message_is_not_modified)
{
	void *desc = DESC;
	const struct iovec iov = { (void *) "x", 1 };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = local,
	};
	struct fi_msg_tagged copy = msg;

	ck_assert_int_eq(fi_tsendmsg(fx.ep, &copy, FI_COMPLETION), 0);
	ck_assert_mem_eq(&copy, &msg, sizeof(msg));
	ck_assert_ptr_eq(desc, DESC);
}

static uint64_t flags_at_core(void)
{
	const struct fi_msg_tagged msg = { .addr = remote };

	ck_assert_int_eq(fi_tsendmsg(fx.ep, &msg, FI_MORE | FI_COMPLETION), 0);
	return fake.tx[FI_DUO_CORE].flags;
}

/*
 * With FI_MORE, the core may keep the message until its next operation. But the
 * application's next operation may be local.
 */
UNIT_TEST(core_does_not_wait_for_more)
{
	ck_assert_uint_eq(flags_at_core(), FI_COMPLETION);
}

UNIT_CASE("core alone", setup_core, fixture_close);

UNIT_TEST(core_alone_waits_for_more)
{
	ck_assert_uint_eq(flags_at_core(), FI_COMPLETION | FI_MORE);
}

UNIT_CASE("send", setup, fixture_close);

/*
 * The peer's record is published after the insert of the peer's address, but
 * before the first send. The first send must find the record. _i is the variant
 * of the send.
 */
UNIT_ROUNDS(first_send_chooses_path, 0, ARRAY_SIZE(variants))
{
	fi_addr_t late = peer_insert(9);

	peer_publish(9);
	ck_assert_int_eq(send_as(_i, "hello", late), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
	ck_assert_uint_eq(fake.tx[FI_DUO_LOCAL].dest, 1);
}
