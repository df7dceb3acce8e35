/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Detects failed peers (docs/near/design.md). Provides the file descriptor on
 * which threads sleep until the port has an event, and wakes these threads.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "near/link/port.h"
#include "base/proc.h"

#define NEAR_FDX_MS 10	/* ms between two reads of the socket port->fdx */
#define NEAR_EVENTS 32	/* limit of events of one epoll_wait() */

int near_epoll_add(struct near_port *port, int fd, void *ptr)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = ptr };

	return epoll_ctl(port->epoll_fd, EPOLL_CTL_ADD, fd, &event) ?
		-errno : 0;
}

/* True if err, from duo_proc_check(), means that /proc hides the process. */
static bool near_hidden(int err)
{
	return err == -EACCES || err == -EPERM || err == -ENOSYS;
}

/*
 * Monitors a peer of this pid namespace by a pidfd, or by its start time.
 * Returns 0 or -errno. -ESRCH: the process has exited. -EACCES: /proc hides the
 * process; peer->needs_fdx is then set if this port has a socket.
 */
static int near_monitor_pid(struct near_port *port, struct near_peer *peer)
{
	int fd = duo_proc_pidfd(peer->addr.pid), ret;

	if (fd == -ESRCH)
		return fd;
	/*
	 * The check must follow pidfd_open(). If the peer's process still has
	 * the pid now, it also had the pid then, so fd is its pidfd.
	 */
	ret = duo_proc_check(peer->addr.pid, peer->addr.start);
	peer->needs_fdx = port->fdx >= 0 && near_hidden(ret);
	if (!ret && fd >= 0 && !duo_proc_scarce(fd) &&
	    !near_epoll_add(port, fd, peer)) {
		peer->pidfd = fd;
		return 0;
	}
	peer->by_start = !ret;
	if (fd >= 0)
		close(fd);
	return near_hidden(ret) ? -EACCES : ret;
}

/*
 * True if a process of this pid namespace has the peer's pid, or if no file
 * descriptor is free to check this.
 */
static bool near_pid_in_use(const struct near_peer *peer)
{
	return !peer->far && duo_proc_check(peer->addr.pid, 0) != -ESRCH;
}

int near_monitor(struct near_port *port, struct near_peer *peer)
{
	int ret;

	if (near_monitored(peer) || near_peer_failed(peer))
		return 0;
	if (!peer->needs_fdx) {
		ret = near_monitor_pid(port, peer);
		if (!peer->needs_fdx)	/* near_monitor_pid() may set it */
			return ret;
	}
	ret = near_fdx_request(port, peer);
	/*
	 * -ESRCH: the peer has no socket. It may still exist, hidden by /proc
	 */
	return ret == -ESRCH && !peer->exited && near_pid_in_use(peer) ?
		-EACCES : ret;
}

void near_peer_monitor(struct near_port *port, struct near_peer *peer)
{
	peer->wanted = true;
	if (near_monitor(port, peer) == -ESRCH)
		near_peer_fail(port, peer);
}

void near_unmonitor(struct near_port *port, struct near_peer *peer)
{
	peer->by_start = false;
	if (peer->pidfd < 0)
		return;
	epoll_ctl(port->epoll_fd, EPOLL_CTL_DEL, peer->pidfd, NULL);
	close(peer->pidfd);
	peer->pidfd = -1;
}

void near_peer_fail(struct near_port *port, struct near_peer *peer)
{
	if (near_peer_failed(peer))
		return;
	peer->draining = true;
	port->draining++;
	if (peer->tx.slots)
		near_tx_gate(&peer->tx, NEAR_GATE_FAILED);
	near_port_added(port, 0);
	peer->exited = near_peer_check_exited(peer);
	near_unmonitor(port, peer);
}

bool near_peer_exited(const struct near_peer *peer)
{
	return peer->exited || peer->shut;
}

/* True if the peer's claim has no rx ring yet, for lack of memory. */
static bool near_peer_ring_due(const struct near_port *port,
			       const struct near_peer *peer)
{
	uint32_t state, i = peer->ring_due - 1;

	if (!peer->ring_due || port->ring[i])
		return false;
	state = __atomic_load_n(&port->segment->claim[i].state,
				__ATOMIC_ACQUIRE);
	return state == NEAR_CLAIM_OPEN || state == NEAR_CLAIM_CLOSED;
}

/*
 * Makes a failed peer's rings active, so that polls deliver its messages.
 * Returns true if all its messages are delivered. Before this function returns
 * true, it calls near_onesided.drained().
 */
