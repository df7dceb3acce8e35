/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "link/proc.h"

#define NEAR_PROC_SPARE 16	/* descriptors */
#define NEAR_STAT_STATE 3	/* fields of /proc/PID/stat, from 1 */
#define NEAR_STAT_START 22

static ssize_t near_proc_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	if (len < 0)
		len = -errno;
	else
		text[len] = 0;
	close(fd);
	return len;
}

int near_proc_start(pid_t pid, uint64_t *start)
{
	char path[32], text[1024], *at;
	ssize_t len;
	int field;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	len = near_proc_read(path, text, sizeof(text));
	if (len <= 0)
		return len == -ENOENT || !len ? -ESRCH : (int)len;
	/* the second field, the name, may have spaces and brackets */
	at = strrchr(text, ')');
	for (field = NEAR_STAT_STATE; at && field <= NEAR_STAT_START; field++) {
		at = strchr(at, ' ');
		if (!at++)
			break;
		if (field == NEAR_STAT_STATE && (*at == 'Z' || *at == 'X'))
			return -ESRCH;
	}
	if (!at)
		return -EPROTO;
	*start = strtoull(at, NULL, 10);
	return 0;
}

/* The start time of pid cannot be read; of a zombie it could be. */
static int near_proc_hidden(pid_t pid)
{
	int fd = near_proc_pidfd(pid);
	bool ended = fd >= 0 && near_proc_ended(fd);

	if (fd < 0)
		return fd;
	close(fd);
	return ended ? -ESRCH : -EACCES;
}

int near_proc_check(pid_t pid, uint64_t start)
{
	uint64_t now;
	int ret = near_proc_start(pid, &now);

	if (ret == -ESRCH)
		return near_proc_hidden(pid);
	if (!ret && now != start)
		return -ESRCH;
	return ret;
}

int near_proc_host(uint64_t *host)
{
	static const char boot_id[] = "/proc/sys/kernel/random/boot_id";
	uint64_t hash = 0xcbf29ce484222325u;	/* FNV-1a */
	char text[64];
	ssize_t len, i;

	len = near_proc_read(boot_id, text, sizeof(text));
	if (len < 0)
		return (int)len;
	for (i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
	*host = hash;
	return 0;
}

int near_proc_ns(uint64_t *pid_ns)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return -errno;
	*pid_ns = st.st_ino;
	return 0;
}

int near_proc_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* No signal at all; of a process in another place it is refused otherwise. */
bool near_proc_is_pidfd(int fd)
{
	return !syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) ||
	       errno != EBADF;
}

bool near_proc_ended(int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* The lowest number that is free is given out, so high ones say how many are. */
bool near_proc_scarce(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) &&
	       (rlim_t)fd + NEAR_PROC_SPARE >= limit.rlim_cur;
}

uint64_t near_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

uint64_t near_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
