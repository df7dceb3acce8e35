/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Out-of-band exchange: each rank has a connection with rank 0, over TCP or a
 * socket pair. Waiting functions make progress on open endpoints, because a
 * peer's operations may need it with manual progress.
 */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ft.h"

/* Connections: in rank 0, with each other rank; in other ranks, [0] only. */
static int ft_fd[FT_MAX_RANKS];
static bool ft_entered;
static int ft_arrived;

void ft_oob_adopt(int rank, int fd)
{
	ft_fd[rank] = fd;
}

static void ft_lost(int rank)
{
	fprintf(stderr, "rank %d, %s: rank %d has exited\n", ft.opts.rank,
		ft.phase, rank);
	fflush(NULL);
	_exit(FT_GONE);
}

static void ft_idle(void)
{
	if (ft.neps)
		ft_progress_all();
	sched_yield();
}

static void ft_put(int rank, const void *buf, size_t len)
{
	const char *at = buf;
	ssize_t n;

	while (len) {
		n = send(ft_fd[rank], at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			at += n;
			len -= n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			ft_lost(rank);
		} else {
			ft_idle();
		}
	}
}

static void ft_get(int rank, void *buf, size_t len)
{
	char *at = buf;
	ssize_t n;

	while (len) {
		n = recv(ft_fd[rank], at, len, MSG_DONTWAIT);
		if (n > 0) {
			at += n;
			len -= n;
		} else if (!n || (errno != EAGAIN && errno != EINTR)) {
			ft_lost(rank);
		} else {
			ft_idle();
		}
	}
}

void ft_allgather(const void *in, size_t len, void *out)
{
	char *all = out;
	int r;

	memcpy(all + len * ft.opts.rank, in, len);
	if (ft.opts.rank) {
		ft_put(0, in, len);
		ft_get(0, all, len * ft.opts.nranks);
		return;
	}
	for (r = 1; r < ft.opts.nranks; r++)
		ft_get(r, all + len * r, len);
	for (r = 1; r < ft.opts.nranks; r++)
		ft_put(r, all, len * ft.opts.nranks);
}

void ft_barrier(void)
{
	char in = 0, out[FT_MAX_RANKS];

	ft_allgather(&in, 1, out);
}

/* Consumes a byte from a rank. Returns false if none has arrived. */
static bool ft_poll_byte(int rank)
{
	char c;
	ssize_t n = recv(ft_fd[rank], &c, 1, MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		ft_lost(rank);
	return n == 1;
}

bool ft_barrier_try(void)
{
	int r;

	if (!ft_entered) {
		ft_entered = true;
		ft_arrived = 1;
		if (ft.opts.rank)
			ft_put(0, "", 1);
	}
	if (ft.opts.rank) {
		if (!ft_poll_byte(0))
			return false;
	} else {
		while (ft_arrived < ft.opts.nranks && ft_poll_byte(ft_arrived))
			ft_arrived++;
		if (ft_arrived < ft.opts.nranks)
			return false;
		for (r = 1; r < ft.opts.nranks; r++)
			ft_put(r, "", 1);
	}
	ft_entered = false;
	return true;
}

static struct addrinfo *ft_resolve(const char *host_port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	char host[128], *colon;

	snprintf(host, sizeof(host), "%s", host_port);
	colon = strrchr(host, ':');
	FT_CHECK(colon, "-o must be HOST:PORT, not %s", host_port);
	*colon = 0;
	FT_CHECK(!getaddrinfo(host, colon + 1, &hints, &ai), "resolving %s",
		 host_port);
	return ai;
}

static void ft_serve(struct addrinfo *ai)
{
	int one = 1, lfd, fd, i;
	uint32_t rank;

	lfd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	FT_CHECK(lfd >= 0 && !bind(lfd, ai->ai_addr, ai->ai_addrlen) &&
		 !listen(lfd, FT_MAX_RANKS), "listening: %s", strerror(errno));
	for (i = 1; i < ft.opts.nranks; i++) {
		fd = accept(lfd, NULL, NULL);
		FT_CHECK(fd >= 0, "accept: %s", strerror(errno));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		FT_CHECK(recv(fd, &rank, sizeof(rank), MSG_WAITALL) ==
			 sizeof(rank) && rank < (uint32_t)ft.opts.nranks,
			 "a rank introduces itself wrongly");
		ft_fd[rank] = fd;
	}
	close(lfd);
}

/* Connects to rank 0, and retries until rank 0 listens. */
static void ft_join(struct addrinfo *ai)
{
	uint32_t rank = ft.opts.rank;
	int one = 1, fd;

	while (1) {
		fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		FT_CHECK(fd >= 0, "socket: %s", strerror(errno));
		if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
			break;
		close(fd);
		usleep(20000);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ft_fd[0] = fd;
	ft_put(0, &rank, sizeof(rank));
}

void ft_oob_connect(const char *host_port)
{
	struct addrinfo *ai;

	ft.phase = "connecting the ranks";
	if (ft.opts.nranks == 1)
		return;
	ai = ft_resolve(host_port);
	if (ft.opts.rank)
		ft_join(ai);
	else
		ft_serve(ai);
	freeaddrinfo(ai);
}
