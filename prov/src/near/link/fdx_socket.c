/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "near/link/fdx.h"
#include "base/proc.h"

#define NEAR_NAME "near."
#define NEAR_NAME_LEN (sizeof(NEAR_NAME) - 1 + 16)	/* 16 hex digits */

/* Ancillary data of a datagram, aligned for struct cmsghdr. */
union near_rights {
	char bytes[CMSG_SPACE(NEAR_FD_KINDS * sizeof(int)) +
		   CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

/*
 * Stores the name of a port's socket, and returns the length of the name for
 * bind(). If dir is -1, the name is abstract. Otherwise the name contains dir
 * as a path in /proc, because the real path of dir might be too long.
 */
static socklen_t near_name(int dir, uint64_t nonce, struct sockaddr_un *name)
{
	char *at = name->sun_path;
	int len = 0;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	if (dir >= 0)
		len = snprintf(at, sizeof(name->sun_path),
			       "/proc/thread-self/fd/%d/", dir);
	else
		at++;		/* the first byte of an abstract name is 0 */
	snprintf(at + len, sizeof(name->sun_path) - 1 - (size_t)len,
		 NEAR_NAME "%016" PRIx64, nonce);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)(at - name->sun_path) + strlen(at));
}

static int near_fdx_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/*
 * Opens the socket. bind() comes last, because it creates the socket's file. If
 * a later step failed, the file would remain without an open socket, which
 * shows peers that the process has exited.
 */
static int near_fdx_listen(struct near_port *port)
{
	struct sockaddr_un name;
	socklen_t len = near_name(port->dir, port->addr.nonce, &name);
	int fd, ret, on = 1, self = duo_proc_pidfd(port->addr.pid);

	if (self < 0)	/* no pidfd: an old kernel, or a seccomp filter */
		return self;
	close(self);
	fd = near_fdx_socket();
	if (fd < 0)
		return fd;
	ret = near_epoll_add(port, fd, port);
	if (!ret && (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ||
		     bind(fd, (struct sockaddr *)&name, len)))
		ret = -errno;
	if (ret)
		close(fd);
	else
		port->fdx = fd;
	return ret;
}

int near_listen(struct near_port *port, int dir)
{
	int ret = 0;

	if (dir >= 0) {
		port->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
		ret = port->dir < 0 ? -errno : 0;
	}
	if (!ret)
		ret = near_fdx_listen(port);
	if (!ret)
		return 0;
	near_log(port, 1, "cannot open the connection socket: %s. Peers in "
		 "other namespaces are not reachable", strerror(-ret));
	if (port->dir >= 0)
		close(port->dir);
	port->dir = -1;
	return ret;
}

void near_fdx_close(struct near_port *port)
{
	struct sockaddr_un name;

	if (port->fdx < 0)
		return;
	if (port->dir >= 0) {
		near_name(port->dir, port->addr.nonce, &name);
		unlink(name.sun_path);
		close(port->dir);
	}
	/*
	 * forked children may still have the socket open, so close() is not
	 * enough
	 */
	shutdown(port->fdx, SHUT_RDWR);
	close(port->fdx);
	port->fdx = port->dir = -1;
}

/* Removes the socket file `entry` if no process has the socket open. */
static void near_sweep_one(int dir, int fd, const char *entry)
{
	struct sockaddr_un name;
	socklen_t len;
	uint64_t nonce;
	char more;

	if (strlen(entry) != NEAR_NAME_LEN ||
	    sscanf(entry, NEAR_NAME "%16" SCNx64 "%c", &nonce, &more) != 1)
		return;
	len = near_name(dir, nonce, &name);
	if (connect(fd, (struct sockaddr *)&name, len) &&
	    errno == ECONNREFUSED)
		unlink(name.sun_path);
}

void near_sweep(int dir)
{
	int fd = near_fdx_socket();
	DIR *stream = duo_dir_list(dir);
	struct dirent *entry;

	while (fd >= 0 && stream && (entry = readdir(stream)))
		near_sweep_one(dir, fd, entry->d_name);
	if (stream)
		closedir(stream);
	if (fd >= 0)
		close(fd);
}

/*
 * Stores the port's descriptors in fd. Returns their number or -errno. The
 * caller must close fd[NEAR_FD_PIDFD].
 */
static int near_fdx_fds(struct near_port *port, int *fd)
{
	int ret = near_wait_fd(port);	/* creates the wake pipe */

	if (ret < 0)
		return ret;
	fd[NEAR_FD_SEGMENT] = port->fd;
	fd[NEAR_FD_WAKE] = port->wake[1];
	fd[NEAR_FD_TABLE] = port->table_fd;
	fd[NEAR_FD_PIDFD] = duo_proc_pidfd(port->addr.pid);
	if (fd[NEAR_FD_PIDFD] < 0)
		return fd[NEAR_FD_PIDFD];
	return fd[NEAR_FD_TABLE] < 0 ? NEAR_FD_TABLE : NEAR_FD_KINDS;
}

