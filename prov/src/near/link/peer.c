/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "near/link/port.h"
#include "base/proc.h"
#include "base/util.h"

static struct near_peer **near_hash(struct near_port *port,
				    const struct near_addr *addr)
{
	return &port->hash[addr->nonce % NEAR_HASH];
}

struct near_peer *near_peer_find(struct near_port *port,
				 const struct near_addr *addr)
{
	struct near_peer *peer = *near_hash(port, addr);

	while (peer && memcmp(&peer->addr, addr, sizeof(*addr)))
		peer = peer->same_hash;
	return peer;
}

int near_peer_get(struct near_port *port, const struct near_addr *addr,
		  struct near_peer **peer_out)
{
	struct near_peer *peer = near_peer_find(port, addr), **head;

	if (!peer) {
		peer = duo_alloc(sizeof(*peer));
		if (!peer)
			return -ENOMEM;
		near_tx_none(&peer->tx);
		peer->addr = *addr;
		peer->pidfd = peer->wake_fd = -1;
		memset(peer->fd, -1, sizeof(peer->fd));
		near_list_init(&peer->waiting);
		peer->far = peer->needs_fdx = addr->pid_ns != port->addr.pid_ns;
		/*
		 * single copy needs the peer's pid, but a far peer's address
		 * has the pid of another namespace
		 */
		peer->reads = peer->coop = !peer->far && port->reads;
		if (!memcmp(addr, &port->addr, sizeof(*addr)))
			peer->own = &port->tx_ops;
		head = near_hash(port, addr);
		peer->same_hash = *head;
		*head = peer;
		near_list_append(&port->peers, &peer->link);
		near_budget_peers(port, peer, 1);
		port->sink->peer_up(port->ctx, peer);
	}
	peer->refs++;
	*peer_out = peer;
	return 0;
}

void near_peer_expect(struct near_port *port, struct near_peer *peer,
		      bool expected)
{
	if (peer->expected == expected)
		return;
	peer->expected = expected;
	if (expected)
		near_peer_hold(peer);
	else
		near_peer_put(port, peer);
}

void near_disconnect(struct near_port *port, struct near_peer *peer)
{
	if (!peer->segment)
		return;
	if (port->poll_word == &peer->tx.ctl->done)
		near_port_clear_poll_word(port);
	__atomic_store_n(&peer->segment->claim[peer->index].state,
			 NEAR_CLAIM_CLOSED, __ATOMIC_RELEASE);
	near_doorbell_ring(peer);
	munmap(peer->tx.ctl, peer->ring_size);
	near_segment_close(peer->segment);
	near_tx_none(&peer->tx);
	peer->segment = NULL;
	if (peer->wake_fd >= 0)
		close(peer->wake_fd);
	peer->wake_fd = -1;
	peer->wake_due = false;
	peer->state = NEAR_PEER_NEW;
}

/*
 * This port may still copy device memory from or to the peer's stage, the
 * shared memory for RMA of device memory. forget() waits for the end of these
 * copies. It must come before near_disconnect(), because afterwards the peer
 * may reuse the stage for another port.
 */
void near_peer_free(struct near_port *port, struct near_peer *peer)
{
	if (peer->rma)
		port->onesided->forget(peer);
	near_disconnect(port, peer);
	near_fd_drop_all(peer);
	near_unmonitor(port, peer);
	port->sink->peer_release(port->ctx, peer);
	free(peer);
}

/*
 * Keeps a peer that is connected and has not failed, even without references:
 * later messages to the peer must use the same ring.
 */
void near_peer_put(struct near_port *port, struct near_peer *peer)
{
	struct near_peer **at = near_hash(port, &peer->addr);

	if (--peer->refs || (peer->segment && !peer->draining))
		return;
	while (*at != peer)
		at = &(*at)->same_hash;
	*at = peer->same_hash;
	near_list_remove(&peer->link);
	if (peer->state != NEAR_PEER_GONE)
		near_budget_peers(port, peer, -1);
	if (peer->draining)
		port->draining--;
	/* no operation with the peer is pending: it would hold a reference */
	near_peer_free(port, peer);
}

