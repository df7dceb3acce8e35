/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "near/link/port.h"
#include "base/proc.h"
#include "base/util.h"

void near_log(const struct near_port *port, int level, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!port->log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	port->log(level, text);
}

bool near_port_barrier(struct near_port *port)
{
	if (!port->fence && !near_barrier()) {
		near_log(port, port->barrier_failed, "membarrier: %s; until "
			 "it succeeds, idle rings are polled and threads do "
			 "not sleep", strerror(errno));
		port->barrier_failed = true;
		return false;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return true;
}

/* Sets port->addr, except fd and flags. */
static int near_port_name(struct near_port *port)
{
	struct near_addr *addr = &port->addr;
	int ret;

	addr->magic = NEAR_MAGIC;
	addr->layout = NEAR_LAYOUT;
	addr->pid = getpid();
	if (getrandom(&addr->nonce, sizeof(addr->nonce), 0) !=
	    sizeof(addr->nonce))
		return -errno;
	ret = duo_proc_host(&addr->host);
	if (!ret)
		ret = duo_proc_ns(&addr->pid_ns);
	if (!ret)
		ret = duo_proc_start(addr->pid, &addr->start);
	/* -ENOENT and -ESRCH: there is no /proc */
	return ret == -ENOENT || ret == -ESRCH ? -EOPNOTSUPP : ret;
}

static const char *near_port_remedy(int ret)
{
	switch (-ret) {
	case EOPNOTSUPP:
		return ". Mount /proc";
	case EFBIG:
		return ". Raise the file size limit (ulimit -f), or lower "
		       "FI_NEAR_RING_MEMORY";
	case ENOMEM:
		return ". The system, or a memory control group, is out of "
		       "memory";
	case ENOSYS:
		return ". Permit memfd_create (seccomp profile)";
	default:
		return "";
	}
}

static int near_port_memory(struct near_port *port)
{
	port->ring = calloc(NEAR_SENDERS, sizeof(struct near_rx_ring *));
	port->active = calloc(NEAR_SENDERS, sizeof(struct near_rx_ring *));
	if (!port->ring || !port->active)
		return -ENOMEM;
	port->fd = near_segment_create(&port->segment, port->budget.growing,
				       port->addr.nonce, port->fence);
	if (port->fd < 0)
		return port->fd;
	near_budget_advertise(port);
	port->addr.fd = port->fd;
	port->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return port->epoll_fd < 0 ? -errno : 0;
}

static void near_port_free(struct near_port *port)
{
	near_fdx_close(port);
	port->messages->close(port);
	if (port->onesided)
		port->onesided->close(port);
	if (port->epoll_fd >= 0)
		close(port->epoll_fd);
	if (port->wake[0] >= 0) {
		close(port->wake[0]);
		close(port->wake[1]);
	}
	if (port->fd >= 0)
		close(port->fd);
	if (port->segment)
		near_segment_close(port->segment);
	free(port->active);
	free(port->ring);
	free(port);
}

int near_port_open(struct near_port **port_out, const struct near_attr *attr,
		   const struct near_messages *messages)
{
	struct near_port *port = duo_alloc(sizeof(*port));
	int ret;

	if (!port)
		return -ENOMEM;
	port->messages = messages;
	port->sink = attr->sink;
	port->ctx = attr->ctx;
	port->log = attr->log;
	port->reads = !attr->no_cma;
	port->timeout_ms = attr->timeout_ms;
	port->fd = port->epoll_fd = port->wake[0] = -1;
	port->table_fd = port->fdx = port->dir = -1;
	near_list_init(&port->peers);
	near_list_init(&port->sending);
	near_list_init(&port->receiving);
	near_list_init(&port->onesided_work);
	near_port_clear_poll_word(port);
	near_budget_init(&port->budget, attr->memory);
	port->fence = !near_barrier_begin();
	port->tick_at = port->tick_polls = 1;
	port->ticked_ms = port->checked_ms = duo_now_ms();
	/*
	 * Yama may deny peers the access to this process's memory, which single
	 * copy requires. prctl() permits this access, and also lets all
	 * processes of the user debug this process.
	 */
	if (!attr->no_cma && !attr->no_ptracer)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	ret = near_port_name(port);
	if (!ret)
		ret = near_port_memory(port);
	if (ret) {
		near_log(port, 0, "cannot create shared memory: %s%s",
			 strerror(-ret),
			 near_port_remedy(ret));
		near_port_free(port);
		return ret;
	}
	*port_out = port;
	return 0;
}

/*
 * Attaches to each peer that sends to this port, but to which this port has
 * never sent. near_close() then closes the new claim, which shows the peer that
 * this port has closed, and wakes the peer's sleeping threads. `logged` and
 * `rejected` prevent logs and fd requests.
 */
static void near_close_attach(struct near_port *port)
{
	const struct near_claim *claim = port->segment->claim;
	struct near_peer *peer;
	uint32_t i;

	for (i = 0; i < port->ring_count; i++) {
		peer = port->ring[i] ? port->ring[i]->peer : NULL;
		if (!peer || peer->tx.slots ||
		    __atomic_load_n(&claim[i].state, __ATOMIC_RELAXED) !=
		    NEAR_CLAIM_OPEN)
			continue;
		peer->logged = peer->rejected = true;
		near_connect(port, peer);
	}
}

void near_close(struct near_port *port)
{
	struct near_link *link;
	struct near_peer *peer;
	uint32_t i;

	port->messages->stop(port);
	near_close_attach(port);
	/*
	 * near_disconnect() must open the wake pipe of a sleeping peer, even if
	 * the process has no other free descriptors than these two. This port's
	 * own wake pipe stays open until peers can load `closed`, because they
	 * may open its descriptor number and write to the file.
	 */
	close(port->epoll_fd);
	close(port->fd);
	port->epoll_fd = port->fd = -1;
	for (i = 0; i < port->ring_count; i++)
		if (port->ring[i])
			near_rx_ring_free(port, port->ring[i]);
	while (!near_list_empty(&port->peers)) {
		link = port->peers.next;
		peer = near_container(link, struct near_peer, link);
		near_list_remove(link);
		near_peer_free(port, peer);
	}
	/*
	 * last: when peers load 1, they may free the rings in which this port
	 * sent to them, so this port must not write to these rings any more
	 */
	__atomic_store_n(&port->segment->closed, 1, __ATOMIC_RELEASE);
	near_port_free(port);
}

void near_address(const struct near_port *port, struct near_addr *addr)
{
	*addr = port->addr;
}

int near_addr_check(const struct near_port *port, const struct near_addr *addr)
{
	if (addr->magic != NEAR_MAGIC || addr->layout != NEAR_LAYOUT ||
	    addr->pid <= 0 || addr->fd < 0)
		return -EINVAL;
	if (addr->host != port->addr.host ||
	    (addr->pid_ns != port->addr.pid_ns && port->fdx < 0))
		return -EHOSTUNREACH;
	return 0;
}
