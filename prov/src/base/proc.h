/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Identity and liveness of processes, by pid and /proc. */
#ifndef DUO_PROC_H
#define DUO_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Stores the start time of pid, in ticks after boot: with the pid it identifies
 * a process forever. Returns 0; -ESRCH: no such process, or a zombie.
 */
int duo_proc_start(pid_t pid, uint64_t *start);

/*
 * Open descriptor fd of pid in this process; read the link of fd. /proc has
 * descriptors under the main thread or, if that has ended, under the other
 * threads.
 */
int duo_proc_open(pid_t pid, int fd, int flags);
/* Opens a descriptor of this process again. */
int duo_proc_open_own(int fd, int flags);
ssize_t duo_proc_link(pid_t pid, int fd, char *target, size_t size);
/*
 * Returns 0 if the process with this pid and start (0: unknown) exists, -ESRCH
 * if it has ended. Any other error: the check is impossible, for example
 * because no descriptor is free, or /proc hides the process.
 */
int duo_proc_check(pid_t pid, uint64_t start);

/* Returns 0 and the id of this boot of this host, or -errno. */
int duo_proc_host(uint64_t *host);
/*
 * Returns 0 and an id of the pid namespace, or -errno. Processes with the same
 * id find each other by their pids in /proc. If /proc belongs to another pid
 * namespace, each process has an id of its own.
 */
int duo_proc_ns(uint64_t *pid_ns);
/* Returns the inode of a /proc file, the id of a namespace; 0: unknown. */
uint64_t duo_proc_inode(const char *path);

/*
 * True if a file or a message of a socket with this process's effective uid
 * must be this user's. False if the uid is the overflow uid and stands for all
 * users that this user namespace does not map.
 */
bool duo_proc_user_known(void);

/* Returns a descriptor that becomes readable when pid ends, or -errno. */
int duo_proc_pidfd(pid_t pid);
bool duo_proc_is_pidfd(int fd);
bool duo_proc_ended(int pidfd);
/*
 * True if fd is one of the last that this process may open. These are reserved
 * for short-lived uses and for other libraries: the caller must not keep fd.
 */
bool duo_proc_scarce(int fd);

/* FNV-1a: returns the hash continued over data. */
#define DUO_FNV 0xcbf29ce484222325u	/* hash of no data */
uint64_t duo_fnv(uint64_t hash, const void *data, size_t len);

/* Monotonic time: ms is coarse and cheap, ns exact. */
uint64_t duo_now_ms(void);
uint64_t duo_now_ns(void);

#endif /* DUO_PROC_H */
