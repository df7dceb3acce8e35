/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Receives of the provider near: failed peers, multi-receive buffers */

#include "av/map.h"
#include "base/proc.h"
#include "side.h"

#define RECV_MULTI 1000
#define RECV_COUNT (RECV_CQ + 8)

static bool no_memory;	/* aligned_alloc() fails */

void *aligned_alloc(size_t alignment, size_t size)
{
	void *memory;

	return no_memory || posix_memalign(&memory, alignment, size) ?
	       NULL : memory;
}

/*
 * The peer sends this number of unexpected messages, and closes its endpoint.
 * Returns when a receive has failed with FI_ECONNRESET.
 */
static void recv_lose_peer(int messages)
{
	fi_addr_t to = recv_insert(ep[0]);
	char bytes[64] = "sent";

	while (messages--)
		ck_assert(!fi_tinject(ep[1], bytes, sizeof(bytes), to, 1));
	ck_assert(!fi_tinject(ep[1], bytes, 1, to, 2));
	ck_assert(!fi_trecv(ep[0], bytes, 1, NULL, peer, 2, 0, &to));
	ck_assert_int_eq(recv_end(&to), 0);
	ck_assert(!fi_trecv(ep[0], bytes, 1, NULL, peer, 2, 0, &to));
	recv_close(1);
	ck_assert_int_eq(recv_end(&to), FI_ECONNRESET);
}

UNIT_CASE("recv", recv_setup, recv_teardown);

/*
 * A receive with two buffers gets a message that fits into the first buffer. If
 * _i is 0, the message is small. If _i is 1, it is received by an immediate
 * copy.
 */
UNIT_LOOP(message_for_first_buffer_frees_entry, 0, 2)
{
	enum { LEN = 20000 };
	static char from[LEN], to[2][LEN];
	size_t len = _i ? LEN : 8;
	struct iovec iov[2] = { { to[0], LEN }, { to[1], LEN } };
	const struct duo_rx_pool *pool = &duo_ep_of(ep[0])->pool;
	fi_addr_t addr = recv_insert(ep[0]);
	int i;

	memset(from, 'n', LEN);
	for (i = 0; i < 100; i++) {
		ck_assert(!fi_recvv(ep[0], iov, NULL, 2, peer, to));
		ck_assert(!fi_send(ep[1], from, len, NULL, addr, from));
		ck_assert_int_eq(recv_end(to), 0);
		ck_assert_mem_eq(to, from, len);
	}
	ck_assert_uint_eq(pool->live, 0);
}

/*
 * A receive that names a failed peer must fail, because no other process can
 * get the peer's address.
 */
UNIT_TEST(receive_from_failed_peer_fails)
{
	char bytes[64];

	recv_lose_peer(0);
	ck_assert(!fi_trecv(ep[0], bytes, 64, NULL, peer, 1, 0, bytes));
	ck_assert_int_eq(recv_end(bytes), FI_ECONNRESET);
	ck_assert(!fi_recv(ep[0], bytes, 64, NULL, peer, bytes));
	ck_assert_int_eq(recv_end(bytes), FI_ECONNRESET);
}

/* Messages that a failed peer has sent match directed and wildcard receives. */
UNIT_TEST(messages_of_failed_peer_match)
{
	char bytes[64], any[64];

	recv_lose_peer(2);
	ck_assert(!fi_trecv(ep[0], bytes, 64, NULL, peer, 1, 0, bytes));
	ck_assert_int_eq(recv_end(bytes), 0);
	ck_assert_str_eq(bytes, "sent");
	ck_assert(!fi_trecv(ep[0], any, 64, NULL, FI_ADDR_UNSPEC, 1, 0, any));
	ck_assert_int_eq(recv_end(any), 0);
	ck_assert(!fi_trecv(ep[0], bytes, 64, NULL, peer, 1, 0, bytes));
	ck_assert_int_eq(recv_end(bytes), FI_ECONNRESET);
}

UNIT_TEST(multi_receive_from_failed_peer_fails)
{
	char bytes[256];

	recv_lose_peer(0);
	ck_assert(!recv_multi(bytes, sizeof(bytes), peer));
	ck_assert_int_eq(recv_end(bytes), FI_ECONNRESET);
	ck_assert_int_eq(fi_cancel(&ep[0]->fid, bytes), -FI_ENOENT);
}

