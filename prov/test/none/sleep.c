/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Threads that sleep on a CQ's file descriptor */

#include <poll.h>

#include "side.h"

static void recv_setup_sleep(void)
{
	recv_wait = FI_WAIT_FD;
	recv_setup();
}

/*
 * Polls until fi_trywait() permits a sleep; asserts that there is no
 * completion.
 */
static struct pollfd recv_fall_asleep(void)
{
	struct pollfd fd = { .events = POLLIN };
	struct fid *fid = &cq[0]->fid;

	ck_assert(!fi_control(fid, FI_GETWAIT, &fd.fd));
	while (fi_trywait(side_opened(), &fid, 1))
		ck_assert_int_eq(fi_cq_read(cq[0], NULL, 0), -FI_EAGAIN);
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
	return fd;
}

UNIT_CASE("asleep", recv_setup_sleep, recv_teardown);

/*
 * The thread sleeps. Another thread posts a receive, which matches a large
 * message in the call. The sleeping thread must wake.
 */
UNIT_TEST(receive_of_other_thread_wakes_sleeper)
{
	static char from[1 << 18], at[1 << 18];
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_tagged_entry entry;
	struct pollfd fd;

	ck_assert(!fi_tsend(ep[1], from, sizeof(from), NULL, to, 1, NULL));
	fd = recv_fall_asleep();
	ck_assert(!fi_trecv(ep[0], at, sizeof(at), NULL, peer, 1, 0, at));
	ck_assert_int_eq(poll(&fd, 1, 0), 1);
	while (fi_cq_read(cq[0], &entry, 1) != 1)
		fi_cq_read(cq[1], &entry, 1);
	ck_assert_ptr_eq(entry.op_context, at);
}

/*
 * The thread sleeps. Another thread enables a further endpoint with the same
 * CQ, and posts a receive there. The message must wake the sleeping thread.
 */
UNIT_TEST(message_to_new_endpoint_wakes_sleeper)
{
	struct pollfd fd = recv_fall_asleep();
	struct fi_info *info = side_info(FI_THREAD_DOMAIN);
	struct fi_cq_tagged_entry entry;
	struct fid_ep *later;
	char at;

	ck_assert(!fi_endpoint(domain, info, &later, NULL));
	fi_freeinfo(info);
	ck_assert(!fi_ep_bind(later, &av->fid, 0));
	ck_assert(!fi_ep_bind(later, &cq[0]->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(later));
	ck_assert(!fi_trecv(later, &at, 1, NULL, peer, 1, 0, &at));
	ck_assert(!fi_tsend(ep[1], "x", 1, NULL, recv_insert(later), 1, NULL));
	ck_assert_int_eq(poll(&fd, 1, 0), 1);
	while (fi_cq_read(cq[0], &entry, 1) != 1)
		fi_cq_read(cq[1], &entry, 1);
	ck_assert_ptr_eq(entry.op_context, &at);
	ck_assert(!fi_close(&later->fid));
}
