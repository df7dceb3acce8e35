/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The fd exchange between two ports of this process, one of which has an
 * address of another pid namespace. Also invalid messages to a port's socket.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "near/link/fdx.h"
#include "base/proc.h"
#include "unit.h"

#define MANY 1000
#define ENOUGH_MS 400
#define TIMEOUT_MS 60000

static struct rig *us, *them;
static uint8_t big[100000], got[sizeof(big)];

static struct rig *far_open(int dir)
{
	struct rig *rig = rig_open(false);

	rig->port->addr.pid_ns++;
	near_address(rig->port, &rig->addr);
	ck_assert_int_eq(near_listen(rig->port, dir), 0);
	return rig;
}

static void setup(void)
{
	us = rig_open(false);
	ck_assert_int_eq(near_listen(us->port, -1), 0);
	them = far_open(-1);
	rig_fill(big, sizeof(big), 1);
}

UNIT_CASE("ask", setup, rig_close_all);

UNIT_TEST(messages_pass_after_exchange)
{
	struct near_peer *peer = rig_peer(us, them);
	uint32_t round;

	ck_assert(peer->far);
	ck_assert_int_eq(rig_send_when(us, peer, 7, them), 0);
	rig_until(them, us, 1);
	/* the peer received this port's descriptors with the request */
	ck_assert_int_eq(rig_send(them, them->event[0].peer, 8, big, 8), 0);
	rig_until(us, them, 1);
	/* large messages; near may select another scheme for each of them */
	for (round = 1; round < 20; round++) {
		ck_assert_int_eq(rig_send_large(us, peer, 9, big, sizeof(big),
						big), 0);
		rig_until(them, us, 2 * round);
		memset(got, 0, sizeof(got));
		rig_take(them, 2 * round - 1, got, sizeof(got));
		rig_until(them, us, 2 * round + 1);
		ck_assert_mem_eq(got, big, sizeof(big));
		rig_until(us, them, 1 + round);
	}
	/* near sent them as fragments: the peer's pid is not valid here */
	ck_assert(!peer->reads && !peer->coop);
}

/* A faulty sender changes the table's descriptor number in its segment. */
UNIT_TEST(changed_table_number_passes_no_file)
{
	struct near_peer *peer = rig_peer(us, them);

	them->port->segment->table_fd = STDIN_FILENO;
	ck_assert_int_eq(rig_send_when(us, peer, 7, them), 0);
	ck_assert_int_eq(peer->fd[NEAR_FD_TABLE], -1);
}

static int msg_count(struct rig *rig)
{
	struct near_fdx_msg msg;
	int n = 0;

	while (near_fdx_next(rig->port, &msg)) {
		near_fdx_msg_drop(&msg);
		n++;
	}
	return n;
}

/* A port gets a message, but cannot open the sender's segment. */
UNIT_TEST(unknown_sender_is_requested_until_reply)
{
	struct rig *hidden = rig_open(false);
	struct near_peer *to_us = rig_peer(hidden, us);
	uint64_t start = duo_now_ms(), asked;

	ck_assert_int_eq(near_listen(hidden->port, -1), 0);
	hidden->port->addr.pid_ns++;
	ck_assert_int_eq(rig_send(hidden, to_us, 5, big, 8), 0);
	rig_poll_ms(us, 50);
	asked = (uint64_t)msg_count(hidden);
	ck_assert_uint_ge(asked, 1);
	ck_assert_uint_le(asked, 1 + (duo_now_ms() - start) / 100);
	ck_assert_uint_eq(us->count, 0);
	rig_until(us, hidden, 1);
	ck_assert_uint_eq(us->event[0].msg.tag, 5);
	ck_assert(near_monitored(us->event[0].peer));
	/*
	 * the sender closes: the port must drop the reference of
	 * near_peer_expect()
	 */
	rig_close(hidden);
	rig_until_event(us, NULL, 2, RIG_GONE, 0);
	ck_assert(!us->event[1].peer->expected);
}

UNIT_TEST(message_of_closed_unknown_sender_arrives)
{
	struct rig *hidden = rig_open(false);
	struct near_peer *to_us = rig_peer(hidden, us);

	ck_assert_int_eq(near_listen(hidden->port, -1), 0);
	hidden->port->addr.pid_ns++;
	ck_assert_int_eq(rig_send(hidden, to_us, 5, big, 8), 0);
	rig_poll(us, NEAR_TICK_POLLS);
	rig_close(hidden);
	rig_until(us, NULL, 2);
	ck_assert_uint_eq(us->event[0].msg.tag, 5);
	ck_assert_int_eq(us->event[1].kind, RIG_GONE);
	ck_assert_uint_eq(rig_rx_rings(us), 0);
}

