/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Processes, by pid and /proc: their identity, and whether they exist. */
#ifndef DUO_PROC_H
#define DUO_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Stores the start time of the process pid in *start, in ticks since boot. A
 * pid and its start time identify a process for ever. Returns 0, -ESRCH if pid
 * is a zombie or no process, or another -errno.
 */
int duo_proc_start(pid_t pid, uint64_t *start);

/*
 * duo_proc_open() opens the file behind descriptor fd of the process pid.
 * Returns a descriptor or -errno. duo_proc_link() reads the link of that
 * descriptor, as readlink(2). Returns a length or -errno. If the main thread of
 * pid has ended, both use another thread of the process, because /proc then has
 * no descriptors under the main thread.
 */
int duo_proc_open(pid_t pid, int fd, int flags);
/*
 * Opens the file behind a descriptor of this process again. Returns a
 * descriptor or -errno.
 */
int duo_proc_open_own(int fd, int flags);
ssize_t duo_proc_link(pid_t pid, int fd, char *target, size_t size);
/*
 * Returns 0 if the process with this pid and start time exists (start 0:
 * unknown). Returns -ESRCH if it has ended. Returns another -errno if the check
 * fails, for example because no descriptor is free, or because /proc hides the
 * process.
 */
int duo_proc_check(pid_t pid, uint64_t start);

/* Stores an id of this host's boot in *host. Returns 0 or -errno. */
int duo_proc_host(uint64_t *host);
/*
 * Stores an id of the pid namespace in *pid_ns. Two processes with equal ids
 * find each other in /proc by their pids. If /proc belongs to another pid
 * namespace, the id is unique to this process. Returns 0 or -errno.
 */
int duo_proc_ns(uint64_t *pid_ns);
/*
 * Returns the inode of a file in /proc, which is the id of a namespace; 0:
 * unknown.
 */
uint64_t duo_proc_inode(const char *path);

/*
 * True if a file or a socket's message with this process's effective uid must
 * be of this user. False if that uid is the overflow uid, which stands for all
 * users that this user namespace does not map.
 */
bool duo_proc_user_known(void);

/*
 * duo_proc_pidfd() returns a descriptor that becomes readable when the process
 * pid ends, or -errno. duo_proc_ended() returns true if the process of such a
 * descriptor has ended.
 */
int duo_proc_pidfd(pid_t pid);
bool duo_proc_is_pidfd(int fd);
bool duo_proc_ended(int pidfd);
/*
 * True if fd is one of the last descriptors that this process may open. These
 * are reserved for short-lived uses and for other libraries, so the caller must
 * not keep fd.
 */
bool duo_proc_scarce(int fd);

/* FNV-1a: returns the hash after adding data to the previous hash. */
#define DUO_FNV 0xcbf29ce484222325u	/* hash without data */
uint64_t duo_fnv(uint64_t hash, const void *data, size_t len);

/* Monotonic time. duo_now_ms() is coarse and cheap, duo_now_ns() is exact. */
uint64_t duo_now_ms(void);
uint64_t duo_now_ns(void);

#endif /* DUO_PROC_H */
