/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A datagram of the fd exchange, with any bytes and file descriptors, from any
 * user: no access is out of bounds, and each descriptor is closed once, or has
 * one owner. A port takes descriptors only from a datagram that its own user
 * has sent, and that has as many descriptors as it states. A port gives or
 * takes a descriptor of device memory only if its own user has sent the
 * datagram, and near_fdx_msg_from() confirms that the port in fdx.from has sent
 * it.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/fdx.c near_fdx_read near_fdx_msg_read near_fdx_msg_fault
 * C: near/link/fdx.c near_fdx_msg_good near_fdx_msg_foreign near_fdx_accept
 * C: near/link/fdx.c near_fdx_monitor near_fdx_msg_fd near_answer
 * C: near/link/fdx.c near_fdx_msg_memory near_fdx_share near_fdx_gpu_request
 * C: near/link/fdx_socket.c near_fdx_msg_drop
 * CBMC: --unwind 6 --object-bits 10
 * EDIT near/link/fdx.c: s/NEAR_FDX_BURST 64/NEAR_FDX_BURST 1/
 * EDIT near/link/fdx_socket.c: s/near_fdx_(send|post|next|msg_from)\(/socket_\1(/g
 * MUTANT count-unchecked near/link/fdx.c: s/fdx->count != msg->fds \|\| msg->fds < NEAR_FD_TABLE/0/
 * MUTANT index-unchecked near/link/fdx.c: s/i < msg->fds \? msg->fd\[i\] : -1/msg->fd[i]/
 * MUTANT descriptor-kept near/link/fdx.c: s/msg->fd\[i\] = -1;/;/
 * MUTANT owned-replaced near/link/fdx.c: s/ && peer->fd\[i\] < 0\)/)/
 * MUTANT user-unchecked near/link/fdx.c: s/ \|\| !near_fdx_msg_same_user\(msg\)/ || 0/
 * MUTANT kind-unchecked near/link/fdx.c: s/msg->fdx.kind >= NEAR_FDX_KINDS/0/
 * MUTANT no-memory-unchecked near/link/fdx.c: s/!port->onesided \|\| //
 * MUTANT name-unchecked near/link/fdx.c: s/ \|\|\n\t    !near_fdx_msg_from\(port, msg, msg->fdx.from.nonce\)//
 * MUTANT shared-not-moved near/link/fdx.c: s/near_fdx_msg_fd\(msg, 0\)\)/msg->fd[0])/
 * MUTANT given-kept near/link/fdx.c: s/if \(fd >= 0\)\n\t\tclose\(fd\);\n\}/}/
 * MUTANT given-uncounted near/link/fdx.c: s/reply.count = fd >= 0/reply.count = 1/
 */

#include "hostile.h"
#include "near/link/fdx_socket.c"
#include "near/link/fdx.c"

#define FIRST 100	/* the datagram's descriptors: FIRST and up */
#define OLD 200		/* `peer` has earlier descriptors: OLD and up */
#define GIVEN 300	/* a descriptor of this port's device memory */
#define MINE 1000	/* this user */

static struct near_port port;
static struct near_peer peer;
static struct near_fdx_msg sent;
static bool closed[NEAR_FD_KINDS], named;
static int taken = -1, given;

bool near_fdx_next(const struct near_port *of, struct near_fdx_msg *msg)
{
	uint32_t i;

	*msg = any(struct near_fdx_msg);
	assume(msg->fds <= NEAR_FD_KINDS);
	for (i = 0; i < NEAR_FD_KINDS; i++)
		msg->fd[i] = i < msg->fds ? (int)(FIRST + i) : any(int);
	sent = *msg;
	return true;
}

int close(int fd)
{
	if (fd >= FIRST && fd < FIRST + NEAR_FD_KINDS) {
		check(!closed[fd - FIRST]);
		closed[fd - FIRST] = true;
	} else {
		check(fd == GIVEN && given == 1);
		given--;
	}
	return 0;
}

uid_t geteuid(void)
{
	return MINE;
}

int fstat(int fd, struct stat *st)
{
	*st = any(struct stat);
	return any(bool) ? 0 : hostile_fails();
}

