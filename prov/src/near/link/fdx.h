/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The fd exchange. If a port cannot open a peer's file descriptors through
 * /proc, the two ports pass each other descriptors over sockets:
 * docs/near/protocol.md, *Other namespaces*.
 */
#ifndef NEAR_LINK_FDX_H
#define NEAR_LINK_FDX_H

#include <sys/socket.h>
#include <sys/un.h>

#include "near/link/port.h"

enum near_fdx_kind {
	NEAR_FDX_REQUEST,
	NEAR_FDX_REPLY,
	NEAR_FDX_DENIED,	/* rejects another user's request */
	NEAR_FDX_GPU_REQUEST,	/* requests a descriptor of device memory */
	NEAR_FDX_GPU_REPLY,	/* passes this descriptor; or none, on error */
	NEAR_FDX_KINDS
};

struct near_fdx {
	struct near_addr from;
	uint64_t to;		/* nonce of the receiving port */
	uint32_t kind;
	uint32_t count;		/* number of descriptors */
	/* only for NEAR_FDX_GPU_*: key and export_id of near_region_entry */
	uint64_t key;
	uint64_t id;
};

/* A received datagram. Its values are not checked yet. */
struct near_fdx_msg {
	struct near_fdx fdx;
	ssize_t size;		/* bytes of the datagram */
	int fd[NEAR_FD_KINDS];
	uint32_t fds;		/* number of descriptors in fd */
	bool cut;	/* descriptors are missing: too many open files */
	bool known;		/* cred is valid */
	struct ucred cred;	/* sender of the datagram, from the kernel */
	struct sockaddr_un name;	/* name of the sender's socket */
	socklen_t name_len;
};

/*
 * Sends a datagram with this port's descriptors; NEAR_FDX_DENIED has none.
 * Returns 0, or
 * - -ECONNREFUSED: the receiver's socket is closed
 * - -ENOENT: the receiver's socket has no file
 * - -EAGAIN, -ENOBUFS, -ENOMEM, -ETOOMANYREFS: retry
 * - another -errno
 */
int near_fdx_send(struct near_port *port, const struct near_addr *to,
		  enum near_fdx_kind kind);
/* Sends fdx with fdx->count descriptors. Errors: those of near_fdx_send(). */
int near_fdx_post(struct near_port *port, struct near_fdx *fdx, const int *fd);
/* Receives a datagram. False: none. The caller calls near_fdx_msg_drop(). */
bool near_fdx_next(const struct near_port *port, struct near_fdx_msg *msg);
/* Closes the descriptors that msg still has. */
void near_fdx_msg_drop(struct near_fdx_msg *msg);
/*
 * True if msg has come from the socket of the port with this nonce. If
 * port->dir is a directory, returns true without a check, because only
 * processes of this user can create sockets there.
 */
bool near_fdx_msg_from(const struct near_port *port,
		       const struct near_fdx_msg *msg, uint64_t nonce);

#endif /* NEAR_LINK_FDX_H */