static bool near_peer_drained(struct near_port *port, struct near_peer *peer)
{
	struct near_rx_ring *ring;
	uint64_t word;
	uint32_t i;

	if (near_peer_ring_due(port, peer))
		return false;
	for (i = 0; i < port->ring_count; i++) {
		ring = port->ring[i];
		if (!ring || ring->peer != peer)
			continue;
		near_rx_ring_activate(port, ring);
		if (near_rx_slot(&ring->rx, &word) && !ring->broken)
			return false;
	}
	if (peer->rma)
		port->onesided->drained(port, peer);
	return true;
}

/* Sets NEAR_PEER_GONE: ends the peer's operations and frees its rings. */
static void near_peer_end(struct near_port *port, struct near_peer *peer)
{
	uint32_t i;

	near_disconnect(port, peer);
	near_fd_drop_all(peer);
	peer->draining = false;
	port->draining--;
	peer->state = NEAR_PEER_GONE;
	near_budget_peers(port, peer, -1);
	port->messages->fail(port, peer);
	if (peer->rma)
		port->onesided->fail(port, peer);
	port->sink->peer_down(port->ctx, peer);
	for (i = 0; i < port->ring_count; i++)
		if (port->ring[i] && port->ring[i]->peer == peer)
			near_rx_ring_release(port, port->ring[i]);
	near_peer_expect(port, peer, false);
}

/* Calls near_peer_end() for failed peers whose messages are all delivered. */
static void near_port_reap(struct near_port *port)
{
	struct near_link *link, *next;
	struct near_peer *peer;

	/*
	 * A failed peer may have attached to a ring of this port just before
	 * its failure. Creates the rx ring, so that its messages are delivered.
	 */
	near_port_doorbells(port);
	for (link = port->peers.next; link != &port->peers; link = next) {
		peer = near_container(link, struct near_peer, link);
		/*
		 * near_peer_end() may free the next peer, and would also free
		 * this peer if this function held no reference
		 */
		near_peer_hold(peer);
		if (peer->draining && near_peer_drained(port, peer))
			near_peer_end(port, peer);
		next = link->next;
		near_peer_put(port, peer);
	}
}

/* Reads all bytes of the wake pipe. True if there was one. */
static bool near_wake_drain(struct near_port *port)
{
	char bytes[64];
	bool some = false;

	while (read(port->wake[0], bytes, sizeof(bytes)) > 0)
		some = true;
	return some;
}

void near_port_wake(struct near_port *port)
{
	port->asleep = false;
	/*
	 * if the pipe is full, write() fails, but the sleeping threads wake up
	 * nevertheless, because the pipe is readable
	 */
	if (port->wake[0] >= 0)
		(void)!write(port->wake[1], "", 1);
}

/* Reads the socket of the fd exchange. Fails peers with a readable pidfd. */
static void near_port_events(struct near_port *port)
{
	struct epoll_event event[NEAR_EVENTS];
	int n, i;

	do {
		n = epoll_wait(port->epoll_fd, event, NEAR_EVENTS, 0);
		for (i = 0; i < n; i++) {
			if (event[i].data.ptr && event[i].data.ptr != port)
				near_peer_fail(port, event[i].data.ptr);
		}
	} while (n == NEAR_EVENTS);
	if (port->fdx >= 0)
		near_fdx_read(port);
}

/*
 * True if the peer has closed its port, or has rejected this port's claim. This
 * port must be connected to the peer.
 */
static bool near_peer_ended(const struct near_peer *peer)
{
	const struct near_segment *segment = peer->segment;

	return __atomic_load_n(&segment->closed, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&segment->claim[peer->index].state,
			       __ATOMIC_ACQUIRE) != NEAR_CLAIM_OPEN;
}

/*
 * Returns -ESRCH if the peer's process has exited, 0 if the process exists, or
 * an error of /proc. Also returns 0 if this port cannot check the process: it
 * is in another pid or time namespace, and this port has no pidfd of it.
 */
static int near_peer_process(const struct near_peer *peer)
{
	if (peer->exited)
		return -ESRCH;
	if (peer->pidfd >= 0)
		return duo_proc_ended(peer->pidfd) ? -ESRCH : 0;
	return peer->far ? 0 :
	       duo_proc_check(peer->addr.pid, peer->addr.start);
}

bool near_peer_check_exited(const struct near_peer *peer)
{
	return near_peer_process(peer) == -ESRCH;
}

int near_peer_check_open(const struct near_peer *peer)
{
	return __atomic_load_n(&peer->segment->closed, __ATOMIC_ACQUIRE) ?
	       -ESRCH : near_peer_process(peer);
}

