/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#ifndef FT_CHILD_H
#define FT_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A forked process, and the pipes from it and to it. */
struct ft_child {
	pid_t pid;
	int from, to;
};

/*
 * Forks. In the parent, *to describes the child. In the child, to->pid is 0,
 * and the pipes lead to the parent.
 */
void ft_fork(struct ft_child *to);
/*
 * Forks, and returns in the child only; the parent waits for the child's exit,
 * and exits. The child is the first process of a new pid namespace. With
 * "users", the child also has a new user namespace. Parent and child form a
 * process group, so that a signal to the group reaches both.
 */
void ft_move_away(bool users);
void ft_end_child(struct ft_child *child);

void ft_tell(int fd, const void *what, size_t len);
/* Reads len bytes. Returns false if the writer has exited. */
bool ft_hear(int fd, void *what, size_t len);

#endif /* FT_CHILD_H */