void near_peer_prepare(struct near_port *port, struct near_peer *peer)
{
	if (peer->needs_fdx)
		near_peer_monitor(port, peer);
}

bool near_peer_usable(const struct near_peer *peer)
{
	return peer->state < NEAR_PEER_CLOSED_OFF && !peer->draining;
}

bool near_peer_exists(const struct near_peer *peer)
{
	return !peer->draining && near_monitored(peer);
}

bool near_peer_rings(const struct near_peer *peer)
{
	return peer->tx.slots || peer->waits_ms;
}

void near_peer_set_user(struct near_peer *peer, void *user)
{
	peer->user = user;
}

/*
 * Opens the peer's wake pipe. Returns a file descriptor or -errno.
 * O_RDWR prevents SIGPIPE after the peer's exit. near_peer_check_open() comes
 * last: if the peer still exists then, the pipe is not that of another process
 * with the same pid.
 */
static int near_peer_wake_fd(const struct near_peer *peer)
{
	struct stat st;
	int ret, fd = near_peer_open(peer, NEAR_FD_WAKE,
				     peer->segment->wake_fd, O_RDWR);

	if (fd < 0)
		return fd;
	ret = fstat(fd, &st) || !S_ISFIFO(st.st_mode) ?
	      -ESRCH : near_peer_check_open(peer);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/*
 * Writes a byte to the peer's wake pipe. Returns 0, or -errno if the pipe
 * cannot be opened.
 */
static int near_wake(struct near_peer *peer)
{
	int fd = peer->wake_fd;

	if (fd < 0)
		fd = near_peer_wake_fd(peer);
	if (fd < 0)
		return fd;
	/*
	 * if the pipe is full, write() fails, but the full pipe wakes the peer
	 */
	(void)!write(fd, "", 1);
	if (duo_proc_scarce(fd)) {
		close(fd);
		fd = -1;
	}
	peer->wake_fd = fd;
	return 0;
}

/*
 * Memory ordering: store buffering (memory-ordering.md, *Sleeping*). This
 * function sets doorbell bits, then loads `armed`. near_arm() stores `armed`,
 * then loads the doorbell. Full barriers keep both in order.
 *
 * Clears `armed` only after near_wake(). If this process is killed before
 * near_wake(), `armed` is still set, so the next sender wakes the peer.
 */
void near_doorbell_ring(struct near_peer *peer)
{
	struct near_segment *segment = peer->segment;
	uint32_t word = peer->index / 64, sleep;
	int ret;

	__atomic_fetch_or(&segment->doorbell[word], 1ull << peer->index % 64,
			  __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&segment->doorbell_words, 1ull << word,
			  __ATOMIC_SEQ_CST);
	sleep = __atomic_load_n(&segment->armed, __ATOMIC_SEQ_CST);
	ret = near_unlikely(sleep) ? near_wake(peer) : 0;
	/* the process has become non-dumpable since this port connected */
	if (near_unlikely(ret == -EACCES))
		peer->needs_fdx = true;
	peer->wake_due = ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM ||
			 ret == -EACCES;
	if (near_unlikely(sleep) && !ret)
		__atomic_compare_exchange_n(&segment->armed, &sleep, 0, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/*
 * Requests the peer's wake pipe if /proc gives no access to it. The request's
 * datagram wakes the peer, too. False: the request cannot succeed.
 */
static bool near_wake_request(struct near_port *port, struct near_peer *peer)
{
	int ret = -EAGAIN;

	if (peer->needs_fdx && peer->fd[NEAR_FD_WAKE] < 0)
		ret = near_fdx_request(port, peer);
	return ret == -EAGAIN || ret == -EMFILE || ret == -ENFILE;
}

bool near_wakes_repeat(struct near_port *port)
{
	struct near_peer *peer;
	bool done = true;

	near_list_each(peer, &port->peers, link) {
		if (near_likely(!peer->wake_due))
			continue;
		near_doorbell_ring(peer);
		peer->wake_due = peer->wake_due &&
				 near_wake_request(port, peer);
		done = done && !peer->wake_due;
	}
	return done;
}

/*
 * Takes a free claim. pid: pid of this process; 0: the receiver is in another
 * pid namespace. Returns the claim's index or -errno; -ENOSPC: no claim is
 * free.
 */
static int near_claim(struct near_segment *segment, int fd, uint32_t pid)
{
	const off_t first = offsetof(struct near_segment, claim);
	/* the claims before the file's first hole have memory already */
	off_t hole = lseek(fd, first, SEEK_HOLE), at;
	uint32_t i, state;
	int ret;

	for (i = 0; i < NEAR_SENDERS; i++) {
		at = first + (off_t)(i * sizeof(segment->claim[i]));
		if (!(i % NEAR_CLAIMS_PER_PAGE) && at >= hole) {
			ret = near_segment_reserve(fd, (size_t)at, NEAR_PAGE);
			if (ret)
				return ret;
		}
		state = NEAR_CLAIM_FREE;
		if (__atomic_compare_exchange_n(
			    &segment->claim[i].state, &state,
			    NEAR_CLAIM_TAKEN | pid << NEAR_CLAIM_PID, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return (int)i;
	}
	return -ENOSPC;
}

/*
 * Computes a new ring's place. The ring has the advertised size if its index is
 * below the advertised number and the advertised size is valid. Otherwise the
 * ring has one page.
 */
static void near_connect_place(const struct near_segment *segment,
			       uint32_t growing, uint32_t index,
			       struct near_place *place)
{
	uint32_t adv = __atomic_load_n(&segment->adv, __ATOMIC_RELAXED);

	if (index >= adv >> NEAR_ADV_BELOW ||
	    !near_place(growing, index, adv & NEAR_ADV_TIER, place))
		near_place(growing, index, near_tier_least(), place);
}

/* Takes a claim, maps its ring, and opens the claim. Returns 0 or -errno. */
static int near_connect_ring(struct near_port *port, struct near_peer *peer,
			     struct near_segment *segment, uint32_t growing,
			     int fd)
{
	struct near_place place;
	struct near_claim *claim;
	uint32_t index;
	void *ring;
	int ret;

	ret = near_claim(segment, fd, peer->far ? 0 : (uint32_t)port->addr.pid);
	if (ret < 0)
		return ret;
	index = (uint32_t)ret;
	claim = &segment->claim[index];
	near_connect_place(segment, growing, index, &place);
	ret = near_segment_reserve(fd, place.offset, place.size);
	if (!ret)
		ret = near_ring_map(fd, &place, &ring);
	if (ret) {
		near_segment_clear(fd, place.offset, place.size);
		__atomic_store_n(&claim->state, NEAR_CLAIM_FREE,
				 __ATOMIC_RELEASE);
		return ret;
	}
	claim->addr = port->addr;
	claim->tier = place.tier;
	__atomic_store_n(&claim->state, NEAR_CLAIM_OPEN, __ATOMIC_RELEASE);
	near_tx_init(&peer->tx, ring, &place);
	if (port->fence || segment->flags & NEAR_SEGMENT_FENCE)
		peer->tx.fence = NEAR_FENCE_ALWAYS;
	else if (!near_barrier_ready())
		peer->tx.fence = NEAR_FENCE_UNREGISTERED;
	peer->index = index;
	peer->ring_size = place.span;
	near_resize_init(&peer->resize, (uint8_t)place.tier,
			 (uint8_t)near_tier_most(growing, index));
	peer->logged = false;
	peer->segment = segment;
	peer->state = NEAR_PEER_OPEN;
	near_doorbell_ring(peer);
	return 0;
}

static const char *near_connect_remedy(int err)
{
	switch (err) {
	case -EMFILE:
		return ". Raise the limit of open files";
	case -EACCES:
		return ". It belongs to another user, or may not be traced";
	case -ENOMEM:
		return ". The system, or a memory control group, is out of "
		       "memory";
	case -EINVAL:
		return ": not an address of this version of near. Use the "
		       "same version in all processes";
	case -ENOTSUP:
		return ": its page size is not that of this process. Run both "
		       "processes without an emulator, or both in the same one";
	default:
		return "";
	}
}

/*
 * Logs the first failure to connect to the peer. Returns near_connect()'s
 * error.
 */
static int near_connect_failed(struct near_port *port, struct near_peer *peer,
			       int err)
{
	if (err == -ESRCH) {
		near_peer_fail(port, peer);
		return -ECONNRESET;
	}
	if (!peer->logged && err != -ETIMEDOUT)
		near_log(port, err == -ENOENT,
			 "peer %d: cannot connect: %s%s", peer->addr.pid,
			 err == -ENOSPC ? "all its rings are in use" :
			 strerror(-err), near_connect_remedy(err));
	peer->logged = true;
	switch (err) {
	case -ENOSPC:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return -EAGAIN;
	default:
		peer->state = NEAR_PEER_CLOSED_OFF;
		if (peer->ring)
			near_claim_reject(port, peer->ring->index);
		return -EHOSTUNREACH;
	}
}

/* Returns a file descriptor of the peer's segment or -errno. -EAGAIN: retry. */
static int near_connect_open(struct near_port *port, struct near_peer *peer)
{
	/* must come first: fails if another process has the peer's pid now */
	int fd, ret = near_monitor(port, peer);

	if (ret)
		return ret;
	fd = near_peer_open(peer, NEAR_FD_SEGMENT, peer->addr.fd, O_RDWR);
	if (near_peer_shut(peer, fd))
		return -ESRCH;
	if ((fd != -EACCES && fd != -EPERM) || port->fdx < 0)
		return fd;
	peer->needs_fdx = true;
	ret = near_fdx_request(port, peer);
	/* if the peer exists, but has no socket, the error of /proc remains */
	return ret == -ESRCH && !peer->exited && near_monitored(peer) ?
	       fd : ret;
}

/*
 * Returns -EAGAIN until the wait has taken port->timeout_ms, and then
 * -ETIMEDOUT. If port->timeout_ms is 0, the wait has no limit.
 */
static int near_connect_wait(struct near_port *port, struct near_peer *peer)
{
	uint64_t now = duo_now_ms();

	if (!peer->waits_ms)
		peer->waits_ms = now;
	if (!port->timeout_ms || now - peer->waits_ms < port->timeout_ms)
		return -EAGAIN;
	near_log(port, 0, "peer %d: no reply to the connection request within "
		 "%u ms, and /proc gives no access to its memory. Make it read "
		 "its completion queue more often, or run it in the same pid "
		 "namespace, as the same user", peer->addr.pid,
		 (unsigned int)(now - peer->waits_ms));
	return -ETIMEDOUT;
}

int near_connect(struct near_port *port, struct near_peer *peer)
{
	struct near_segment *segment;
	uint32_t growing;
	int fd, ret;

	if (near_peer_failed(peer))
		return -ECONNRESET;
	if (peer->state == NEAR_PEER_CLOSED_OFF)
		return -EHOSTUNREACH;
	ret = near_addr_check(port, &peer->addr);
	if (ret)
		return near_connect_failed(port, peer, ret);
	fd = near_connect_open(port, peer);
	if (fd == -EAGAIN && peer->waits_ms) {
		/* the peer's reply may have arrived already */
		near_fdx_read(port);
		fd = near_connect_open(port, peer);
	}
	if (fd == -EAGAIN)
		fd = near_connect_wait(port, peer);
	if (fd == -EAGAIN)
		return fd;
	peer->waits_ms = 0;
	if (fd < 0)
		return near_connect_failed(port, peer, fd);
	ret = near_segment_open(&segment, &growing, fd, peer->addr.nonce);
	if (!ret) {
		ret = near_connect_ring(port, peer, segment, growing, fd);
		if (ret)
			near_segment_close(segment);
	}
	close(fd);
	if (ret)
		return near_connect_failed(port, peer,
					   near_peer_shut(peer, ret) ?
					   -ESRCH : ret);
	near_fd_drop(peer, NEAR_FD_SEGMENT);
	return 0;
}