/*
 * True if the peer has failed. Makes system calls for the cases that neither
 * the epoll set nor near_peer_ended() detects: this port has not mapped the
 * peer's segment, or has no pidfd of the peer's process.
 */
static bool near_peer_missed(struct near_port *port, struct near_peer *peer)
{
	if (!peer->segment && near_fd_closed(peer))
		return true;
	if (peer->by_start && near_peer_check_exited(peer))
		return true;
	/*
	 * Tries again to monitor the peer: the first attempt found no free
	 * descriptor, or the peer has not replied with a pidfd yet.
	 */
	return (peer->requested_ms || (peer->wanted && !peer->needs_fdx)) &&
	       near_monitor(port, peer) == -ESRCH;
}

/*
 * Calls near_peer_fail() for failed peers. all: also calls near_peer_missed(),
 * which makes system calls.
 */
static void near_port_find_failed(struct near_port *port, bool all)
{
	struct near_peer *peer;

	near_list_each(peer, &port->peers, link)
		if ((peer->segment && near_peer_ended(peer)) ||
		    (all && near_peer_missed(port, peer)))
			near_peer_fail(port, peer);
}

static bool near_port_check_due(const struct near_port *port, uint64_t now)
{
	return near_unlikely(now - port->checked_ms >= NEAR_CHECK_MS);
}

/*
 * Checks for failed peers. Every NEAR_CHECK_MS makes system calls for this, and
 * repeats failed wakeups. Then near_rings_check() is due, too, but only the
 * next tick calls it: near_rings_check() may free rings, and a caller of
 * near_peer_alive() may still use one of them.
 */
static void near_port_check(struct near_port *port, uint64_t now)
{
	bool all = near_port_check_due(port, now);

	if (all)
		port->checked_ms = now;
	near_port_events(port);
	near_port_find_failed(port, all);
	if (all) {
		near_wakes_repeat(port);
		port->rings_due = true;
	}
}

bool near_peer_alive(struct near_port *port, const struct near_peer *peer)
{
	uint64_t now = duo_now_ms();

	if (near_port_check_due(port, now))
		near_port_check(port, now);
	return !near_peer_failed(peer);
}

/*
 * Schedules the next tick. If the last tick was NEAR_CHECK_MS ago or longer,
 * the process polls seldom, and the next poll is a tick.
 */
static void near_tick_next(struct near_port *port, uint64_t now)
{
	if (now - port->ticked_ms >= NEAR_CHECK_MS)
		port->tick_polls = 1;
	else if (port->tick_polls < NEAR_TICK_POLLS)
		port->tick_polls *= 2;
	port->ticked_ms = now;
	port->tick_at = port->polls + port->tick_polls;
}

void near_port_tick(struct near_port *port)
{
	const uint64_t now = duo_now_ms();

	near_tick_next(port, now);
	if (port->polls - port->swept >= NEAR_SWEEP_POLLS) {
		port->swept = port->polls;
		near_port_sweep(port);
	}
	if (near_port_check_due(port, now))
		near_port_check(port, now);
	if (near_unlikely(port->rings_due))
		near_rings_check(port);
	if (port->fdx >= 0 && now - port->fdx_ms >= NEAR_FDX_MS) {
		port->fdx_ms = now;
		near_fdx_read(port);
	}
	if (near_unlikely(port->draining))
		near_port_reap(port);
}

int near_wait_fd(struct near_port *port)
{
	int ret;

	if (port->wake[0] >= 0)
		return port->epoll_fd;
	if (pipe2(port->wake, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	ret = near_epoll_add(port, port->wake[0], NULL);
	if (ret) {
		close(port->wake[0]);
		close(port->wake[1]);
		port->wake[0] = -1;
		return ret;
	}
	__atomic_store_n(&port->segment->wake_fd, port->wake[1],
			 __ATOMIC_RELEASE);
	return port->epoll_fd;
}

bool near_woken(struct near_port *port)
{
	bool rung;

	/*
	 * A sender writes its byte first, and then clears `armed`. It might
	 * have been killed in between. This thread has consumed the byte, so it
	 * must clear `armed` itself, and returns true.
	 */
	if (near_wake_drain(port))
		__atomic_store_n(&port->segment->armed, 0, __ATOMIC_RELAXED);
	rung = !__atomic_load_n(&port->segment->armed, __ATOMIC_ACQUIRE);
	port->asleep = port->asleep && !rung;
	near_port_check(port, duo_now_ms());
	if (port->draining)
		near_port_reap(port);
	return rung;
}