/*
 * A truncated message in a multi-receive buffer has an error entry. The release
 * of the buffer must follow, because otherwise the application would not repost
 * the buffer.
 */
UNIT_TEST(truncation_releases_multi_receive)
{
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	char bytes[RECV_MULTI], sent[RECV_MULTI] = "";
	ssize_t ret;

	ck_assert(!recv_multi(bytes, sizeof(bytes), FI_ADDR_UNSPEC));
	ck_assert(!fi_inject(ep[1], sent, RECV_MULTI - 100, to));
	ck_assert(!fi_inject(ep[1], sent, 101, to));
	do {
		ret = fi_cq_read(cq[0], &entry, 1);
	} while (ret == -FI_EAGAIN);
	ck_assert_int_eq(ret, 1);
	ck_assert(!(entry.flags & FI_MULTI_RECV));
	ck_assert_int_eq(fi_cq_read(cq[0], &entry, 1), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(cq[0], &err, 0), 1);
	ck_assert_int_eq(err.err, FI_ETRUNC);
	ck_assert_uint_eq(err.olen, 1);
	ck_assert_int_eq(fi_cq_read(cq[0], &entry, 1), 1);
	ck_assert(entry.flags & FI_MULTI_RECV);
	ck_assert_ptr_eq(entry.op_context, bytes);
	ck_assert_int_eq(fi_cancel(&ep[0]->fid, bytes), -FI_ENOENT);
}

/*
 * All messages that a sender has sent before its failure arrive in the buffer.
 * Then the receive fails.
 */
UNIT_TEST(failed_sender_fills_multi_receive)
{
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_tagged_entry entry;
	static char bytes[8 * RECV_COUNT + RECV_MULTI];
	uint64_t end_ms;
	int i;

	for (i = 0; i < RECV_COUNT; i++) {
		ck_assert(!fi_inject(ep[1], bytes, 8, to));
		ck_assert_int_eq(fi_cq_read(cq[0], &entry, 1), -FI_EAGAIN);
	}
	ck_assert(!recv_multi(bytes, sizeof(bytes), peer));
	recv_close(1);
	for (end_ms = duo_now_ms() + 250; duo_now_ms() < end_ms;)
		fi_cq_read(cq[0], &entry, 0);
	for (i = 0; i < RECV_COUNT; i++)
		ck_assert_int_eq(recv_end(bytes), 0);
	ck_assert_int_eq(recv_end(bytes), FI_ECONNRESET);
}

/*
 * With FI_DELIVERY_COMPLETE, an injected message that is too long for a slot
 * must have a completion, whose context is NULL.
 */
UNIT_TEST(long_inject_is_reported)
{
	fi_addr_t to = recv_insert(ep[0]);
	char bytes[NEAR_INJECT];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to };

	ck_assert(!fi_recv(ep[0], bytes, sizeof(bytes), NULL, FI_ADDR_UNSPEC,
			   &to));
	ck_assert(!fi_sendmsg(ep[1], &msg, FI_INJECT | FI_DELIVERY_COMPLETE));
	ck_assert_int_eq(recv_end(&to), 0);
	ck_assert_ptr_null(recv_sent());
}

/*
 * With FI_FENCE, a small send returns -FI_EAGAIN until the large send before it
 * has ended.
 */
UNIT_TEST(default_fence_delays_send)
{
	fi_addr_t to = recv_insert(ep[0]);
	static char bytes[20000];

	ck_assert(!fi_tsend(ep[1], bytes, sizeof(bytes), NULL, to, 1, bytes));
	duo_ep_of(ep[1])->tx.op_flags |= FI_FENCE;
	duo_ep_attend(duo_ep_of(ep[1]));
	ck_assert_int_eq(fi_tsend(ep[1], bytes, 8, NULL, to, 2, &to),
			 -FI_EAGAIN);
	ck_assert(!fi_trecv(ep[0], bytes, sizeof(bytes), NULL, FI_ADDR_UNSPEC,
			    1, 0, &to));
	ck_assert_int_eq(recv_end(&to), 0);
	recv_sent();
	ck_assert(!fi_tsend(ep[1], bytes, 8, NULL, to, 2, &to));
}

/*
 * The error entry of a canceled receive must have the receive's tag, not that
 * of an earlier message.
 */
