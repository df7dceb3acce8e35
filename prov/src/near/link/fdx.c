/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "near/link/fdx.h"
#include "base/proc.h"

#define NEAR_FDX_REPEAT_MS 100	/* ms between two requests to one peer */
#define NEAR_FDX_BURST 64	/* limit of datagrams per near_fdx_read() */

/*
 * True if the kernel reports that a process of this process's user has sent
 * msg. False if the uid is the overflow uid, which may stand for several users.
 */
static bool near_fdx_msg_same_user(const struct near_fdx_msg *msg)
{
	return msg->known && msg->cred.uid == geteuid() &&
	       duo_proc_user_known();
}

/* Returns the reason to reject an fd request or its reply; NULL: none. */
static const char *near_fdx_msg_fault(const struct near_port *port,
				      const struct near_fdx_msg *msg)
{
	const struct near_fdx *fdx = &msg->fdx;
	struct stat st;
	size_t size;

	if (fdx->count != msg->fds || msg->fds < NEAR_FD_TABLE)
		return "wrong number of file descriptors";
	if (near_addr_check(port, &fdx->from) ||
	    fdx->from.nonce == port->addr.nonce)
		return "bad sender address";
	if (near_segment_check_file(msg->fd[NEAR_FD_SEGMENT], &size))
		return "its shared memory is not a segment of near";
	if (fstat(msg->fd[NEAR_FD_WAKE], &st) || !S_ISFIFO(st.st_mode))
		return "the wakeup descriptor is not a pipe";
	if (!duo_proc_is_pidfd(msg->fd[NEAR_FD_PIDFD]))
		return "it has no pidfd of the sender";
	return NULL;
}

/* Logs a rejected datagram if it is the port's first. */
static void near_fdx_msg_reject(struct near_port *port,
				const struct near_fdx_msg *msg, const char *why)
{
	if (!port->denied_fdx)
		near_log(port, 0, "invalid connection request from pid %d, "
			 "uid %d: %s. Ignored; further ones are not reported",
			 msg->known ? (int)msg->cred.pid : -1,
			 msg->known ? (int)msg->cred.uid : -1, why);
	port->denied_fdx = true;
}

/* Moves msg->fd[i] to the caller, which must close it; -1: none. */
static int near_fdx_msg_fd(struct near_fdx_msg *msg, uint32_t i)
{
	int fd = i < msg->fds ? msg->fd[i] : -1;

	if (fd >= 0)
		msg->fd[i] = -1;
	return fd;
}

/* Monitors the peer by the pidfd in msg. */
static void near_fdx_monitor(struct near_port *port, struct near_peer *peer,
			     struct near_fdx_msg *msg)
{
	int fd;

	if (near_monitored(peer))
		return;
	fd = near_fdx_msg_fd(msg, NEAR_FD_PIDFD);
	if (near_epoll_add(port, fd, peer))
		close(fd);	/* the peer's next datagram has a pidfd, too */
	else
		peer->pidfd = fd;
}

/* True for errors of sendmsg() after which a retry may succeed. */
static bool near_fdx_temporary(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == ENOMEM ||
	       err == ETOOMANYREFS;
}

/* True for errors of sendmsg() if no process has the receiver's socket open. */
static bool near_fdx_closed(int ret)
{
	return ret == -ECONNREFUSED || ret == -ENOENT;
}

/*
 * If msg is a request, sends a reply. If the reply cannot be sent, the peer
 * gets none, and sends its request again, unless its port has closed meanwhile.
 */
static void near_answer(struct near_port *port, struct near_peer *peer,
			const struct near_fdx_msg *msg)
{
	int ret = 0;

	if (msg->fdx.kind == NEAR_FDX_REQUEST)
		ret = near_fdx_send(port, &peer->addr, NEAR_FDX_REPLY);
	if (!ret || near_fdx_temporary(-ret) || near_fdx_closed(ret) ||
	    peer->logged)
		return;
	near_log(port, 0,
		 "peer %d: cannot reply to its connection request: "
		 "%s%s",
		 peer->addr.pid, strerror(-ret),
		 ret == -EMFILE ? ". Raise the limit of open files" : "");
	peer->logged = true;
}

/*
 * True if this port still needs the peer's descriptor. If the port is connected
 * to the peer already, it may need the wake pipe only: near_wakes_repeat().
 */
static bool near_fd_needed(const struct near_peer *peer, uint32_t which)
{
	return peer->state == NEAR_PEER_NEW ?
		which != NEAR_FD_PIDFD :
		which == NEAR_FD_WAKE && peer->needs_fdx;
}