static void near_cmsg_fill(struct cmsghdr *cmsg, int type, const void *data,
			   size_t size)
{
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(cmsg), data, size);
}

int near_fdx_post(struct near_port *port, struct near_fdx *fdx, const int *fd)
{
	/* effective ids, because Linux would otherwise send the real ones */
	const struct ucred cred = { getpid(), geteuid(), getegid() };
	struct iovec iov = { fdx, sizeof(*fdx) };
	size_t size = fdx->count * sizeof(*fd);
	union near_rights rights = { .bytes = { 0 } };
	struct sockaddr_un name;
	struct msghdr hdr = {
		.msg_name = &name,
		.msg_namelen = near_name(port->dir, fdx->to, &name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = rights.bytes,
		.msg_controllen = CMSG_SPACE(sizeof(cred)) +
				  (size ? CMSG_SPACE(size) : 0),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&hdr);
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	ssize_t ret;

	if (size) {
		near_cmsg_fill(cmsg, SCM_RIGHTS, fd, size);
		cmsg = CMSG_NXTHDR(&hdr, cmsg);
	}
	near_cmsg_fill(cmsg, SCM_CREDENTIALS, &cred, sizeof(cred));
	ret = sendmsg(port->fdx, &hdr, flags);
	if (ret < 0 && errno == EINVAL) {
		/*
		 * The effective user has no id in this user namespace, so Linux
		 * has rejected the ids. Send the datagram again without ids.
		 */
		hdr.msg_controllen = size ? CMSG_SPACE(size) : 0;
		ret = sendmsg(port->fdx, &hdr, flags);
	}
	if (ret < 0)
		return errno == EPIPE ? -ECONNREFUSED : -errno;
	return 0;
}

int near_fdx_send(struct near_port *port, const struct near_addr *to,
		  enum near_fdx_kind kind)
{
	struct near_fdx fdx = {
		.from = port->addr, .to = to->nonce, .kind = kind,
	};
	int fd[NEAR_FD_KINDS], ret = 0;

	if (kind != NEAR_FDX_DENIED) {
		ret = near_fdx_fds(port, fd);
		if (ret < 0)
			return ret;
		fdx.count = (uint32_t)ret;
	}
	ret = near_fdx_post(port, &fdx, fd);
	if (fdx.count)
		close(fd[NEAR_FD_PIDFD]);
	return ret;
}

static void near_fdx_msg_parse(struct near_fdx_msg *msg, struct msghdr *hdr)
{
	struct cmsghdr *cmsg;
	size_t size;

	for (cmsg = CMSG_FIRSTHDR(hdr); cmsg; cmsg = CMSG_NXTHDR(hdr, cmsg)) {
		size = cmsg->cmsg_len - CMSG_LEN(0);
		if (cmsg->cmsg_level != SOL_SOCKET)
			continue;
		if (cmsg->cmsg_type == SCM_CREDENTIALS &&
		    size == sizeof(msg->cred)) {
			memcpy(&msg->cred, CMSG_DATA(cmsg), size);
			msg->known = true;
		}
		if (cmsg->cmsg_type == SCM_RIGHTS &&
		    size <= sizeof(msg->fd)) {
			memcpy(msg->fd, CMSG_DATA(cmsg), size);
			msg->fds = (uint32_t)(size / sizeof(int));
		}
	}
}

bool near_fdx_next(const struct near_port *port, struct near_fdx_msg *msg)
{
	struct iovec iov = { &msg->fdx, sizeof(msg->fdx) };
	union near_rights rights;
	struct msghdr hdr = {
		.msg_name = &msg->name,
		.msg_namelen = sizeof(msg->name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = rights.bytes,
		.msg_controllen = sizeof(rights.bytes),
	};

	memset(msg, 0, sizeof(*msg));
	/* MSG_TRUNC: returns the full size of a datagram that is too long */
	msg->size = recvmsg(port->fdx, &hdr,
			    MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	if (msg->size < 0)
		return false;
	msg->name_len = hdr.msg_namelen;
	msg->cut = hdr.msg_flags & MSG_CTRUNC;
	near_fdx_msg_parse(msg, &hdr);
	return true;
}

void near_fdx_msg_drop(struct near_fdx_msg *msg)
{
	while (msg->fds) {
		msg->fds--;
		if (msg->fd[msg->fds] >= 0)
			close(msg->fd[msg->fds]);
	}
}

bool near_fdx_msg_from(const struct near_port *port,
		       const struct near_fdx_msg *msg, uint64_t nonce)
{
	struct sockaddr_un name;
	socklen_t len = near_name(port->dir, nonce, &name);

	return port->dir >= 0 ||
	       (len == msg->name_len && !memcmp(&name, &msg->name, len));
}
