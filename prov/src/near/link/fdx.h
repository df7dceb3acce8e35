/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fd exchange with peers that cannot open /proc/PID/fd/N: they are in another
 * pid namespace, or have no permission. One datagram each way carries all
 * descriptors of its sender: the receiver of a request need not ask for the
 * requester's. A pidfd is among them; it reports the exit of its process
 * in every namespace. fdx_socket.c has the socket, fdx.c the peers.
 *
 * Cost: two system calls per datagram, while peers connect; a read of the
 * socket every NEAR_FDX_MS, every millisecond after a request.
 */
#ifndef NEAR_LINK_FDX_H
#define NEAR_LINK_FDX_H

#include <sys/socket.h>
#include <sys/un.h>

#include "near/link/port.h"

enum near_fdx_kind {
	NEAR_FDX_REQUEST,
	NEAR_FDX_REPLY,
	NEAR_FDX_DENIED, /* another user; without descriptors */
	NEAR_FDX_KINDS
};

struct near_fdx {
	struct near_addr from;
	uint64_t to;		/* nonce of the receiving port */
	uint32_t kind;
	uint32_t count;		/* descriptors, in order of near_fd_open */
};

/* A received datagram; nothing in it is checked yet. */
struct near_fdx_msg {
	struct near_fdx fdx;
	ssize_t size;
	int fd[NEAR_FD_KINDS];
	uint32_t fds;
	bool cut;		/* descriptors were lost: too many open files */
	bool known;		/* cred is valid */
	struct ucred cred;
	struct sockaddr_un name;
	socklen_t name_len;
};

/* Sends a datagram. -ECONNREFUSED: no port has that socket; -EAGAIN: retry. */
int near_fdx_send(struct near_port *port, const struct near_addr *to,
		  enum near_fdx_kind kind);
/* Receives a datagram; the caller owns its descriptors. False: none. */
bool near_fdx_next(const struct near_port *port, struct near_fdx_msg *msg);
void near_fdx_msg_drop(struct near_fdx_msg *msg);
/* True if the socket of the port with that nonce sent msg. */
bool near_fdx_msg_from(const struct near_port *port,
		       const struct near_fdx_msg *msg, uint64_t nonce);

#endif /* NEAR_LINK_FDX_H */
