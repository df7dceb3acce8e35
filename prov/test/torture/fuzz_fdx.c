/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * One test sends datagrams of the fd exchange to a port, with changed bytes and
 * any file descriptors. The port must close the file descriptors of rejected
 * datagrams. The other test connects the port to changed addresses, which an
 * application might insert. After both tests, correct peers must still reach
 * the port.
 */

#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "near/link/fdx.h"
#include "unit.h"

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
	static int some[RIG_FDS + 1];

	if (!some[RIG_FDS]) {
		rig_fds(us, some);
		some[RIG_FDS] = other->port->fd;
	}
	return some[fuzz_below(RIG_FDS + 1)];
}

static void fdx_datagram(int from)
{
	struct near_fdx fdx[2] = { { .from = other->addr,
		.to = us->addr.nonce, .kind = fuzz_below(NEAR_FDX_KINDS + 1) } };
	uint32_t fds = fuzz_below(RIG_MAX_FDS + 1), i;
	size_t len = sizeof(fdx[0]);
	int fd[RIG_MAX_FDS];

	fdx->count = fuzz_once_in(4) ? (uint32_t)fuzz_value() : fds;
	if (fuzz_once_in(2))
		fdx->from.nonce += fuzz_below(100);
	for (i = fuzz_below(3); i--;)
		fuzz_change(fdx, sizeof(fdx[0]));
	if (fuzz_once_in(8))
		len = fuzz_below(sizeof(fdx));
	for (i = 0; i < fds; i++)
		fd[i] = fdx_fd();
	/* a datagram that the socket's short queue rejects is lost */
	rig_datagram(from, us, fdx, len, fd, fds);
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