/*
 * Monitors the peer by the pidfd in msg, and stores the needed descriptors. If
 * msg is a request, sends a reply. The peer will then attach to a ring of this
 * port. Until then, a reference of near_peer_expect() keeps the peer.
 */
static void near_fdx_accept(struct near_port *port, struct near_peer *peer,
			    struct near_fdx_msg *msg)
{
	uint32_t i;

	if (peer->draining)
		return;
	if (peer->state == NEAR_PEER_GONE) {
		/* without a reply, the peer would repeat its requests */
		near_answer(port, peer, msg);
		return;
	}
	near_fdx_monitor(port, peer, msg);
	if (!near_monitored(peer))
		return;
	if (peer->state == NEAR_PEER_CLOSED_OFF)
		peer->state = NEAR_PEER_NEW;	/* near_connect() tries again */
	for (i = 0; i < NEAR_FD_KINDS; i++)
		if (near_fd_needed(peer, i) && peer->fd[i] < 0)
			peer->fd[i] = near_fdx_msg_fd(msg, i);
	if (msg->fdx.kind != NEAR_FDX_REQUEST)
		return;
	near_peer_expect(port, peer, true);
	near_answer(port, peer, msg);
}

static void near_fdx_msg_good(struct near_port *port, struct near_fdx_msg *msg)
{
	const struct near_addr *from = &msg->fdx.from;
	struct near_peer *peer = near_peer_find(port, from);

	if (!peer && msg->fdx.kind != NEAR_FDX_REQUEST)
		return;		/* a late reply: this port has freed the peer */
	if (near_peer_get(port, from, &peer))
		return;
	near_fdx_accept(port, peer, msg);
	near_peer_put(port, peer);
}

/*
 * Handles a datagram from another user's process, or a NEAR_FDX_DENIED
 * datagram. Rejects a request. A datagram of any other kind shows that no
 * request to its sender can succeed. So if the datagram has come from the
 * socket of a peer, near_fdx_request() sends no more requests to this peer.
 */
static void near_fdx_msg_foreign(struct near_port *port,
				 const struct near_fdx_msg *msg)
{
	struct near_peer *peer = near_peer_find(port, &msg->fdx.from);

	if (msg->fdx.kind == NEAR_FDX_REQUEST)
		near_fdx_send(port, &msg->fdx.from, NEAR_FDX_DENIED);
	else if (peer && near_fdx_msg_from(port, msg, peer->addr.nonce))
		peer->rejected = true;
}

/*
 * Replies to NEAR_FDX_GPU_REQUEST. If near_onesided.share() fails, the reply
 * has no descriptor.
 */
static void near_fdx_share(struct near_port *port,
			   const struct near_fdx *request)
{
	struct near_fdx reply = {
		.kind = NEAR_FDX_GPU_REPLY,
		.from = port->addr, .to = request->from.nonce,
		.key = request->key, .id = request->id,
	};
	int fd = port->onesided->share(port, request->key, request->id);

	reply.count = fd >= 0;
	near_fdx_post(port, &reply, &fd);
	if (fd >= 0)
		close(fd);
}

/*
 * Handles a NEAR_FDX_GPU_* datagram. Returns the reason to reject it, or NULL.
 */
static const char *near_fdx_msg_memory(struct near_port *port,
				       struct near_fdx_msg *msg)
{
	struct near_peer *peer = near_peer_find(port, &msg->fdx.from);

	if (!port->onesided || near_addr_check(port, &msg->fdx.from) ||
	    !near_fdx_msg_from(port, msg, msg->fdx.from.nonce))
		return "bad sender address";
	if (msg->fdx.kind == NEAR_FDX_GPU_REQUEST)
		near_fdx_share(port, &msg->fdx);
	else if (peer)
		port->onesided->shared(port, peer, msg->fdx.id,
				       near_fdx_msg_fd(msg, 0));
	return NULL;
}

/* Handles a datagram. Returns the reason to reject it; NULL: none. */
static const char *near_fdx_msg_read(struct near_port *port,
				     struct near_fdx_msg *msg)
{
	const char *fault;

