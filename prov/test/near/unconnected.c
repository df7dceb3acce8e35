/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Failure of peers before any message was exchanged with them. */

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

static struct rig *us;
static uint8_t buf[8];

static void setup(void)
{
	us = rig_open(false);
}

/*
 * Close the port. Return a descriptor of a new file that has the number of the
 * port's descriptor, or -1.
 */
static int fd_nothing(struct rig *other)
{
	rig_close(other);
	return -1;
}

static int fd_socket(struct rig *other)
{
	rig_close(other);
	return socket(AF_UNIX, SOCK_DGRAM, 0);
}

static int fd_pipe(struct rig *other)
{
	int fd[2];

	rig_close(other);
	ck_assert(!pipe(fd));
	close(fd[1]);
	return fd[0];
}

static struct rig *another;

static int fd_port(struct rig *other)
{
	rig_close(other);
	another = rig_open(false);
	return another->addr.fd;
}

/* Poll until the second check has opened a descriptor of the peer. */
static void until_kept(const struct near_peer *peer)
{
	uint64_t end = duo_now_ms() + RIG_TIMEOUT_MS;

	while (peer->fd[NEAR_FD_SEGMENT] < 0) {
		ck_assert_msg(duo_now_ms() < end, "no descriptor is kept");
		rig_poll(us, NEAR_TICK_POLLS);
	}
	ck_assert_uint_eq(us->count, 0);
}

/* Close the port after the second check has opened a descriptor of it. */
static int fd_kept(struct rig *other)
{
	struct near_peer *peer = near_peer_find(us->port, &other->addr);

	until_kept(peer);
	return fd_port(other);
}

/* As before, while no file descriptor is free. */
static int fd_scarce(struct rig *other)
{
	struct near_peer *peer = near_peer_find(us->port, &other->addr);
	struct rlimit limit;

	ck_assert(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = other->addr.fd + 16;
	ck_assert(!setrlimit(RLIMIT_NOFILE, &limit));
	rig_poll_ms(us, 300);
	ck_assert_uint_eq(us->count, 0);
	ck_assert_int_eq(peer->fd[NEAR_FD_SEGMENT], -1);
	return fd_port(other);
}

static int (*const closings[])(struct rig *other) = {
	fd_nothing, fd_socket, fd_pipe, fd_port, fd_kept, fd_scarce,
};

UNIT_CASE("unconnected", setup, rig_close_all);

/*
 * A port closes while its process continues, before any message: this is found.
 */
UNIT_LOOP(closed_unconnected_port_is_found, 0, ARRAY_SIZE(closings))
{
	struct rig *other = rig_open(false);
	struct near_peer *peer = rig_peer(us, other);
	int at = other->addr.fd, fd;

	another = NULL;
	near_peer_monitor(us->port, peer);
	fd = closings[_i](other);
	ck_assert(fd < 0 || fd == at);
	rig_until_gone(us, 1);
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -ECONNRESET);
	if (another)
		rig_close(another);
	else if (fd >= 0)
		close(fd);
}

/*
 * An open port is not taken for a failed one. The first message uses the
 * descriptor that the check has opened.
 */
UNIT_TEST(open_unconnected_port_has_not_failed)
{
	struct rig *other = rig_open(false);
	struct near_peer *peer = rig_peer(us, other);

	near_peer_monitor(us->port, peer);
	until_kept(peer);
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), 0);
	ck_assert_int_eq(peer->fd[NEAR_FD_SEGMENT], -1);
	rig_until(other, NULL, 1);
	rig_close(other);
	rig_until_gone(us, 1);
}

/*
 * When the peer has sent, its ring shows whether it is closed: the descriptor
 * is closed.
 */
UNIT_TEST(descriptor_is_closed_after_first_message)
{
	struct rig *other = rig_open(false);
	struct near_peer *peer = rig_peer(us, other);

	near_peer_monitor(us->port, peer);
	near_woken(us->port);
	ck_assert_int_ge(peer->fd[NEAR_FD_SEGMENT], 0);
	ck_assert_int_eq(rig_send(other, rig_peer(other, us), 1, buf, 8), 0);
	rig_until(us, NULL, 1);
	ck_assert_int_eq(peer->fd[NEAR_FD_SEGMENT], -1);
	rig_close(other);
	rig_until_gone(us, 2);
}

/* A process that sleeps often does not check these peers at each wakeup. */
UNIT_TEST(wakeups_do_not_check_unconnected_peers)
{
	struct rig *other = rig_open(false);
	struct near_peer *peer = rig_peer(us, other);
	uint64_t looked;

	near_peer_monitor(us->port, peer);
	near_woken(us->port);
	rig_close(other);
	us->port->syscall_check_ms = looked = duo_now_ms();
	near_woken(us->port);
	if (duo_now_ms() - looked < NEAR_CHECK_MS) {
		ck_assert_uint_eq(us->port->syscall_check_ms, looked);
		ck_assert(!peer->draining);
		ck_assert_uint_eq(us->count, 0);
	}
	us->port->syscall_check_ms = looked - NEAR_CHECK_MS;
	near_woken(us->port);
	ck_assert_uint_eq(us->count, 1);
	ck_assert_int_eq(us->event[0].kind, RIG_GONE);
}
