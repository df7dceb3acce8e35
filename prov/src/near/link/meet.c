/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Peers that give us their descriptors, and those that are asked for them. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "near/link/hello.h"
#include "base/proc.h"

#define NEAR_ASK_MS 100		/* before it is asked again */
#define NEAR_HELLO_BURST 64	/* of a look */

/* True if the kernel says that this process's user has sent it. */
static bool near_mail_same_user(const struct near_mail *mail)
{
	return mail->known && mail->cred.uid == geteuid() &&
	       duo_proc_user_known();
}

/* What is wrong with it; NULL: nothing. */
static const char *near_mail_fault(const struct near_port *port,
				   const struct near_mail *mail)
{
	const struct near_hello *hello = &mail->hello;
	struct stat st;
	size_t size;

	if (mail->cut)
		return "descriptors are missing: raise the limit of open "
		       "files (ulimit -n)";
	if (hello->count != mail->fds || mail->fds < NEAR_GIVEN_TABLE)
		return "it has another number of descriptors than it says";
	if (near_addr_check(port, &hello->from) ||
	    hello->from.nonce == port->addr.nonce)
		return "bad sender address";
	if (near_region_check_file(mail->fd[NEAR_GIVEN_REGION], &size))
		return "memory that the sender can truncate";
	if (fstat(mail->fd[NEAR_GIVEN_WAKE], &st) || !S_ISFIFO(st.st_mode))
		return "the wakeup descriptor is not a pipe";
	if (!duo_proc_is_pidfd(mail->fd[NEAR_GIVEN_PIDFD]))
		return "no pidfd of the sender";
	return NULL;
}

/* Said once: whoever sends such things may send many. */
static void near_mail_refuse(struct near_port *port,
			     const struct near_mail *mail, const char *why)
{
	if (port->refused_mail)
		return;
	port->refused_mail = true;
	near_log(port, 0, "invalid connection request from pid %d, uid %d: "
		 "%s. Ignored; further ones are not reported",
		 mail->known ? (int)mail->cred.pid : -1,
		 mail->known ? (int)mail->cred.uid : -1, why);
}

/* Descriptor i of the mail, ours from now on. */
static int near_mail_fd(struct near_mail *mail, uint32_t i)
{
	int fd = i < mail->fds ? mail->fd[i] : -1;

	if (fd >= 0)
		mail->fd[i] = -1;
	return fd;
}

static void near_meet_watch(struct near_port *port, struct near_peer *peer,
			    struct near_mail *mail)
{
	int fd;

	if (near_watched(peer))
		return;
	fd = near_mail_fd(mail, NEAR_GIVEN_PIDFD);
	if (near_epoll_add(port, fd, peer))
		close(fd);	/* it asks again, or we do */
	else
		peer->pidfd = fd;
}

/* The other's socket has no more room, or we may have no more on their way. */
static bool near_ask_later(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == ENOMEM ||
	       err == ETOOMANYREFS;
}

/* What does not get there is asked for again. */
static void near_answer(struct near_port *port, struct near_peer *peer,
			const struct near_mail *mail)
{
	int ret = 0;

	if (mail->hello.kind == NEAR_HELLO_ASK)
		ret = near_hello_send(port, &peer->addr, NEAR_HELLO_ANSWER);
	if (!ret || near_ask_later(-ret) || peer->told)
		return;
	near_log(port, 0, "peer %d: cannot reply to its connection request: "
		 "%s%s", peer->addr.pid, strerror(-ret),
		 ret == -EMFILE ? ". Raise the limit of open files" : "");
	peer->told = true;
}

/* It stays until it has closed or is dead: its first message is to come. */
static void near_meet(struct near_port *port, struct near_peer *peer,
		      struct near_mail *mail)
{
	uint32_t i;

	if (peer->dying)
		return;
	if (peer->state == NEAR_PEER_GONE) {
		/* it has left us, and sends again all the same */
		near_answer(port, peer, mail);
		return;
	}
	near_meet_watch(port, peer, mail);
	if (!near_watched(peer))
		return;
	if (peer->state == NEAR_PEER_CLOSED_OFF)
		peer->state = NEAR_PEER_NEW;	/* it was too late */
	for (i = 0; peer->state == NEAR_PEER_NEW && i < NEAR_GIVEN; i++)
		if (i != NEAR_GIVEN_PIDFD && peer->given[i] < 0)
			peer->given[i] = near_mail_fd(mail, i);
	if (mail->hello.kind != NEAR_HELLO_ASK)
		return;
	near_peer_expect(port, peer, true);
	near_answer(port, peer, mail);
}

