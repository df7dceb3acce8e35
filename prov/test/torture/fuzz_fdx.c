/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * One test sends datagrams of the fd exchange to a port, with changed bytes and
 * any file descriptors. The port must close the file descriptors of rejected
 * datagrams. The other test connects the port to changed addresses, which an
 * application might insert. After both tests, correct peers must still reach
 * the port.
 */

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/proc.h"
#include "fuzz.h"
#include "near/link/fdx.h"
#include "unit.h"

#define FUZZ_FDS 5		/* one more than a datagram may have */

static struct rig *us, *other;

static void fdx_open(void)
{
	us = rig_open(false);
	ck_assert_int_eq(near_listen(us->port, -1), 0);
	other = rig_open(false);
}

static void fdx_drop_events(struct rig *rig)
{
	uint32_t i;

	for (i = 0; i < rig->count; i++)
		if (rig->event[i].kind != RIG_RECEIVED &&
		    rig->event[i].kind != RIG_SENT)
			near_peer_put(rig->port, rig->event[i].peer);
	rig->count = 0;
}

/* Checks that a new, correct port can send to ours. */
static void fdx_serves(void)
{
	struct near_peer *peer = rig_peer(other, us);
	uint32_t i, got = 0;

	ck_assert_int_eq(rig_send(other, peer, 42, "8 bytes", 8), 0);
	for (i = 0; i < 10000 && !got; i++) {
		rig_poll(us, 1);
		got = us->count && us->event[us->count - 1].msg.tag == 42;
	}
	ck_assert(got);
	fdx_drop_events(us);
	near_peer_put(other->port, peer);
}

static int fdx_fd(void)
{
	static int some[5];
	int pair[2];

	if (!some[4]) {
		ck_assert_int_eq(pipe(pair), 0);
		some[0] = us->port->fd;
		some[1] = memfd_create("unsealed", MFD_ALLOW_SEALING);
		some[2] = pair[1];
		some[3] = duo_proc_pidfd(getpid());
		some[4] = other->port->fd;
	}
	return some[fuzz_below(5)];
}

static void fdx_datagram(int from)
{
	struct near_fdx fdx[2] = { { .from = other->addr,
		.to = us->addr.nonce, .kind = fuzz_below(NEAR_FDX_KINDS + 1) } };
	char rights[CMSG_SPACE(FUZZ_FDS * sizeof(int))]
		__attribute__((aligned(8))) = { 0 };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct iovec iov = { fdx, sizeof(fdx[0]) };
	struct msghdr msg = { .msg_name = &name, .msg_iov = &iov,
			      .msg_iovlen = 1, .msg_control = rights };
	uint32_t fds = fuzz_below(FUZZ_FDS + 1), i;
	struct cmsghdr *cmsg;
	int fd;

	fdx->count = fuzz_once_in(4) ? (uint32_t)fuzz_value() : fds;
	if (fuzz_once_in(2))
		fdx->from.nonce += fuzz_below(100);
	for (i = fuzz_below(3); i--;)
		fuzz_change(fdx, sizeof(fdx[0]));
	if (fuzz_once_in(8))
		iov.iov_len = fuzz_below(sizeof(fdx));
	msg.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
		1 + (size_t)sprintf(name.sun_path + 1, "near.%016llx",
				    (unsigned long long)us->addr.nonce));
	msg.msg_controllen = fds ? CMSG_SPACE(fds * sizeof(int)) : 0;
	cmsg = CMSG_FIRSTHDR(&msg);
	for (i = 0; i < fds; i++) {
		fd = fdx_fd();
		memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &fd, sizeof(fd));
	}
	if (cmsg) {
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fds * sizeof(int));
	}
	/* a datagram that the socket's short queue rejects is lost */
	sendmsg(from, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void fdx_datagrams(void)
{
	unsigned int before;
	int from, i;

	fdx_open();
	from = socket(AF_UNIX, SOCK_DGRAM, 0);
	fdx_fd();
	fdx_serves();
	before = rig_files();
	for (i = 0; i < FUZZ_ROUND; i++) {
		fdx_datagram(from);
		near_woken(us->port);
		rig_poll(us, 1);
		fdx_drop_events(us);
	}
	/* a peer keeps four descriptors, and one for its wake pipe */
	ck_assert_uint_le(rig_files(), before + 5 * us->port->budget.peers + 5);
	fdx_serves();
	rig_close_all();
}

static void fdx_address(void)
{
	struct near_addr addr = other->addr;
	struct near_peer *peer;
	int i;

	for (i = (int)fuzz_below(4); i--;)
		fuzz_change(&addr, sizeof(addr));
	if (fuzz_once_in(2))
		addr.pid = (int)fuzz_below(70000);
	if (near_addr_check(us->port, &addr) ||
	    near_peer_get(us->port, &addr, &peer))
		return;
	if (fuzz_once_in(2))
		near_peer_monitor(us->port, peer);
	rig_send(us, peer, 1, "8 bytes", 8);
	rig_poll(us, 1);
	near_peer_put(us->port, peer);
	rig_poll(other, 1);
	fdx_drop_events(us);
	fdx_drop_events(other);
}

static void fdx_addresses(void)
{
	int i;

	fdx_open();
	for (i = 0; i < FUZZ_ROUND; i++)
		fdx_address();
	fdx_serves();
	rig_close_all();
}

UNIT_LONG_CASE("meet", NULL, NULL, 3600 * 12);

UNIT_TEST(changed_datagrams_leave_port_working)
{
	fuzz_rounds("datagrams", fdx_datagrams);
}

UNIT_TEST(changed_addresses_leave_port_working)
{
	fuzz_rounds("addresses", fdx_addresses);
}
