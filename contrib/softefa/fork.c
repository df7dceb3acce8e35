/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Descriptors by which peers detect that this process is alive: locked rings
 * and bound sockets. A forked child closes them, because the child may live
 * longer than the parent. The child must not use the device or remove the
 * parent's files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softefa.h"

/* Held while a descriptor is opened and recorded, closed, or inherited. */
static pthread_mutex_t se_fork_lock = PTHREAD_MUTEX_INITIALIZER;
static int *se_fork_fds;
static size_t se_fork_count, se_fork_space;
static bool se_is_child;

static void se_fork_prepare(void)
{
	pthread_mutex_lock(&se_fork_lock);
}

static void se_fork_parent(void)
{
	pthread_mutex_unlock(&se_fork_lock);
}

static void se_fork_child(void)
{
	size_t i;

	se_is_child = true;
	for (i = 0; i < se_fork_count; i++)
		close(se_fork_fds[i]);
	se_fork_count = 0;
	pthread_mutex_unlock(&se_fork_lock);
}

void se_fork_init(void)
{
	pthread_atfork(se_fork_prepare, se_fork_parent, se_fork_child);
}

bool se_forked(void)
{
	return se_is_child;
}

/*
 * Makes space for one more descriptor. Returns false if there is no memory for
 * it.
 */
static bool se_fork_reserve(void)
{
	size_t space = se_fork_space ? 2 * se_fork_space : 64;
	int *fds;

	if (se_fork_count < se_fork_space)
		return true;
	fds = realloc(se_fork_fds, space * sizeof(*fds));
	if (!fds)
		return false;
	se_fork_fds = fds;
	se_fork_space = space;
	return true;
}

int se_fork_open(const char *path, int flags)
{
	int fd = -1;

	pthread_mutex_lock(&se_fork_lock);
	if (se_fork_reserve())
		fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd >= 0)
		se_fork_fds[se_fork_count++] = fd;
	pthread_mutex_unlock(&se_fork_lock);
	return fd;
}

int se_fork_socket(void)
{
	int fd = -1;

	pthread_mutex_lock(&se_fork_lock);
	if (se_fork_reserve())
		fd = socket(AF_INET,
			    SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		se_fork_fds[se_fork_count++] = fd;
	pthread_mutex_unlock(&se_fork_lock);
	return fd;
}

void se_fork_close(int fd)
{
	size_t i;

	pthread_mutex_lock(&se_fork_lock);
	for (i = 0; i < se_fork_count; i++) {
		if (se_fork_fds[i] == fd) {
			se_fork_fds[i] = se_fork_fds[--se_fork_count];
			break;
		}
	}
	close(fd);
	pthread_mutex_unlock(&se_fork_lock);
}
