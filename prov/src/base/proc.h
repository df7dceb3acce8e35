/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Processes by pid and /proc; files, directories, threads and clocks. */
#ifndef DUO_PROC_H
#define DUO_PROC_H

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Stores the start time of a process, in ticks since boot. Pid and start time
 * together identify a process. Returns 0, -ESRCH if the process does not exist
 * or is a zombie, or another -errno.
 */
int duo_proc_start(pid_t pid, uint64_t *start);

/*
 * Opens the file that a process has open as file descriptor fd, even if the
 * main thread of that process has ended. Returns a new file descriptor or
 * -errno.
 */
int duo_proc_open(pid_t pid, int fd, int flags);
/*
 * Opens again the file that this process has open as file descriptor fd.
 * Returns a new file descriptor or -errno.
 */
int duo_proc_open_own(int fd, int flags);
/*
 * True if the file that a process has open as file descriptor fd is not a
 * memfd. False if the file is a memfd, or if this process cannot find out.
 */
bool duo_proc_not_memfd(pid_t pid, int fd);
/*
 * Checks whether the process with this pid and start time exists. Returns 0 if
 * the process exists, -ESRCH if it has ended, and another -errno if the check
 * fails, for example because /proc hides the process. If `start` is 0
 * (unknown), never returns 0, because another process might have the pid now.
 */
int duo_proc_check(pid_t pid, uint64_t start);

/* Stores an id of this boot of the host. Returns 0 or -errno. */
int duo_proc_host(uint64_t *host);
/*
 * Stores an id of this process's pid namespace and time namespace. Processes
 * with the same id can find each other in /proc by pid and start time. If /proc
 * belongs to another pid namespace than this process, this process cannot find
 * others there by the pids of its own namespace. In this case the id also
 * contains the process's pid in the namespace of /proc, so that no other
 * process has the same id. Returns 0 or -errno.
 */
int duo_proc_ns(uint64_t *pid_ns);
/* Returns the inode of a file, such as /proc/PID/ns/NAME; 0: error. */
uint64_t duo_proc_inode(const char *path);

/*
 * True if no two users can have this process's effective uid. In a user
 * namespace, all users that the namespace does not map have the overflow uid.
 * So the overflow uid is unique only if the namespace maps all users.
 */
bool duo_proc_user_known(void);

/* Returns a pidfd, which is readable once the process has ended, or -errno. */
int duo_proc_pidfd(pid_t pid);
bool duo_proc_is_pidfd(int fd);
bool duo_proc_ended(int pidfd);
/* Reads a small file as text. Returns the length, below size, or -errno. */
ssize_t duo_proc_read(const char *path, char *text, size_t size);

/*
 * Opens a stream of the directory that is open as file descriptor `dir`. The
 * caller must close the stream by closedir(), and `dir`. NULL: error.
 */
DIR *duo_dir_list(int dir);

/* Starts a thread that blocks all signals. Returns 0 or a positive errno. */
int duo_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/*
 * True if few file descriptors are free. fd: a file descriptor that the caller
 * has just opened. If the result is true, the caller must close fd soon.
 */
bool duo_proc_scarce(int fd);

/* Adds data to an FNV-1a hash. Returns the new hash. */
#define DUO_FNV 0xcbf29ce484222325u	/* the hash of no data */
uint64_t duo_fnv(uint64_t hash, const void *data, size_t len);

/*
 * Return the monotonic time. duo_now_ns() is exact. duo_now_ms() is cheaper,
 * but changes only every few milliseconds.
 */
uint64_t duo_now_ms(void);
uint64_t duo_now_ns(void);
/*
 * Return the monotonic time to the data path (clock.c). Unit tests replace
 * these functions. duo_clock_coarse_ms() is cheaper than duo_clock_us(), but
 * changes only every few milliseconds.
 */
uint64_t duo_clock_us(void);
uint64_t duo_clock_coarse_ms(void);

#endif /* DUO_PROC_H */
