/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Many unexpected messages, up to 80 MiB or 70,000 large messages. MPI permits
 * a program to send all of them before the first receive. So near must accept
 * all of them.
 */

#include "side.h"

#define FLOOD_BYTES (80 << 20)
#define FLOOD_LEN 4000
#define FLOOD_MANY 70000	/* number of receives, or of large messages */
/* number of consecutive failed sends after which the test fails */
#define FLOOD_RETRIES 1000

static char out[FLOOD_LEN], in[FLOOD_LEN];

static void flood_setup(void)
{
	duo_params.cma = 0;
	recv_setup();
}

/* Reads the CQ of endpoint i; true if there was a completion. */
static bool flood_read(int i)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_read(cq[i], &entry, 1);

	/* no ck_assert(): its writes to a pipe are too slow for these loops */
	if (ret != 1 && ret != -FI_EAGAIN)
		ck_abort_msg("fi_cq_read: %zd", ret);
	return ret == 1;
}

/* Sends a message. Reads both CQs while the call returns -FI_EAGAIN. */
static void flood_send(int from, fi_addr_t to, size_t len, uint64_t tag)
{
	int retries = 0;

	while (fi_tinject(ep[from], out, len, to, tag)) {
		ck_assert_int_lt(++retries, FLOOD_RETRIES);
		flood_read(0);
		flood_read(1);
	}
}

static void flood(fi_addr_t to, size_t len)
{
	size_t i;

	for (i = 0; i < FLOOD_BYTES / FLOOD_LEN; i++)
		flood_send(1, to, len, 2);
}

static void flood_recv(int at, uint64_t tag)
{
	ck_assert(!fi_trecv(ep[at], in, sizeof(in), NULL, FI_ADDR_UNSPEC, tag,
			    0, in));
	while (!flood_read(at))
		flood_read(!at);
}

UNIT_LONG_CASE("in pieces", flood_setup, recv_teardown, 300);

/*
 * A large message must arrive, although ep[1] sends many unexpected messages to
 * ep[0]. The large message goes in fragments, because flood_setup() disables
 * single copy.
 * - If _i is 0, ep[0] sends the large message. ep[1]'s CTS for it is behind the
 *   unexpected messages.
 * - If _i is 1, ep[1] sends the large message before the unexpected messages.
 *   Its fragments are behind the unexpected messages.
 */
UNIT_LOOP(large_message_behind_flood_arrives, 0, 2)
{
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_tagged_entry entry;
	static char from[1 << 18], at[1 << 18];

	if (_i)
		ck_assert(!fi_tsend(ep[1], from, sizeof(from), NULL, to, 1,
				    from));
	flood(to, FLOOD_LEN);
	ck_assert(!fi_trecv(ep[!_i], at, sizeof(at), NULL, FI_ADDR_UNSPEC, 1,
			    0, at));
	if (!_i)
		ck_assert(!fi_tsend(ep[0], from, sizeof(from), NULL, peer, 1,
				    from));
	while (fi_cq_read(cq[0], &entry, 1) != 1)
		fi_cq_read(cq[1], NULL, 0);
	ck_assert_ptr_eq(entry.op_context, _i ? at : from);
}

/* Both endpoints send all their messages before one of them receives. */
UNIT_LOOP(floods_in_both_directions_arrive, 0, 2)
{
	size_t len = _i ? 8 : FLOOD_LEN, count = FLOOD_BYTES / FLOOD_LEN, i;
	fi_addr_t to[2] = { peer, recv_insert(ep[0]) };

	for (i = 0; i < count; i++) {
		flood_send(0, to[0], len, i);
		flood_send(1, to[1], len, i);
	}
	for (i = 0; i < count; i++) {
		flood_recv(0, i);
		flood_recv(1, i);
	}
}

UNIT_TEST(many_unexpected_large_messages_arrive)
{
	static char from[16384], to[16384];
	fi_addr_t addr = recv_insert(ep[0]);
	int i, retries = 0, sent = 0;

	for (i = 0; i < FLOOD_MANY; retries = 0, i++)
		while (fi_tsend(ep[1], from, sizeof(from), NULL, addr, i,
				from)) {
			ck_assert_int_lt(++retries, FLOOD_RETRIES);
			flood_read(0);
		}
	for (i = 0; i < FLOOD_MANY; i++) {
		ck_assert(!fi_trecv(ep[0], to, sizeof(to), NULL, peer, i, 0,
				    to));
		while (!flood_read(0))
			sent += flood_read(1);
	}
	while (sent < FLOOD_MANY)
		sent += flood_read(1);
}

/*
 * The number of receives exceeds the endpoint's size. The last receive is a
 * multi-receive buffer, which needs one more entry, for a message that has
 * arrived before.
 */
UNIT_TEST(receives_beyond_size_complete)
{
	struct iovec iov = { in, sizeof(in) };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
	};
	fi_addr_t to = recv_insert(ep[0]);
	int i;

	ck_assert(!fi_inject(ep[1], out, 8, to));
	ck_assert(!flood_read(0));
	for (i = 0; i < FLOOD_MANY; i++)
		ck_assert(!fi_trecv(ep[0], in, 8, NULL, FI_ADDR_UNSPEC, 5, 0,
				    NULL));
	ck_assert(!fi_recvmsg(ep[0], &msg, FI_MULTI_RECV | FI_COMPLETION));
	ck_assert(flood_read(0));
	for (i = 0; i < FLOOD_MANY; i++) {
		flood_send(1, to, 8, 5);
		ck_assert(flood_read(0));
	}
}
