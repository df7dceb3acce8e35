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

#include "near/link/hello.h"
#include "base/proc.h"

#define NEAR_NAME "near."
#define NEAR_NAME_LEN (sizeof(NEAR_NAME) - 1 + 16)	/* and 16 digits */

/* Room for what near_hello_send() sends, aligned. */
union near_rights {
	char bytes[CMSG_SPACE(NEAR_GIVEN * sizeof(int)) +
		   CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

/*
 * The socket of the port with this nonce, as seen from here. In a directory it
 * is named by the directory's descriptor: its path may be too long.
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
		at++;		/* a name that begins with 0 is no file's */
	snprintf(at + len, sizeof(name->sun_path) - 1 - (size_t)len,
		 NEAR_NAME "%016" PRIx64, nonce);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)(at - name->sun_path) + strlen(at));
}

static int near_hello_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int near_hello_bind(const struct near_port *port, int fd)
{
	struct sockaddr_un name;
	socklen_t len = near_name(port->dir, port->addr.nonce, &name);
	int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&name, len))
		return -errno;
	return 0;
}

/* port->dir is where it is to be. */
static int near_listen_there(struct near_port *port)
{
	int fd, ret, self = duo_proc_pidfd(port->addr.pid);

	if (self < 0)		/* an old kernel, or a filter: none to give */
		return self;
	close(self);
	fd = near_hello_socket();
	ret = fd < 0 ? fd : near_hello_bind(port, fd);
	if (!ret)
		ret = near_epoll_add(port, fd, port);
	if (!ret) {
		port->hello = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
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
		ret = near_listen_there(port);
	if (!ret)
		return 0;
	near_log(port, 1, "cannot open the connection socket: %s. Peers in "
		 "other namespaces are not reachable", strerror(-ret));
	if (port->dir >= 0)
		close(port->dir);
	port->dir = -1;
	return ret;
}

void near_hello_close(struct near_port *port)
{
	struct sockaddr_un name;

	if (port->hello < 0)
		return;
	if (port->dir >= 0) {
		near_name(port->dir, port->addr.nonce, &name);
		unlink(name.sun_path);
		close(port->dir);
	}
	/* a child that was forked has it, too */
	shutdown(port->hello, SHUT_RDWR);
	close(port->hello);
	port->hello = port->dir = -1;
}

/* A file of ours whose port has ended: nobody is there. */
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
	int fd = near_hello_socket();
	int list = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = list < 0 ? NULL : fdopendir(list);
	struct dirent *entry;

	while (fd >= 0 && stream && (entry = readdir(stream)))
		near_sweep_one(dir, fd, entry->d_name);
	if (stream)
		closedir(stream);
	else if (list >= 0)
		close(list);
	if (fd >= 0)
		close(fd);
}

/* Ours, as many as there are; -errno. */
static int near_hello_fds(struct near_port *port, int *fd)
{
	int ret = near_wait_fd(port);	/* or it could not wake us later */

	if (ret < 0)
		return ret;
	fd[NEAR_GIVEN_REGION] = port->fd;
	fd[NEAR_GIVEN_WAKE] = port->wake[1];
	fd[NEAR_GIVEN_TABLE] = port->region->table_fd;
	fd[NEAR_GIVEN_PIDFD] = duo_proc_pidfd(port->addr.pid);
	if (fd[NEAR_GIVEN_PIDFD] < 0)
		return fd[NEAR_GIVEN_PIDFD];
	return fd[NEAR_GIVEN_TABLE] < 0 ? NEAR_GIVEN_TABLE : NEAR_GIVEN;
}

static void near_cmsg_fill(struct cmsghdr *cmsg, int type, const void *data,
			   size_t size)
{
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(cmsg), data, size);
}

