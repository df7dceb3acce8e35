/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

static struct rig_event *rig_event(struct rig *rig, enum rig_kind kind)
{
	struct rig_event *event = &rig->event[rig->count++];

	ck_assert_uint_le(rig->count, RIG_EVENTS);
	memset(event, 0, sizeof(*event));
	event->kind = kind;
	return event;
}

static int rig_arrived(void *ctx, struct near_peer *source,
		       struct near_msg *msg)
{
	struct rig *rig = ctx;
	struct rig_event *event;
	size_t len = msg->len < RIG_PAYLOAD ? msg->len : RIG_PAYLOAD;

	if (rig->reject) {
		rig->reject--;
		return -EAGAIN;
	}
	event = rig_event(rig, msg->payload ? RIG_MSG : RIG_RNDV);
	event->peer = source;
	event->msg = *msg;
	near_peer_hold(source);
	if (msg->payload) {
		memcpy(event->payload, msg->payload, len);
		event->sum = rig_sum(msg->payload, msg->len);
	}
	return 0;
}

static void rig_received(void *ctx, void *cookie, int err)
{
	struct rig_event *event = rig_event(ctx, RIG_RECEIVED);

	event->cookie = cookie;
	event->err = err;
}

static void rig_sent(void *ctx, void *cookie, int err)
{
	struct rig_event *event = rig_event(ctx, RIG_SENT);

	event->cookie = cookie;
	event->err = err;
}

static void rig_peer_up(void *ctx, struct near_peer *peer)
{
	near_peer_set_user(peer, NULL);
}

static void rig_gone(void *ctx, struct near_peer *peer)
{
	rig_event(ctx, RIG_GONE)->peer = peer;
	near_peer_hold(peer);
}

static void rig_forgotten(void *ctx, struct near_peer *peer)
{
	struct rig *rig = ctx;

	if (rig->on_forgotten)
		rig->on_forgotten(rig, peer);
}

static const struct near_sink rig_sink = {
	.arrived = rig_arrived,
	.received = rig_received,
	.sent = rig_sent,
	.peer_up = rig_peer_up,
	.peer_down = rig_gone,
	.peer_release = rig_forgotten,
};

static struct rig *rig_logging;

static void rig_log(int level, const char *text)
{
	if (!level && rig_logging)
		rig_logging->warnings++;
}

static LIST_HEAD(, rig) rigs = LIST_HEAD_INITIALIZER(rigs);

struct rig *rig_open(bool no_cma)
{
	return rig_open_with(no_cma, NEAR_MEMORY);
}

struct rig *rig_open_with(bool no_cma, size_t memory)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct near_attr attr = {
		.sink = &rig_sink, .ctx = rig, .log = rig_log,
		.no_cma = no_cma, .memory = memory,
	};

	ck_assert_ptr_nonnull(rig);
	ck_assert_int_eq(near_open(&rig->port, &attr), 0);
	near_address(rig->port, &rig->addr);
	rig->idle = rig_taken(rig);
	LIST_INSERT_HEAD(&rigs, rig, open);
	return rig;
}

pid_t rig_child(void (*act)(struct rig *rig), bool no_cma,
		struct near_addr *addr)
{
	struct rig *rig;
	int report[2];
	pid_t child;

