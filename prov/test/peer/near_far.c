/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer of near whose address has another pid namespace. Its memory can be
 * mapped only after an fd exchange, by the socket beside the peer's record.
 * fabtests tests real pid namespaces.
 */

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/params.h"
#include "near/link/port.h"
#include "base/proc.h"
#include "near_fixture.h"
#include "transport/near/near_ep.h"

#define TIMEOUT_MS 200

static struct slot slot;

/* Publishes and inserts the peer. "listens": a socket is beside its record. */
static void connect_far(bool listens)
{
	rig.port->addr.pid_ns++;
	if (listens)
		ck_assert_int_eq(near_listen(rig.port,
					     fixture_ep()->publication.dir), 0);
	near_publish();
}

/*
 * Repeats the send while it returns -FI_EAGAIN. "polls": the peer polls, too.
 */
static void send_when(bool polls)
{
	uint64_t end = duo_now_ms() + 60000;
	ssize_t ret;

	while ((ret = fi_tsend(fx.ep, "far", 3, NULL, peer, TAG, &slot)) ==
	       -FI_EAGAIN) {
		ck_assert(duo_now_ms() < end);
		poll_cq(NEAR_TICK_POLLS);
		if (polls)
			near_poll(rig.port, &rig_sink);
	}
	ck_assert_int_eq(ret, 0);
}

static int sockets(void)
{
	DIR *dir = duo_dir_list(fixture_ep()->publication.dir);
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, "near.", 5);
	closedir(dir);
	return n;
}

UNIT_CASE("far", near_setup_alone, near_teardown);

UNIT_TEST(polling_peer_gets_messages)
{
	fixture_ep()->near->port->timeout_ms = 0;	/* no timeout */
	connect_far(true);
	ck_assert_int_eq(sockets(), 2);
	send_when(true);
	both_entry(&slot);
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_OK);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, 1);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
	post_recv(&slot, peer, TAG);
	rig.port->fdx_ms = 0;
	rig_send("back");
	ck_assert_uint_eq(both_entry(&slot).len, 4);
	rig_end();
	ck_assert_int_eq(sockets(), 1);
}

/* The peer does not poll, and so does not reply to the request. */
UNIT_TEST(silent_peer_uses_core_after_timeout)
{
	uint64_t begin = duo_now_ms();

	ck_assert_uint_eq(fixture_ep()->near->port->timeout_ms, 2000);
	fixture_ep()->near->port->timeout_ms = TIMEOUT_MS;
	connect_far(true);
	ck_assert_int_eq(fi_tsend(fx.ep, "far", 3, NULL, peer, TAG, &slot),
			 -FI_EAGAIN);
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_OK);
	send_when(false);
	/* 20 ms less, because near's clock may differ by 20 ms */
	ck_assert_uint_ge(duo_now_ms() - begin, TIMEOUT_MS - 20);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_NOT_MAPPED);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
}

UNIT_TEST(peer_without_socket_uses_core)
{
	connect_far(false);
	ck_assert_int_eq(fi_tsend(fx.ep, "far", 3, NULL, peer, TAG, &slot), 0);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_NOT_MAPPED);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
}

/*
 * A killed process has left its socket. A sweep removes this socket, and keeps
 * the socket of this process.
 */
UNIT_TEST(sweep_removes_socket_of_killed_process)
{
	int dir = dup(fixture_ep()->publication.dir);

	connect_far(true);
	/* close the socket's descriptor, as the kernel does after SIGKILL */
	close(rig.port->fdx);
	rig.port->fdx = -1;
	ck_assert_int_eq(sockets(), 2);
	duo_transport_near.sweep(dir, 0);
	ck_assert_int_eq(sockets(), 1);
	close(dir);
}