static void near_mail_good(struct near_port *port, struct near_mail *mail)
{
	const struct near_addr *from = &mail->hello.from;
	struct near_peer *peer = near_peer_find(port, from);

	if (!peer && mail->hello.kind != NEAR_HELLO_ASK)
		return;		/* nobody wants to know any more */
	if (near_peer_get(port, from, &peer))
		return;
	near_meet(port, peer, mail);
	near_peer_put(port, peer);
}

/* Another user's: he is told, or he would ask for ever. */
static void near_mail_foreign(struct near_port *port,
			      const struct near_mail *mail)
{
	struct near_peer *peer = near_peer_find(port, &mail->hello.from);

	if (mail->hello.kind == NEAR_HELLO_ASK)
		near_hello_send(port, &mail->hello.from, NEAR_HELLO_REFUSED);
	else if (peer && near_mail_from(port, mail, peer->addr.nonce))
		peer->refused = true;
	near_mail_refuse(port, mail, "it is another user's");
}

static void near_mail_read(struct near_port *port, struct near_mail *mail)
{
	const char *fault;

	if (mail->size != sizeof(mail->hello) ||
	    mail->hello.to != port->addr.nonce ||
	    mail->hello.kind >= NEAR_HELLO_KINDS) {
		near_mail_refuse(port, mail, "it is none of near's");
		return;
	}
	if (mail->hello.kind == NEAR_HELLO_REFUSED ||
	    !near_mail_same_user(mail)) {
		near_mail_foreign(port, mail);
		return;
	}
	fault = near_mail_fault(port, mail);
	if (fault)
		near_mail_refuse(port, mail, fault);
	else
		near_mail_good(port, mail);
}

void near_meet_all(struct near_port *port)
{
	struct near_mail mail;
	int i;

	for (i = 0; i < NEAR_HELLO_BURST && near_hello_next(port, &mail); i++) {
		near_mail_read(port, &mail);
		near_mail_drop(&mail);
	}
}

int near_ask(struct near_port *port, struct near_peer *peer)
{
	uint64_t now = duo_now_ms();
	int ret;

	if (port->hello < 0)
		return -EHOSTUNREACH;
	if (peer->refused)
		return -EACCES;
	if (peer->asked_ms && now - peer->asked_ms < NEAR_ASK_MS)
		return -EAGAIN;
	ret = near_hello_send(port, &peer->addr, NEAR_HELLO_ASK);
	if (ret == -ECONNREFUSED) {
		near_log(port, !!peer->asked_ms, "peer %d: its connection "
			 "socket is closed; it has exited, or is in another "
			 "network namespace", peer->addr.pid);
		return -ESRCH;
	}
	peer->asked_ms = port->asked_ms = now;
	return !ret || near_ask_later(-ret) ? -EAGAIN : ret;
}

void near_given_drop(struct near_peer *peer, enum near_given which)
{
	if (peer->given[which] >= 0)
		close(peer->given[which]);
	peer->given[which] = -1;
}

void near_given_drop_all(struct near_peer *peer)
{
	int i;

	for (i = 0; i < NEAR_GIVEN; i++)
		near_given_drop(peer, i);
}

/* One that has closed before we have opened its region. */
bool near_given_closed(const struct near_peer *peer)
{
	uint32_t closed = 0;

	return peer->given[NEAR_GIVEN_REGION] >= 0 &&
	       pread(peer->given[NEAR_GIVEN_REGION], &closed, sizeof(closed),
		     offsetof(struct near_region, closed)) == sizeof(closed) &&
	       closed;
}

int near_peer_open(const struct near_peer *peer, enum near_given which,
		   int theirs, int flags)
{
	if (peer->given[which] >= 0)
		return duo_proc_open_own(peer->given[which], flags);
	return peer->far ? -ENOENT :
	       duo_proc_open(peer->addr.pid, theirs, flags);
}