static int near_hello_post(struct near_port *port, struct near_hello *hello,
			   const int *fd)
{
	/* the user whose files these are; the real one is said otherwise */
	const struct ucred cred = { getpid(), geteuid(), getegid() };
	struct iovec iov = { hello, sizeof(*hello) };
	size_t size = hello->count * sizeof(*fd);
	union near_rights rights = { .bytes = { 0 } };
	struct sockaddr_un name;
	struct msghdr msg = {
		.msg_name = &name,
		.msg_namelen = near_name(port->dir, hello->to, &name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = rights.bytes,
		.msg_controllen = CMSG_SPACE(sizeof(cred)) +
				  (size ? CMSG_SPACE(size) : 0),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	ssize_t ret;

	if (size) {
		near_cmsg_fill(cmsg, SCM_RIGHTS, fd, size);
		cmsg = CMSG_NXTHDR(&msg, cmsg);
	}
	near_cmsg_fill(cmsg, SCM_CREDENTIALS, &cred, sizeof(cred));
	ret = sendmsg(port->hello, &msg, flags);
	if (ret < 0 && errno == EINVAL) {
		/* without a number in this user namespace nobody names itself */
		msg.msg_controllen = size ? CMSG_SPACE(size) : 0;
		ret = sendmsg(port->hello, &msg, flags);
	}
	return ret < 0 ? -errno : 0;
}

int near_hello_send(struct near_port *port, const struct near_addr *to,
		    enum near_hello_kind kind)
{
	struct near_hello hello = {
		.from = port->addr, .to = to->nonce, .kind = kind,
	};
	int fd[NEAR_GIVEN], ret = 0;

	if (kind != NEAR_HELLO_REFUSED) {
		ret = near_hello_fds(port, fd);
		if (ret < 0)
			return ret;
		hello.count = (uint32_t)ret;
	}
	ret = near_hello_post(port, &hello, fd);
	if (hello.count)
		close(fd[NEAR_GIVEN_PIDFD]);
	return ret == -ENOENT || ret == -EPIPE ? -ECONNREFUSED : ret;
}

static void near_mail_take(struct near_mail *mail, struct msghdr *msg)
{
	struct cmsghdr *cmsg;
	size_t size;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size = cmsg->cmsg_len - CMSG_LEN(0);
		if (cmsg->cmsg_level != SOL_SOCKET)
			continue;
		if (cmsg->cmsg_type == SCM_CREDENTIALS &&
		    size == sizeof(mail->cred)) {
			memcpy(&mail->cred, CMSG_DATA(cmsg), size);
			mail->known = true;
		}
		if (cmsg->cmsg_type == SCM_RIGHTS &&
		    size <= sizeof(mail->fd)) {
			memcpy(mail->fd, CMSG_DATA(cmsg), size);
			mail->fds = (uint32_t)(size / sizeof(int));
		}
	}
}

bool near_hello_next(const struct near_port *port, struct near_mail *mail)
{
	struct iovec iov = { &mail->hello, sizeof(mail->hello) };
	union near_rights rights;
	struct msghdr msg = {
		.msg_name = &mail->name,
		.msg_namelen = sizeof(mail->name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = rights.bytes,
		.msg_controllen = sizeof(rights.bytes),
	};

	memset(mail, 0, sizeof(*mail));
	/* the size that it had, also if that is more than there is room for */
	mail->size = recvmsg(port->hello, &msg, MSG_DONTWAIT | MSG_TRUNC |
			     MSG_CMSG_CLOEXEC);
	if (mail->size < 0)
		return false;
	mail->name_len = msg.msg_namelen;
	mail->cut = msg.msg_flags & MSG_CTRUNC;
	near_mail_take(mail, &msg);
	return true;
}

void near_mail_drop(struct near_mail *mail)
{
	while (mail->fds) {
		mail->fds--;
		if (mail->fd[mail->fds] >= 0)
			close(mail->fd[mail->fds]);
	}
}

/* By its name; nobody else can have that, or be in the directory. */
bool near_mail_from(const struct near_port *port, const struct near_mail *mail,
		    uint64_t nonce)
{
	struct sockaddr_un name;
	socklen_t len = near_name(port->dir, nonce, &name);

	return port->dir >= 0 || (len == mail->name_len &&
				  !memcmp(&name, &mail->name, len));
}