UNIT_TEST(canceled_receive_reports_own_tag)
{
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_err_entry err = { 0 };
	char bytes[20000];

	ck_assert(!fi_trecv(ep[0], bytes, sizeof(bytes), NULL, FI_ADDR_UNSPEC,
			    7, 0, &to));
	ck_assert(!fi_tsend(ep[1], bytes, sizeof(bytes), NULL, to, 7, bytes));
	recv_sent();
	ck_assert_int_eq(recv_end(&to), 0);
	ck_assert(!fi_trecv(ep[0], bytes, 8, NULL, FI_ADDR_UNSPEC, 9, 0, &err));
	ck_assert(!fi_cancel(&ep[0]->fid, &err));
	ck_assert_int_eq(fi_cq_readerr(cq[0], &err, 0), 1);
	ck_assert_int_eq(err.err, FI_ECANCELED);
	ck_assert_uint_eq(err.tag, 9);
}

/*
 * The sender removes the receiver's address and inserts it again, after (_i is
 * 0) or before (1) the receiver reads the first message. Neither side must
 * regard the other as failed: messages must still arrive, in both directions.
 */
UNIT_LOOP(reinserted_peer_has_not_failed, 0, 2)
{
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_tagged_entry entry;
	char bytes[64] = "one", in[64];
	uint64_t end_ms;
	int ret;

	ck_assert(!fi_tinject(ep[1], bytes, 8, to, 1));
	if (_i) {
		/* frees the first ring, with unread messages in it */
		ck_assert(!fi_av_remove(av, &to, 1, 0));
		to = recv_insert(ep[0]);
	}
	ck_assert(!fi_trecv(ep[0], in, 64, NULL, peer, 1, 0, in));
	if (!_i) {
		ck_assert_int_eq(recv_end(in), 0);
		ck_assert(!fi_av_remove(av, &to, 1, 0));
		for (end_ms = duo_now_ms() + 250; duo_now_ms() < end_ms;)
			ck_assert_int_eq(fi_cq_read(cq[0], &entry, 1),
					 -FI_EAGAIN);
		to = recv_insert(ep[0]);
	}
	ck_assert(!fi_tinject(ep[1], bytes, 8, to, 5));
	if (_i)
		ck_assert_int_eq(recv_end(in), 0);
	ck_assert(!fi_trecv(ep[0], in, 64, NULL, peer, 5, 0, in));
	ck_assert_int_eq(recv_end(in), 0);
	for (end_ms = duo_now_ms() + 250; duo_now_ms() < end_ms;) {
		fi_cq_read(cq[0], &entry, 1);
		fi_cq_read(cq[1], &entry, 1);
	}
	do {
		ret = (int)fi_tinject(ep[0], bytes, 8, peer, 6);
	} while (ret == -FI_EAGAIN);
	ck_assert_int_eq(ret, 0);
	ck_assert(!fi_tinject(ep[1], bytes, 8, to, 7));
	ck_assert(!fi_trecv(ep[0], in, 64, NULL, peer, 7, 0, in));
	ck_assert_int_eq(recv_end(in), 0);
	ck_assert(!fi_trecv(ep[0], in, 64, NULL, peer, 8, 0, in));
	recv_close(1);
	ck_assert_int_eq(recv_end(in), FI_ECONNRESET);
}

/* Inserts an address of another version of near, or of another host. */
static fi_addr_t insert_foreign(bool version)
{
	struct near_addr name;
	size_t len = sizeof(name);
	fi_addr_t addr;

	ck_assert(!fi_getname(&ep[1]->fid, &name, &len));
	name.pid = INT32_MAX;
	if (version)
		name.layout--;
	else
		name.host++;
	ck_assert_int_eq(fi_av_insert(av, &name, 1, &addr, 0, NULL), 1);
	return addr;
}

/* -FI_EHOSTUNREACH must be returned, not the error of a peer failure. */
UNIT_LOOP(send_to_foreign_address_fails, 0, 2)
{
	fi_addr_t to = insert_foreign(_i);
	char bytes[8] = "";

	ck_assert_int_eq(fi_tsend(ep[0], bytes, 8, NULL, to, 1, NULL),
			 -FI_EHOSTUNREACH);
}

/*
 * A receive that names an address from insert_foreign() must fail like a
 * receive that names a failed peer. If _i < 2, a send to this address fails
 * first. If _i is odd, the address belongs to another version of near,
 * otherwise to another host.
 */