bool duo_proc_user_known(void)
{
	return true;
}

bool duo_proc_is_pidfd(int fd)
{
	return any(bool);
}

int near_addr_check(const struct near_port *of, const struct near_addr *addr)
{
	return any(bool) ? 0 : -EINVAL;
}

int near_segment_check_file(int fd, size_t *size)
{
	return any(bool) ? 0 : -ENOENT;
}

struct near_peer *near_peer_find(struct near_port *of,
				 const struct near_addr *addr)
{
	return any(bool) ? &peer : NULL;
}

int near_peer_get(struct near_port *of, const struct near_addr *addr,
		  struct near_peer **peer_out)
{
	if (any(bool))
		return -ENOMEM;
	*peer_out = &peer;
	return 0;
}

void near_peer_put(struct near_port *of, struct near_peer *put)
{
}

void near_peer_expect(struct near_port *of, struct near_peer *from,
		      bool expected)
{
}

int near_epoll_add(struct near_port *of, int fd, void *ptr)
{
	return any(bool) ? 0 : -ENOMEM;
}

int near_fdx_send(struct near_port *of, const struct near_addr *to,
		  enum near_fdx_kind kind)
{
	check(kind < NEAR_FDX_KINDS);
	return any(bool) ? 0 : -EAGAIN;
}

int near_fdx_post(struct near_port *of, struct near_fdx *fdx, const int *fd)
{
	if (fdx->kind == NEAR_FDX_GPU_REPLY) {
		check(fdx->to == sent.fdx.from.nonce);
		check(fdx->count == (uint32_t)given);
		check(!given || *fd == GIVEN);
	} else {
		check(fdx->kind == NEAR_FDX_GPU_REQUEST && !fdx->count);
	}
	return any(bool) ? 0 : -EAGAIN;
}

bool near_fdx_msg_from(const struct near_port *of,
		       const struct near_fdx_msg *msg, uint64_t nonce)
{
	named = any(bool) && nonce == sent.fdx.from.nonce;
	return named;
}

static bool mine(void)
{
	return named && sent.known && sent.cred.uid == MINE;
}

static int share(struct near_port *of, uint64_t key, uint64_t id)
{
	check(mine() && !given);
	given = any(bool) ? 1 : 0;
	return given ? GIVEN : -1;
}

static void shared(struct near_port *of, struct near_peer *from, uint64_t id,
		   int fd)
{
	check(mine() && from == &peer);
	taken = fd;
}

uint64_t duo_now_ms(void)
{
	return any(uint64_t);
}

void near_log(const struct near_port *of, int level, const char *format, ...)
{
}

int main(void)
{
	static const struct near_onesided memory = {
		.share = share, .shared = shared,
	};
	bool had[NEAR_FD_KINDS];
	int i, j, owners;

	peer.state = any(enum near_peer_state);
	peer.draining = any(bool);
	peer.by_start = any(bool);
	peer.pidfd = any(bool) ? -1 : OLD;
	port.denied_fdx = any(bool);
	port.addr.nonce = any(uint64_t);
	port.onesided = any(bool) ? &memory : NULL;
	for (i = 0; i < NEAR_FD_KINDS; i++) {
		had[i] = any(bool);
		peer.fd[i] = had[i] ? OLD + 1 + i : -1;
	}
	near_fdx_read(&port);
	check(!given);
	near_fdx_gpu_request(&port, &peer, any(uint64_t), any(uint64_t));
	for (i = 0; i < NEAR_FD_KINDS; i++) {
		owners = i < (int)sent.fds && closed[i];
		for (j = 0; j < NEAR_FD_KINDS; j++)
			owners += peer.fd[j] == FIRST + i;
		owners += (peer.pidfd == FIRST + i) + (taken == FIRST + i);
		check(owners == (i < (int)sent.fds));
		check(!had[i] || peer.fd[i] == OLD + 1 + i);
		check(peer.fd[i] < FIRST || peer.fd[i] >= OLD ||
		      (sent.known && sent.cred.uid == MINE &&
		       sent.fdx.count == sent.fds &&
		       sent.fdx.kind < NEAR_FDX_DENIED));
	}
	return 0;
}
