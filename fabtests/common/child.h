/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Processes that a test forks and kills. */
#ifndef FT_CHILD_H
#define FT_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A forked process, and the descriptors of pipes from it and to it. */
struct ft_child {
	pid_t pid;
	int from, to;
};

/* Forks. In the child, *to has pid 0 and the pipes from and to the parent. */
void ft_fork(struct ft_child *to);
/*
 * Continues in another process, the first one of a pid namespace; if users is
 * set, in a user namespace of its own, too. Both processes form a process
 * group, so that both can be stopped and killed.
 */
void ft_move_away(bool users);
void ft_end_child(struct ft_child *child);

void ft_tell(int fd, const void *what, size_t len);
/* Reads len bytes. False: the writer has exited. */
bool ft_hear(int fd, void *what, size_t len);

#endif /* FT_CHILD_H */