UNIT_LOOP(receive_from_foreign_address_fails, 0, 4)
{
	fi_addr_t to = insert_foreign(_i & 1);
	char bytes[8] = "";

	if (_i < 2)
		ck_assert_int_eq(fi_tsend(ep[0], bytes, 8, NULL, to, 1, NULL),
				 -FI_EHOSTUNREACH);
	ck_assert(!fi_trecv(ep[0], bytes, 8, NULL, to, 1, 0, bytes));
	ck_assert_int_eq(recv_end(bytes), FI_ECONNRESET);
}

/*
 * The application inserts an address while there is no memory for a peer. Sends
 * to the address, and receives that name it, must return -FI_EAGAIN until there
 * is memory. Then they must work.
 */
UNIT_LOOP(inserted_without_memory_is_retried, 0, 2)
{
	char bytes[64] = "late", in[64];
	fi_addr_t to;

	no_memory = true;
	to = recv_insert(ep[0]);
	ck_assert_int_eq(fi_tinject(ep[1], bytes, 64, to, 1), -FI_EAGAIN);
	ck_assert_int_eq(fi_trecv(ep[0], in, 64, NULL, to, 1, 0, in),
			 -FI_EAGAIN);
	no_memory = false;
	if (_i)		/* the message arrives first */
		ck_assert(!fi_tinject(ep[0], bytes, 64, to, 1));
	ck_assert(!fi_trecv(ep[0], in, 64, NULL, to, 1, 0, in));
	if (!_i)
		ck_assert(!fi_tinject(ep[0], bytes, 64, to, 1));
	ck_assert_int_eq(recv_end(in), 0);
	ck_assert_str_eq(in, bytes);
}

/*
 * The application inserts the sender's address while there is no memory for a
 * peer. When there is memory again, a message of this sender must match a
 * receive from any source, and its completion must have the sender's address.
 */
UNIT_TEST(source_inserted_without_memory_is_found_later)
{
	fi_addr_t from, src = FI_ADDR_NOTAVAIL, to = recv_insert(ep[0]);
	struct fi_cq_tagged_entry entry;
	char in[8];

	ck_assert(!fi_av_remove(av, &peer, 1, 0));
	no_memory = true;
	from = recv_insert(ep[1]);
	duo_map_scan(duo_ep_of(ep[0]));
	no_memory = false;
	ck_assert(!fi_tinject(ep[1], "late", 5, to, 1));
	ck_assert(!fi_trecv(ep[0], in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, in));
	while (fi_cq_readfrom(cq[0], &entry, 1, &src) == -FI_EAGAIN)
		;
	ck_assert_uint_eq(src, from);
}

/*
 * The sender sends more messages than a poll consumes, removes the receiver's
 * address, inserts it again, and sends more. The receiver does not poll
 * meanwhile. The messages must arrive in the order of sending.
 */
UNIT_TEST(reinserted_receiver_gets_order)
{
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_tagged_entry entry;
	uint32_t sent = 0, i;
	char bytes[64] = "";
	int round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < NEAR_BURST + 6; i++)
			if (!fi_tinject(ep[1], bytes, 8, to, sent))
				sent++;
		ck_assert(!fi_av_remove(av, &to, 1, 0));
		to = recv_insert(ep[0]);
	}
	ck_assert_uint_ge(sent, 2 * NEAR_BURST);
	for (i = 0; i < sent; i++) {
		ck_assert(!fi_trecv(ep[0], bytes, 64, NULL, FI_ADDR_UNSPEC, 0,
				    UINT64_MAX, bytes));
		while (fi_cq_read(cq[0], &entry, 1) == -FI_EAGAIN)
			;
		ck_assert_uint_eq(entry.tag, i);
	}
}

/* fi_av(3): an insert uses the lowest free index of the table. */
UNIT_TEST(insert_uses_lowest_free_index)
{
	fi_addr_t addr[4];
	int i;

	for (i = 0; i < 4; i++) {
		addr[i] = recv_insert(ep[0]);
		ck_assert_uint_eq(addr[i], addr[0] + i);
	}
	ck_assert(!fi_av_remove(av, &addr[0], 1, 0));
	ck_assert(!fi_av_remove(av, &addr[2], 1, 0));
	ck_assert_uint_eq(recv_insert(ep[0]), addr[0]);
	ck_assert_uint_eq(recv_insert(ep[0]), addr[2]);
	ck_assert_uint_eq(recv_insert(ep[0]), addr[3] + 1);
}