	ck_assert_int_eq(pipe(report), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rig = rig_open(no_cma);
		if (act)
			act(rig);
		if (write(report[1], &rig->addr, sizeof(rig->addr)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(report[1]);
	ck_assert_int_eq(read(report[0], addr, sizeof(*addr)), sizeof(*addr));
	close(report[0]);
	return child;
}

int rig_send_when(struct rig *rig, struct near_peer *peer, uint64_t tag,
		  struct rig *other)
{
	uint64_t end = duo_now_ms() + RIG_TIMEOUT_MS;
	int ret;

	while ((ret = rig_send(rig, peer, tag, "8 bytes", 8)) == -EAGAIN) {
		ck_assert(duo_now_ms() < end);
		rig_poll(rig, NEAR_TICK_POLLS);
		if (other)
			rig_poll(other, NEAR_TICK_POLLS);
		else
			sched_yield();
	}
	return ret;
}

void rig_skip(const char *test, const char *reason)
{
	fprintf(stderr, "SKIP: near %s (%s)\n", test, reason);
}

unsigned int rig_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct near_peer *rig_pair(struct rig **a, struct rig **b, bool no_cma)
{
	*a = rig_open(no_cma);
	*b = rig_open(no_cma);
	return rig_peer(*a, *b);
}

void rig_connect_many(struct rig **other, struct near_peer **to, uint32_t count,
	       struct rig *us, size_t len)
{
	static uint8_t buf[NEAR_EAGER_MAX];
	uint32_t i, before = us->count;

	for (i = 0; i < count; i++) {
		other[i] = rig_open(false);
		to[i] = rig_peer(other[i], us);
		ck_assert_int_eq(rig_send(other[i], to[i], i, buf, len), 0);
	}
	rig_until(us, NULL, before + count);
}

void rig_stop(struct rig *rig)
{
	near_close(rig->port);
	rig->port = NULL;
}

void rig_close(struct rig *rig)
{
	LIST_REMOVE(rig, open);
	if (rig->port)
		rig_stop(rig);
	free(rig);
}

void rig_close_all(void)
{
	while (!LIST_EMPTY(&rigs))
		rig_close(LIST_FIRST(&rigs));
}

void rig_poll(struct rig *rig, int times)
{
	rig_logging = rig;
	while (times--)
		near_poll(rig->port, &rig_sink);
}

void rig_poll_ms(struct rig *rig, unsigned int ms)
{
	uint64_t end = duo_now_ms() + ms, cpu_end = unit_cpu_ms() + ms;

	while (duo_now_ms() < end || unit_cpu_ms() < cpu_end)
		rig_poll(rig, NEAR_TICK_POLLS);
}

void rig_until(struct rig *rig, struct rig *other, uint32_t count)
{
	uint64_t end = duo_now_ms() + RIG_TIMEOUT_MS;

	while (rig->count < count) {
		rig_poll(rig, 1);
		if (other)
			rig_poll(other, 1);
		else
			sched_yield();
		ck_assert_msg(duo_now_ms() < end, "%u events, not %u",
			      rig->count, count);
	}
}

struct near_peer *rig_peer_at(struct rig *rig, const struct near_addr *addr)
{
	struct near_peer *peer;

	ck_assert_int_eq(near_peer_get(rig->port, addr, &peer), 0);
	return peer;
}

struct near_peer *rig_peer(struct rig *rig, const struct rig *other)
{
	return rig_peer_at(rig, &other->addr);
}

int rig_send(struct rig *rig, struct near_peer *peer, uint64_t tag,
	     const void *buf, size_t len)
{
	struct near_msg msg = {
		.payload = buf, .len = len, .tag = tag, .data = tag << 8,
		.flags = NEAR_TAGGED,
	};

	rig_logging = rig;
	return near_send(rig->port, peer, &msg);
}

int rig_send_large(struct rig *rig, struct near_peer *peer, uint64_t tag,
		   void *buf, size_t len, void *cookie)
{
	struct near_msg msg = {
		.payload = buf, .len = len, .tag = tag, .flags = NEAR_DATA,
	};
	struct iovec iov = { buf, len };
	struct near_large large = {
		.iov = &iov, .count = 1, .cookie = cookie,
	};

	return near_send_large(rig->port, peer, &msg, &large);
}

void rig_take(struct rig *rig, uint32_t at, void *buf, size_t space)
{
	const struct rig_event *event = &rig->event[at];
	const struct iovec iov = { buf, space };

	ck_assert_int_eq(event->kind, RIG_RNDV);
	ck_assert_int_eq(near_recv(rig->port, event->peer, &event->msg.rndv,
				   &iov, 1, event->msg.len, buf), 0);
}

void rig_ended(const struct rig *rig, uint32_t at, enum rig_kind kind, int err)
{
	ck_assert_int_eq(rig->event[at].kind, kind);
	ck_assert_int_eq(rig->event[at].err, err);
}

void rig_until_event(struct rig *rig, struct rig *other, uint32_t count,
		     enum rig_kind kind, int err)
{
	rig_until(rig, other, count);
	rig_ended(rig, count - 1, kind, err);
}

uint32_t rig_sum(const void *buf, size_t len)
{
	const uint8_t *bytes = buf;
	uint32_t sum = (uint32_t)len;

	while (len--)
		sum = sum * 31 + *bytes++;
	return sum;
}

void rig_fill(void *buf, size_t len, unsigned int seed)
{
	uint64_t word = seed;
	uint8_t *at = buf;
	size_t n;

	for (; len; len -= n, at += n) {
		word = word * 6364136223846793005ULL + 1442695040888963407ULL;
		n = len < sizeof(word) ? len : sizeof(word);
		memcpy(at, &word, n);
	}
}

struct near_rx_ring *rig_rx_ring(struct rig *rig, const struct rig *other)
{
	struct near_peer *peer = near_peer_find(rig->port, &other->addr);
	uint32_t i;

	for (i = 0; i < rig->port->ring_count; i++)
		if (rig->port->ring[i] && rig->port->ring[i]->peer == peer)
			return rig->port->ring[i];
	ck_abort_msg("no lane");
	return NULL;
}

unsigned int rig_rx_rings(const struct rig *rig)
{
	unsigned int n = 0;
	uint32_t i;

	for (i = 0; i < rig->port->ring_count; i++)
		n += !!rig->port->ring[i];
	return n;
}

size_t rig_taken(const struct rig *rig)
{
	struct stat st;

	ck_assert_int_eq(fstat(rig->port->fd, &st), 0);
	return (size_t)st.st_blocks * 512;
}

uint32_t rig_pages(const struct rig *rig)
{
	const struct near_budget *budget = &rig->port->budget;

	ck_assert_uint_eq(rig_taken(rig) - rig->idle,
			  (budget->rings + budget->extra) * near_page_size());
	return budget->rings + budget->extra;
}

void rig_fds(const struct rig *rig, int fd[RIG_FDS])
{
	int pair[2];

	fd[RIG_SEALED] = rig->port->fd;
	fd[RIG_UNSEALED] = memfd_create("unsealed", MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(fd[RIG_UNSEALED], 1 << 22), 0);
	ck_assert_int_eq(pipe(pair), 0);
	fd[RIG_PIPE] = pair[1];
	fd[RIG_PIDFD] = duo_proc_pidfd(getpid());
}

ssize_t rig_datagram(int from, const struct rig *to, void *data, size_t len,
		     const int *fd, uint32_t n)
{
	char rights[CMSG_SPACE(RIG_MAX_FDS * sizeof(int))]
		__attribute__((aligned(8))) = { 0 };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct iovec iov = { data, len };
	struct msghdr msg = {
		.msg_name = &name, .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = n ? rights : NULL,
		.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0,
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	msg.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
		1 + (size_t)sprintf(name.sun_path + 1, "near.%016llx",
				    (unsigned long long)to->addr.nonce));
	if (cmsg) {
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fd, n * sizeof(int));
	}
	return sendmsg(from, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

uint64_t rig_overfill(struct rig *rig, struct near_peer *peer, uint64_t tag)
{
	static const uint8_t buf[40];
	uint32_t i;

	for (i = 0; i < 10; i++)
		while (!rig_send(rig, peer, tag, buf, sizeof(buf)))
			tag++;
	return tag;
}

void rig_until_gone(struct rig *rig, uint32_t events)
{
	uint64_t start_ms = unit_cpu_ms();

	rig_until(rig, NULL, events);
	ck_assert_uint_le(unit_cpu_ms() - start_ms, RIG_GONE_MS);
	ck_assert_int_eq(rig->event[events - 1].kind, RIG_GONE);
	rig_poll_ms(rig, 50);
	ck_assert_uint_eq(rig->count, events);
	ck_assert_uint_eq(rig_rx_rings(rig), 0);
	/* no page is kept for the peer, even if references to it are left */
	ck_assert_uint_eq(rig->port->budget.peers, 0);
}
