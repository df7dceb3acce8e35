/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Descriptors by which peers detect that this process is alive: locked rings
 * and bound sockets. A forked child closes them, because the child may live
 * longer than the parent. The child must not use the device or remove the
 * parent's files.
 */
#include <errno.h>
#include <unistd.h>

#include "softefa.h"

#define SE_FORK_FDS 4096

static pthread_mutex_t se_fork_lock = PTHREAD_MUTEX_INITIALIZER;
static int se_fork_fds[SE_FORK_FDS];
static int se_fork_count;
static bool se_is_child;

static void se_fork_child(void)
{
	int i;

	se_is_child = true;
	for (i = 0; i < se_fork_count; i++)
		close(se_fork_fds[i]);
	se_fork_count = 0;
}

void se_fork_init(void)
{
	pthread_atfork(NULL, NULL, se_fork_child);
}

bool se_forked(void)
{
	return se_is_child;
}

void se_fork_add(int fd)
{
	pthread_mutex_lock(&se_fork_lock);
	if (se_fork_count < SE_FORK_FDS)
		se_fork_fds[se_fork_count++] = fd;
	pthread_mutex_unlock(&se_fork_lock);
}

void se_fork_close(int fd)
{
	int i;

	pthread_mutex_lock(&se_fork_lock);
	for (i = 0; i < se_fork_count; i++) {
		if (se_fork_fds[i] == fd) {
			se_fork_fds[i] = se_fork_fds[--se_fork_count];
			break;
		}
	}
	pthread_mutex_unlock(&se_fork_lock);
	close(fd);
}
