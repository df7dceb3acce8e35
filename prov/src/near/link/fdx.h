/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Descriptors for peers that cannot open them as /proc/PID/fd/N: those in
 * another pid namespace, or that may not look into this process. One datagram
 * each way has all of them: who asks gives its own, so that nobody has to ask
 * back. A process's pidfd is among them; it tells of its end in every
 * namespace. hello.c keeps the socket, meet.c makes peers of what came.
 *
 * Cost: two system calls for each datagram, while peers meet; a look at the
 * socket every NEAR_FDX_MS, every millisecond after we have asked.
 */
#ifndef NEAR_LINK_FDX_H
#define NEAR_LINK_FDX_H

#include <sys/socket.h>
#include <sys/un.h>

#include "near/link/port.h"

enum near_fdx_kind {
	NEAR_FDX_REQUEST,
	NEAR_FDX_REPLY,
	NEAR_FDX_DENIED, /* you are another user; no descriptors */
	NEAR_FDX_KINDS
};

struct near_fdx {
	struct near_addr from;
	uint64_t to;		/* the nonce of whom it is for */
	uint32_t kind;
	uint32_t count;		/* of descriptors, as enum near_fd_open has them */
};

/* One that came, whatever it is worth. */
struct near_fdx_msg {
	struct near_fdx fdx;
	ssize_t size;
	int fd[NEAR_FD_KINDS];
	uint32_t fds;
	bool cut;		/* there were more, or no room for them here */
	bool known;		/* who sent it, below */
	struct ucred cred;
	struct sockaddr_un name;
	socklen_t name_len;
};

/* -ECONNREFUSED: nobody is there; -EAGAIN: later. */
int near_fdx_send(struct near_port *port, const struct near_addr *to,
		  enum near_fdx_kind kind);
/* false: there is none. Its descriptors are the caller's. */
bool near_fdx_next(const struct near_port *port, struct near_fdx_msg *msg);
void near_fdx_msg_drop(struct near_fdx_msg *msg);
/* It came from the socket of that port, and from no other. */
bool near_fdx_msg_from(const struct near_port *port,
		       const struct near_fdx_msg *msg, uint64_t nonce);

#endif /* NEAR_LINK_FDX_H */