/*
 * A request contains its sender's file descriptors. So the port that receives
 * the request can send at once.
 */
UNIT_TEST(concurrent_requests_suffice)
{
	struct near_peer *peer = rig_peer(us, them);

	near_peer_monitor(them->port, rig_peer(them, us));
	rig_poll_ms(us, 2 * ENOUGH_MS / 10);
	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), 0);
	rig_poll(them, 1);
	ck_assert_int_eq(them->warnings, 0);
	ck_assert_uint_eq(them->count, 1);
}

UNIT_TEST(missing_reply_fails_send)
{
	struct near_peer *peer = rig_peer(us, them);

	us->port->timeout_ms = TIMEOUT_MS;
	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), -EAGAIN);
	rig_poll_ms(us, ENOUGH_MS / 2);
	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), -EAGAIN);
	ck_assert_int_eq(us->warnings, 0);
	us->port->timeout_ms = ENOUGH_MS;
	ck_assert_int_eq(rig_send_when(us, peer, 7, NULL), -EHOSTUNREACH);
	ck_assert_int_eq(us->warnings, 1);
	us->port->timeout_ms = TIMEOUT_MS;
	rig_poll_ms(them, ENOUGH_MS / 10);
	rig_poll_ms(us, ENOUGH_MS / 2);
	ck_assert_int_eq(rig_send_when(us, peer, 7, them), 0);
}

UNIT_TEST(lost_request_is_repeated)
{
	struct near_peer *peer = rig_peer(us, them);
	char byte;

	rig_send(us, peer, 1, big, 8);
	/* remove the request from the socket, as if it were lost */
	ck_assert_int_ge(recv(them->port->fdx, &byte, 1, MSG_DONTWAIT), 0);
	rig_poll_ms(us, ENOUGH_MS);
	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), -EAGAIN);
	ck_assert_int_eq(rig_send_when(us, peer, 7, them), 0);
}

UNIT_TEST(closed_unused_peer_is_reported)
{
	const struct near_addr addr = them->addr;

	near_peer_monitor(them->port, rig_peer(them, us));
	rig_poll_ms(us, ENOUGH_MS / 10);
	ck_assert_ptr_nonnull(near_peer_find(us->port, &addr));
	rig_close(them);
	rig_until_event(us, NULL, 1, RIG_GONE, 0);
	near_peer_put(us->port, us->event[0].peer);
	ck_assert_ptr_null(near_peer_find(us->port, &addr));
}

/*
 * The peer replies to a request, attaches, and is killed before the next
 * request. The pidfd in the reply must be used: only it shows that the process
 * has exited, so that its claim can be freed.
 */
UNIT_TEST(reply_of_killed_peer_is_read)
{
	struct near_peer *peer = rig_peer(us, them);

	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), -EAGAIN);
	near_fdx_read(them->port);
	ck_assert_int_eq(rig_send(them, rig_peer(them, us), 2, big, 8), 0);
	shutdown(them->port->fdx, SHUT_RDWR);
	peer->requested_ms = 1;
	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), 0);
	ck_assert_int_ge(peer->pidfd, 0);
}

/* The peer's request arrives, but its socket is closed before the reply. */
UNIT_TEST(closed_requester_gets_no_warning)
{
	rig_peer(us, them);
	ck_assert_int_eq(rig_send(them, rig_peer(them, us), 1, big, 8),
			 -EAGAIN);
	rig_stop(them);
	rig_until_gone(us, 1);
	ck_assert_int_eq(us->warnings, 0);
}

UNIT_TEST(dropped_reference_is_no_failure)
{
	struct near_peer *peer = rig_peer(us, them), *back = rig_peer(them, us);

	ck_assert_int_eq(rig_send_when(us, peer, 7, them), 0);
	rig_until(them, us, 1);
	near_peer_put(us->port, peer);
	rig_poll_ms(them, ENOUGH_MS / 10);
	ck_assert_int_eq(back->state, NEAR_PEER_NEW);
	ck_assert_ptr_eq(rig_peer(us, them), peer);
	ck_assert_int_eq(rig_send(us, peer, 2, big, 8), 0);
	rig_until(them, us, 2);
	ck_assert_uint_eq(rig_rx_rings(them), 1);
}

