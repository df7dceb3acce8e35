/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Processes that a test forks by itself, and kills. */
#ifndef FT_CHILD_H
#define FT_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A process that this one forks, and pipes from and to it. */
struct ft_child {
	pid_t pid;
	int from, to;
};

/* In the child *to is the parent, with pid 0. */
void ft_fork(struct ft_child *to);
/*
 * The rest of this process is another one, the first of a pid namespace, which
 * with users is in a user namespace of its own. They are one process group, so
 * that both are stopped, and killed.
 */
void ft_move_away(bool users);
void ft_end_child(struct ft_child *child);

void ft_tell(int fd, const void *what, size_t len);
/* False: the other one is dead. */
bool ft_hear(int fd, void *what, size_t len);

#endif /* FT_CHILD_H */
