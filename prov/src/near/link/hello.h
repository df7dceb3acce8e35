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
 * socket every NEAR_HELLO_MS, every millisecond after we have asked.
 */
#ifndef NEAR_LINK_HELLO_H
#define NEAR_LINK_HELLO_H

#include <sys/socket.h>
#include <sys/un.h>

#include "near/link/port.h"

enum near_hello_kind {
	NEAR_HELLO_ASK,
	NEAR_HELLO_ANSWER,
	NEAR_HELLO_REFUSED,	/* you are another user; no descriptors */
	NEAR_HELLO_KINDS
};

struct near_hello {
	struct near_addr from;
	uint64_t to;		/* the nonce of whom it is for */
	uint32_t kind;
	uint32_t count;		/* of descriptors, as enum near_given has them */
};

/* One that came, whatever it is worth. */
struct near_mail {
	struct near_hello hello;
	ssize_t size;
	int fd[NEAR_GIVEN];
	uint32_t fds;
	bool cut;		/* there were more, or no room for them here */
	bool known;		/* who sent it, below */
	struct ucred cred;
	struct sockaddr_un name;
	socklen_t name_len;
};

/* -ECONNREFUSED: nobody is there; -EAGAIN: later. */
int near_hello_send(struct near_port *port, const struct near_addr *to,
		    enum near_hello_kind kind);
/* false: there is none. Its descriptors are the caller's. */
bool near_hello_next(const struct near_port *port, struct near_mail *mail);
void near_mail_drop(struct near_mail *mail);
/* It came from the socket of that port, and from no other. */
bool near_mail_from(const struct near_port *port, const struct near_mail *mail,
		    uint64_t nonce);

#endif /* NEAR_LINK_HELLO_H */