	if (msg->size != sizeof(msg->fdx) || msg->fdx.to != port->addr.nonce ||
	    msg->fdx.kind >= NEAR_FDX_KINDS)
		return "wrong size, receiver or kind";
	if (msg->fdx.kind == NEAR_FDX_DENIED || !near_fdx_msg_same_user(msg)) {
		near_fdx_msg_foreign(port, msg);
		return "the sender belongs to another user, or to an unknown "
		       "one";
	}
	if (msg->cut)
		return "file descriptors are missing: raise the limit of open "
		       "files (ulimit -n)";
	if (msg->fdx.kind == NEAR_FDX_GPU_REQUEST ||
	    msg->fdx.kind == NEAR_FDX_GPU_REPLY)
		return near_fdx_msg_memory(port, msg);
	fault = near_fdx_msg_fault(port, msg);
	if (!fault)
		near_fdx_msg_good(port, msg);
	return fault;
}

void near_fdx_read(struct near_port *port)
{
	struct near_fdx_msg msg;
	const char *fault;
	int i;

	for (i = 0; i < NEAR_FDX_BURST && near_fdx_next(port, &msg); i++) {
		fault = near_fdx_msg_read(port, &msg);
		if (fault)
			near_fdx_msg_reject(port, &msg, fault);
		near_fdx_msg_drop(&msg);
	}
}

int near_fdx_request(struct near_port *port, struct near_peer *peer)
{
	bool monitored = near_monitored(peer);
	uint64_t now = duo_now_ms();
	int ret;

	if (port->fdx < 0)
		return -EHOSTUNREACH;
	if (peer->rejected)
		return -EACCES;
	if (peer->requested_ms && now - peer->requested_ms < NEAR_FDX_REPEAT_MS)
		return -EAGAIN;
	ret = near_fdx_send(port, &peer->addr, NEAR_FDX_REQUEST);
	if (near_fdx_closed(ret)) {
		/* the peer may have replied with its pidfd before its exit */
		near_fdx_read(port);
		if (!monitored && near_monitored(peer))
			return -EAGAIN;
		/*
		 * -ECONNREFUSED: no process has the socket open. If the socket
		 * has a file, the file is still there, and only a process that
		 * has exited leaves its file behind.
		 */
		peer->exited = ret == -ECONNREFUSED && port->dir >= 0;
		if (!peer->logged)
			near_log(port, !!peer->requested_ms, "peer %d: its "
				 "connection socket is closed; it has exited, "
				 "or is in another network namespace",
				 peer->addr.pid);
		peer->logged = true;
		return -ESRCH;
	}
	peer->requested_ms = now;
	return !ret || near_fdx_temporary(-ret) ? -EAGAIN : ret;
}

int near_fdx_gpu_request(struct near_port *port, struct near_peer *peer,
			 uint64_t key, uint64_t id)
{
	struct near_fdx request = {
		.from = port->addr, .to = peer->addr.nonce,
		.kind = NEAR_FDX_GPU_REQUEST, .key = key, .id = id,
	};
	int ret = port->fdx < 0 ? -EHOSTUNREACH :
				  near_fdx_post(port, &request, NULL);

	return near_fdx_temporary(-ret) ? -EAGAIN : ret;
}

void near_fd_drop(struct near_peer *peer, enum near_fd_open which)
{
	if (peer->fd[which] >= 0)
		close(peer->fd[which]);
	peer->fd[which] = -1;
}

void near_fd_drop_all(struct near_peer *peer)
{
	int i;

	for (i = 0; i < NEAR_FD_KINDS; i++)
		near_fd_drop(peer, i);
}

bool near_fd_closed(const struct near_peer *peer)
{
	uint32_t closed = 0;

	return peer->fd[NEAR_FD_SEGMENT] >= 0 &&
	       pread(peer->fd[NEAR_FD_SEGMENT], &closed, sizeof(closed),
		     offsetof(struct near_segment, closed)) == sizeof(closed) &&
	       closed;
}

int near_peer_open(const struct near_peer *peer, enum near_fd_open which,
		   int theirs, int flags)
{
	int fd;

	if (peer->fd[which] >= 0)
		return duo_proc_open_own(peer->fd[which], flags);
	if (peer->far)
		return -ENOENT;
	fd = duo_proc_open(peer->addr.pid, theirs, flags);
	/* a file of another kind may be one that this process cannot open */
	if (fd < 0 && which != NEAR_FD_WAKE &&
	    duo_proc_not_memfd(peer->addr.pid, theirs))
		return -ENOENT;
	return fd;
}

/*
 * -ENOENT shows that the peer's process does not have the file open, so the
 * peer's port has closed, or the process is exiting. If needs_fdx is set,
 * -ENOENT shows no failure: the peer's descriptor has not arrived by the fd
 * exchange yet.
 */
bool near_peer_shut(struct near_peer *peer, int err)
{
	peer->shut = peer->shut || (err == -ENOENT && !peer->needs_fdx);
	return peer->shut;
}
