/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The core reports many entries at once. ofi_duo returns some, drops others,
 * and replaces others by another entry or an error. Entries and their order
 * must not depend on the array size and the format.
 */

#include "fixture.h"

enum { PLAIN, SEND, SILENT, BUFFER, LATER, BROKEN, LAST, CONTEXTS };

static struct slot slot[CONTEXTS];

static const enum fi_cq_format formats[] = {
	FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_TAGGED,
};

#define SIZES 8

/* Posts a receive to the core. Without FI_COMPLETION it has no completion. */
static void post(int i, uint64_t flags)
{
	ck_assert_int_eq(recv_flags(&slot[i], slot[i].buf,
				    sizeof(slot[i].buf), remote, flags), 0);
}

static void post_buffer(int i)
{
	const struct iovec iov = { slot[i].buf, 8 };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = remote,
		.context = &slot[i],
	};
	size_t min = 8;

	ck_assert_int_eq(ep_set(fx.ep, FI_OPT_MIN_MULTI_RECV, min), 0);
	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg,
				    FI_MULTI_RECV | FI_COMPLETION), 0);
}

static void sent(int i)
{
	const struct fi_cq_err_entry entry = {
		.op_context = &slot[i],
		.flags = FI_SEND | FI_TAGGED,
	};

	/* an arbitrary source: cores may report one for sends */
	fake_core_event(NULL, &entry, 3);
}

/* Posts operations, all of which the core completes before the first read. */
static void complete_all(void)
{
	post(PLAIN, FI_COMPLETION);
	post(SILENT, 0);
	post_buffer(BUFFER);
	post(LATER, FI_COMPLETION);
	post(LAST, FI_COMPLETION);
	far("plain");
	sent(SEND);
	far("silent");
	fake_core_arrive(DUO_MSG, remote, 0, "piece");
	far("later");
	fake_core_error(&slot[BROKEN], FI_EIO);
	far("last");
}

static void expect_source(int i, fi_addr_t src)
{
	ck_assert_uint_eq(src, i == SEND ? FI_ADDR_NOTAVAIL : remote);
}

/* Reads all entries. Stores the index of each entry's context in order[]. */
static int read_all(size_t size, enum fi_cq_format format, int *order)
{
	size_t step = format == FI_CQ_FORMAT_TAGGED ?
		      sizeof(struct fi_cq_tagged_entry) :
		      sizeof(struct fi_cq_entry);
	struct fi_cq_tagged_entry array[SIZES];
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry;
	fi_addr_t src[SIZES];
	int count = 0, idle = 0;
	ssize_t i, ret;

	while (idle < 8) {
		ret = fi_cq_readfrom(fx.cq, array, size, src);
		if (ret == -FI_EAVAIL) {
			ck_assert_int_eq(fi_cq_readerr(fx.cq, &err, 0), 1);
			ck_assert_int_eq(err.err, FI_EIO);
			order[count++] = (struct slot *) err.op_context - slot;
		}
		idle = ret == -FI_EAGAIN ? idle + 1 : 0;
		for (i = 0; i < ret; i++) {
			memcpy(&entry, (char *) array + i * step,
			       sizeof(entry));
			order[count] = (struct slot *) entry.op_context - slot;
			expect_source(order[count++], src[i]);
		}
		ck_assert_int_le(count, CONTEXTS);
	}
	return count;
}

UNIT_CASE("core", NULL, NULL);

/* _i / SIZES: index of the format; _i % SIZES: size of the array, minus 1 */
UNIT_ROUNDS(order_is_same_for_any_array_size, 0, SIZES * ARRAY_SIZE(formats))
{
	static const int expected[] = {
		PLAIN, SEND, BUFFER, LATER, BROKEN, LAST
	};
	const struct fixture_attr attr = {
		.rx_bind_flags = FI_SELECTIVE_COMPLETION,
		.format = formats[_i / SIZES],
	};
	int i, order[CONTEXTS + SIZES];

	fixture_start(&attr);
	remote = peer_insert(2);
	complete_all();
	ck_assert_int_eq(read_all(_i % SIZES + 1, attr.format, order),
			 (int) ARRAY_SIZE(expected));
	for (i = 0; i < (int) ARRAY_SIZE(expected); i++)
		ck_assert_int_eq(order[i], expected[i]);
	ck_assert_str_eq(slot[SILENT].buf, "silent");
	ck_assert_int_eq(memcmp(slot[BUFFER].buf, "piece", 5), 0);
	ck_assert_uint_eq(stats_now().path[FI_DUO_CORE].rx_msgs, 5);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	fixture_close();
}

/*
 * The read has an array of more than DUO_CORE_BATCH entries, and no array for
 * sources. ofi_duo then uses its own array for sources, which has space for
 * DUO_CORE_BATCH sources only.
 */
UNIT_TEST(array_above_batch_without_sources_works)
{
	struct fi_cq_tagged_entry array[2 * DUO_CORE_BATCH];
	const struct fixture_attr attr = { 0 };
	size_t count = 0;
	ssize_t ret;
	int i;

	fixture_start(&attr);
	peer_insert(2); /* without a remote peer, reads do not poll the core */
	for (i = 0; i < 2 * DUO_CORE_BATCH; i++)
		sent(SEND);
	while ((ret = fi_cq_read(fx.cq, array, ARRAY_SIZE(array))) > 0) {
		ck_assert_int_le(ret, DUO_CORE_BATCH);
		count += ret;
	}
	ck_assert_uint_eq(count, ARRAY_SIZE(array));
	fixture_close();
}