/* "them" has declared "us" failed, but must reply to a new request of "us". */
UNIT_TEST(request_of_failed_peer_gets_reply)
{
	struct near_peer *peer = rig_peer(us, them), *back = rig_peer(them, us);

	ck_assert_int_eq(rig_send_when(us, peer, 7, them), 0);
	rig_until(them, us, 1);
	near_peer_fail(them->port, back);
	rig_until(them, us, 2);
	ck_assert_int_eq(back->state, NEAR_PEER_GONE);
	near_peer_put(us->port, peer);
	rig_until_event(us, NULL, 1, RIG_GONE, 0);
	near_peer_put(us->port, us->event[0].peer);
	ck_assert_ptr_null(near_peer_find(us->port, &them->addr));
	ck_assert_int_eq(rig_send_when(us, rig_peer(us, them), 7, them), 0);
	rig_until(them, us, 3);
}

UNIT_TEST(send_without_socket_fails)
{
	struct near_peer *peer = rig_peer(us, them);

	rig_close(them);
	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), -ECONNRESET);
	ck_assert_int_eq(us->warnings, 1);
	/* no proof of an exit: the peer may be in another network namespace */
	ck_assert(!near_peer_exited(peer));
}

static int fd_of[RIG_FDS];

#define FEW(n, says) \
	.fd = { RIG_SEALED, RIG_PIPE, RIG_PIDFD, RIG_PIPE }, .fds = n, \
	.count = says
#define GOOD FEW(3, 3)
#define BAD(a, b, c) \
	.fd = { RIG_##a, RIG_##b, RIG_##c }, .fds = 3, .count = 3

static const struct {
	const char *name;
	int fd[4];
	uint32_t fds, count, kind;
	int more;		/* bytes more than a datagram has */
	bool other_to, other_host, ours;
} msgs[] = {
	{.name = "short", GOOD, .more = -1},
	{.name = "long", GOOD, .more = 1},
	{.name = "for another", GOOD, .other_to = true},
	{.name = "of another host", GOOD, .other_host = true},
	{.name = "our own", GOOD, .ours = true},
	{.name = "of no kind", GOOD, .kind = NEAR_FDX_KINDS},
	{.name = "of a port without a region table",
	 .kind = NEAR_FDX_GPU_REQUEST},
	{.name = "a reply of this kind", GOOD, .kind = NEAR_FDX_GPU_REPLY},
	{.name = "no descriptors", FEW(0, 0)},
	{.name = "fewer than announced", FEW(3, 4)},
	{.name = "more than announced", FEW(4, 3)},
	{.name = "without a pidfd", FEW(2, 2)},
	{.name = "memory that may shrink", BAD(UNSEALED, PIPE, PIDFD)},
	{.name = "a pipe for memory", BAD(PIPE, PIPE, PIDFD)},
	{.name = "memory for the pipe", BAD(SEALED, SEALED, PIDFD)},
	{.name = "a pipe for the pidfd", BAD(SEALED, PIPE, PIPE)},
};

static void msg(size_t at)
{
	struct near_fdx fdx[2] = {{
		.from = them->addr,
		.to = us->addr.nonce,
		.kind = msgs[at].kind,
		.count = msgs[at].count,
	}};
	int from = socket(AF_UNIX, SOCK_DGRAM, 0), fd[4];
	uint32_t i;

	fdx->from.nonce += 77;
	fdx->from.host += msgs[at].other_host;
	fdx->to += msgs[at].other_to;
	if (msgs[at].ours)
		fdx->from = us->addr;
	for (i = 0; i < msgs[at].fds; i++)
		fd[i] = fd_of[msgs[at].fd[i]];
	/* the socket's queue has space for only a few messages */
	while (rig_datagram(from, us, fdx,
			    sizeof(*fdx) + (size_t)msgs[at].more, fd,
			    msgs[at].fds) < 0) {
		ck_assert_int_eq(errno, EAGAIN);
		rig_poll_ms(us, 1);
	}
	close(from);
}

/* Asserts that the port ignored the message, leaked nothing, and works. */
static void message_ignored(const char *what, unsigned int before)
{
	rig_poll_ms(us, ENOUGH_MS / 10);
	ck_assert_msg(us->warnings == 1, "%s: %d warnings", what,
		      us->warnings);
	ck_assert_msg(near_list_empty(&us->port->peers), "%s: met", what);
	ck_assert_msg(rig_files() == before, "%s: %u descriptors, not %u", what,
		      rig_files(), before);
	ck_assert_int_eq(rig_send_when(us, rig_peer(us, them), 7, them), 0);
}

UNIT_CASE("mail", setup, rig_close_all);

UNIT_ROUNDS(wrong_msg, 0, ARRAY_SIZE(msgs))
{
	unsigned int before;

	rig_fds(us, fd_of);
	before = rig_files();
	msg((size_t)_i);
	message_ignored(msgs[_i].name, before);
}

UNIT_TEST(flood_of_datagrams_is_handled)
{
	unsigned int before;
	int i;

	rig_fds(us, fd_of);
	before = rig_files();
	for (i = 0; i < MANY; i++)
		msg((size_t)i % (ARRAY_SIZE(msgs)));
	message_ignored("flood", before);
}

/*
 * "them" has no free file descriptors for those in a request, and must warn. A
 * retry must succeed.
 */
UNIT_TEST(missing_descriptor_warns)
{
	struct near_peer *peer = rig_peer(us, them);
	rlim_t limit;
	int fd[1024], n = 0;

	ck_assert_int_eq(rig_send(us, peer, 1, big, 8), -EAGAIN);
	limit = unit_limit(RLIMIT_NOFILE, 512);
	while (n < 1024 && (fd[n] = dup(0)) >= 0)
		n++;
	rig_poll_ms(them, ENOUGH_MS / 10);
	ck_assert_int_eq(them->warnings, 1);
	ck_assert_ptr_null(near_peer_find(them->port, &us->addr));
	while (n)
		close(fd[--n]);
	unit_limit(RLIMIT_NOFILE, limit);
	ck_assert_int_eq(rig_send_when(us, peer, 7, them), 0);
}

static int count(int dir)
{
	DIR *stream = fdopendir(openat(dir, ".", O_RDONLY));
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(stream)))
		n += entry->d_name[0] != '.';
	closedir(stream);
	return n;
}

