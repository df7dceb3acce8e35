/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"

#define DUO_PROC_SPARE 16 /* number of file descriptors to leave free */
#define DUO_STAT_STATE 3 /* fields of /proc/PID/stat, counted from 1 */
#define DUO_STAT_THREADS 20
#define DUO_STAT_START 22

ssize_t duo_proc_read(const char *path, char *text, size_t size)
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

struct duo_stat {
	char state;		/* main thread's state, a letter: proc(5) */
	unsigned long threads;	/* number of threads */
	uint64_t start;
};

static int duo_proc_stat(pid_t pid, struct duo_stat *stat)
{
	char path[32], text[1024], *at;
	ssize_t len;
	int field;

	/* "self" works even if /proc belongs to another pid namespace */
	if (pid == getpid())
		strcpy(path, "/proc/self/stat");
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	len = duo_proc_read(path, text, sizeof(text));
	if (len <= 0)
		return len == -ENOENT || !len ? -ESRCH : (int)len;
	/* the second field, a name in (), may contain spaces and ')' */
	at = strrchr(text, ')');
	for (field = DUO_STAT_STATE; at && field <= DUO_STAT_START; field++) {
		at = strchr(at, ' ');
		if (!at++)
			break;
		if (field == DUO_STAT_STATE)
			stat->state = *at;
		if (field == DUO_STAT_THREADS)
			stat->threads = strtoul(at, NULL, 10);
	}
	if (!at)
		return -EPROTO;
	stat->start = strtoull(at, NULL, 10);
	return 0;
}

/* True if the main thread has ended. Other threads may still run. */
static bool duo_stat_ended(const struct duo_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

/* True if all threads have ended, but the parent has not called wait(). */
static bool duo_stat_zombie(const struct duo_stat *stat)
{
	return duo_stat_ended(stat) && stat->threads <= 1;
}

int duo_proc_start(pid_t pid, uint64_t *start)
{
	struct duo_stat stat;
	int ret = duo_proc_stat(pid, &stat);

	if (!ret && duo_stat_zombie(&stat))
		ret = -ESRCH;
	if (!ret)
		*start = stat.start;
	return ret;
}

/*
 * Checks by kill() and a pidfd whether a process has this pid, for a process
 * that /proc hides or whose start time is unknown. Returns
 * - -ESRCH: no process with this pid is alive
 * - -EACCES: a process is alive; its start time is unknown
 * - another -errno: pidfd_open() has failed, as in old kernels
 */
static int duo_proc_hidden(pid_t pid)
{
	bool ended = kill(pid, 0) && errno == ESRCH;
	int fd = ended ? -ESRCH : duo_proc_pidfd(pid);

	if (fd < 0)
		return fd;
	ended = duo_proc_ended(fd);
	close(fd);
	return ended ? -ESRCH : -EACCES;
}

int duo_proc_check(pid_t pid, uint64_t start)
{
	struct duo_stat stat;
	int ret = start ? duo_proc_stat(pid, &stat) : -ESRCH;

	if (ret == -ESRCH)
		return duo_proc_hidden(pid);
	if (!ret && (stat.start != start || duo_stat_zombie(&stat)))
		return -ESRCH;
	return ret;
}

static int duo_proc_open_path(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

/*
 * Opens file descriptor fd of process pid under another thread than the main
 * thread, which has ended: /proc/PID/task/TID/fd/FD. Tries each thread: some
 * may end meanwhile, and some may not share the process's file descriptors.
 */
static int duo_proc_open_by_thread(pid_t pid, int fd, int flags)
{
	struct dirent *entry;
	int ours = -ENOENT;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (ours < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)pid,
			 atoi(entry->d_name), fd);
		ours = duo_proc_open_path(path, flags);
	}
	closedir(dir);
	return ours;
}

int duo_proc_open(pid_t pid, int fd, int flags)
{
	struct duo_stat stat;
	char path[64];
	int ours;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	ours = duo_proc_open_path(path, flags);
	if (ours >= 0 || duo_proc_stat(pid, &stat) || !duo_stat_ended(&stat))
		return ours;
	return duo_proc_open_by_thread(pid, fd, flags);
}

/*
 * Does not use the pid, because /proc may belong to another pid namespace. Does
 * not use /proc/self either, because it has no file descriptors any more after
 * the main thread has ended.
 */
int duo_proc_open_own(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	return duo_proc_open_path(path, flags);
}

bool duo_proc_not_memfd(pid_t pid, int fd)
{
	static const char memfd[] = "/memfd:";
	char path[64], name[sizeof(memfd)] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	return readlink(path, name, sizeof(name) - 1) > 0 &&
	       strcmp(name, memfd);
}

int duo_proc_host(uint64_t *host)
{
	static const char boot_id[] = "/proc/sys/kernel/random/boot_id";
	char text[64];
	ssize_t len = duo_proc_read(boot_id, text, sizeof(text));

	if (len < 0)
		return (int)len;
	*host = duo_fnv(DUO_FNV, text, (size_t)len);
	return 0;
}

/*
 * Returns this process's pid in the pid namespace to which /proc belongs.
 * Returns 0 if that is this process's own pid namespace, or after an error.
 */
static uint32_t duo_proc_outside(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned int pid, more;
	uint32_t outside = 0;
	char *line = NULL;
	size_t size = 0;

	if (!status)
		return 0;
	/*
	 * The line NSpid has the process's pid in each pid namespace, from the
	 * namespace of /proc to the process's own. If these two namespaces
	 * differ, the line has several pids.
	 */
	while (getline(&line, &size, status) > 0) {
		if (sscanf(line, "NSpid:%u%*[ \t]%u", &pid, &more) == 2)
			outside = pid;
	}
	free(line);
	fclose(status);
	return outside;
}

int duo_proc_ns(uint64_t *pid_ns)
{
	uint64_t inode = duo_proc_inode("/proc/self/ns/pid");
	uint64_t time;

	if (!inode)
		return -errno;
	/* 0 in Linux before 5.6, which has no time namespaces */
	time = duo_proc_inode("/proc/self/ns/time");
	*pid_ns = (uint32_t)(inode ^ time << 16) |
		  (uint64_t)duo_proc_outside() << 32;
	return 0;
}

uint64_t duo_proc_inode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

uint64_t duo_fnv(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *byte = data;

	while (len--)
		hash = (hash ^ *byte++) * 0x100000001b3u;
	return hash;
}

bool duo_proc_user_known(void)
{
	unsigned int inside, outside, count;
	uid_t overflow = 65534;
	char text[128];

	if (duo_proc_read("/proc/sys/kernel/overflowuid", text,
			  sizeof(text)) > 0)
		overflow = (uid_t)strtoul(text, NULL, 10);
	if (geteuid() != overflow)
		return true;
	/* if all users have a uid here, the overflow uid is that of one user */
	return duo_proc_read("/proc/self/uid_map", text, sizeof(text)) > 0 &&
	       sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 &&
	       !inside && count == UINT32_MAX;
}

int duo_proc_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* pidfd_send_signal() fails with EBADF if fd is not a pidfd */
bool duo_proc_is_pidfd(int fd)
{
	return !syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) ||
	       errno != EBADF;
}

bool duo_proc_ended(int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

DIR *duo_dir_list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream && fd >= 0)
		close(fd);
	return stream;
}

int duo_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

/*
 * A high number of the new fd shows that few are free, because the kernel
 * allocates the lowest free number.
 */
bool duo_proc_scarce(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) &&
	       (rlim_t)fd + DUO_PROC_SPARE >= limit.rlim_cur;
}

uint64_t duo_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

uint64_t duo_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
