/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Preloaded in tests under qemu-user, which lacks or changes these calls:
 * - process_vm_readv() and process_vm_writev() are missing. Replaced by
 *   accesses to /proc/PID/mem, which need the same permissions.
 * - /proc/self/stat has a wrong start time if it is opened by an absolute path.
 *   So this library opens the file relative to the directory.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Advances *at to the next buffer with bytes left. Returns false if none is. */
static bool vec_left(const struct iovec *vec, unsigned long count,
		     unsigned long *at, size_t *done)
{
	while (*at < count && *done == vec[*at].iov_len) {
		*done = 0;
		(*at)++;
	}
	return *at < count;
}

static ssize_t copy(pid_t pid, const struct iovec *local, unsigned long locals,
		    const struct iovec *remote, unsigned long remotes,
		    bool writes)
{
	unsigned long l = 0, r = 0;
	size_t l_done = 0, r_done = 0, len;
	ssize_t ret = 0, all = 0;
	char path[32];
	void *here;
	off_t there;
	int fd;

	/* /proc may be that of another pid namespace */
	if (pid == getpid())
		strcpy(path, "/proc/self/mem");
	else
		snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0) {
		errno = errno == ENOENT ? ESRCH : errno == EACCES ? EPERM : errno;
		return -1;
	}
	while (vec_left(local, locals, &l, &l_done) &&
	       vec_left(remote, remotes, &r, &r_done)) {
		len = min(local[l].iov_len - l_done,
			  remote[r].iov_len - r_done);
		here = (uint8_t *)local[l].iov_base + l_done;
		there = (off_t)(uintptr_t)remote[r].iov_base + (off_t)r_done;
		ret = writes ? pwrite(fd, here, len, there) :
			       pread(fd, here, len, there);
		if (ret <= 0)
			break;
		all += ret;
		l_done += (size_t)ret;
		r_done += (size_t)ret;
	}
	close(fd);
	if (all || ret > 0 || l == locals || r == remotes)
		return all;
	errno = ret ? EFAULT : ESRCH;	/* 0: the process has exited */
	return -1;
}

int open(const char *path, int flags, ...)
{
	int dir = AT_FDCWD, fd;
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (!strcmp(path, "/proc/self/stat")) {
		dir = openat(AT_FDCWD, "/proc/self", O_PATH | O_CLOEXEC);
		path = "stat";
	}
	fd = openat(dir, path, flags, mode);
	if (dir >= 0)
		close(dir);
	return fd;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long locals, const struct iovec *remote,
			 unsigned long remotes, unsigned long flags)
{
	(void)flags;
	return copy(pid, local, locals, remote, remotes, false);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
			  unsigned long locals, const struct iovec *remote,
			  unsigned long remotes, unsigned long flags)
{
	(void)flags;
	return copy(pid, local, locals, remote, remotes, true);
}