static int dir_make(char *template)
{
	ck_assert_ptr_nonnull(mkdtemp(template));
	return open(template, O_RDONLY | O_DIRECTORY);
}

UNIT_CASE("ask", setup, rig_close_all);

UNIT_TEST(failed_listen_leaves_no_file)
{
	char path[] = "/tmp/near-failed-XXXXXX";
	struct near_port *port = rig_open(false)->port;
	int epoll_fd = port->epoll_fd, dir = dir_make(path);

	port->epoll_fd = -1;
	ck_assert_int_eq(near_listen(port, dir), -EBADF);
	port->epoll_fd = epoll_fd;
	close(dir);
	ck_assert_int_eq(rmdir(path), 0);
}

UNIT_TEST(sockets_are_found_in_directory)
{
	char path[] = "/tmp/near-hello-XXXXXX", name[128];
	struct sockaddr_un left = { .sun_family = AF_UNIX };
	int dir = dir_make(path), fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct rig *here, *there;

	here = rig_open(false);
	ck_assert_int_eq(near_listen(here->port, dir), 0);
	there = far_open(dir);
	/* the file of a killed process's socket, and a file not made by near */
	snprintf(left.sun_path, sizeof(left.sun_path),
		 "%s/near.0123456789abcdef", path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&left, sizeof(left)), 0);
	close(fd);
	snprintf(name, sizeof(name), "%s/near.other", path);
	close(open(name, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(count(dir), 4);
	near_sweep(dir);
	ck_assert_int_eq(count(dir), 3);
	ck_assert_int_eq(access(left.sun_path, F_OK), -1);
	ck_assert_int_eq(rig_send_when(here, rig_peer(here, there), 7,
				       there), 0);
	rig_close(here);
	rig_close(there);
	ck_assert_int_eq(count(dir), 1);
	unlink(name);
	close(dir);
	ck_assert_int_eq(rmdir(path), 0);
}

/*
 * The kernel has closed the exiting peer's socket, but its pid and socket file
 * still exist. The peer is in another pid namespace (_i is 0), or in this one,
 * but /proc hides its descriptors (1).
 */
UNIT_LOOP(refused_socket_shows_exit, 0, 2)
{
	char path[] = "/tmp/near-rejected-XXXXXX";
	struct near_peer *peer;
	int dir = dir_make(path);
	struct rig *here;

	here = rig_open(false);
	ck_assert_int_eq(near_listen(here->port, dir), 0);
	rig_close(them);
	them = _i ? rig_open(false) : far_open(dir);
	if (_i)
		ck_assert_int_eq(near_listen(them->port, dir), 0);
	peer = rig_peer(here, them);
	peer->needs_fdx = true;
	close(them->port->fdx);
	them->port->fdx = -1;
	ck_assert_int_eq(rig_send(here, peer, 1, big, 8), -ECONNRESET);
	ck_assert(near_peer_exited(peer));
	rig_until_gone(here, 1);
	ck_assert_int_eq(rig_send(here, peer, 1, big, 8), -ECONNRESET);
	near_sweep(dir);
	ck_assert_int_eq(count(dir), 1);
	rig_close(here);
	close(dir);
	ck_assert_int_eq(rmdir(path), 0);
}
