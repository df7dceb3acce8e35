/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Processes, by pid and /proc: which is which, and which are alive. */
#ifndef DUO_PROC_H
#define DUO_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * When pid was started, in ticks after boot: with the pid it names a process
 * for good. -ESRCH: there is none, or all its threads have ended and nobody has
 * waited for it yet.
 */
int duo_proc_start(pid_t pid, uint64_t *start);

/*
 * Descriptor fd of pid: opened here, or what it is the descriptor of. The kernel
 * has them under the main thread, and where that has ended under the others.
 */
int duo_proc_open(pid_t pid, int fd, int flags);
/* A descriptor of this process, opened anew. */
int duo_proc_open_own(int fd, int flags);
ssize_t duo_proc_link(pid_t pid, int fd, char *target, size_t size);
/*
 * Returns 0 if the process that has had this pid since start (0: not known) is
 * there, -ESRCH if it has ended. Any other error: that cannot be told, because
 * no descriptor is free, for example, or /proc does not show the process.
 */
int duo_proc_check(pid_t pid, uint64_t start);

/* Returns 0 and a number of this machine and boot, or -errno. */
int duo_proc_host(uint64_t *host);
/*
 * Returns 0 and a number of the pid namespace, or -errno. Processes that have
 * the same find each other by their pids in /proc. Where /proc is that of
 * another pid namespace, each process has a number of its own.
 */
int duo_proc_ns(uint64_t *pid_ns);
/* The inode of a file of /proc, which names a namespace; 0: not known. */
uint64_t duo_proc_inode(const char *path);

/*
 * True if a file, or a message at a socket, is this user's if the kernel says
 * that its user has our effective number. All users that have no number in
 * this user namespace look like one, the overflow number.
 */
bool duo_proc_user_known(void);

/* A descriptor that becomes readable when pid ends, or a negative errno. */
int duo_proc_pidfd(pid_t pid);
bool duo_proc_is_pidfd(int fd);
bool duo_proc_ended(int pidfd);
/*
 * fd is one of the last that this process may have. Those are for what cannot
 * wait, and for others: they are not kept.
 */
bool duo_proc_scarce(int fd);

/* FNV-1a: the hash of what has given hash so far, and of data behind it. */
#define DUO_FNV 0xcbf29ce484222325u	/* of nothing */
uint64_t duo_fnv(uint64_t hash, const void *data, size_t len);

/* Coarse and cheap; exact. */
uint64_t duo_now_ms(void);
uint64_t duo_now_ns(void);

#endif /* DUO_PROC_H */
