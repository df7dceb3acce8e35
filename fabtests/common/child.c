/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/ft.h"

void ft_tell(int fd, const void *what, size_t len)
{
	FT_CHECK(write(fd, what, len) == (ssize_t)len, "a pipe: %s",
		 strerror(errno));
}

bool ft_hear(int fd, void *what, size_t len)
{
	ssize_t n = read(fd, what, len);

	FT_CHECK(n == 0 || n == (ssize_t)len, "a pipe: %zd", n);
	return n;
}

static void ft_write_once(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	FT_CHECK(fd >= 0 && write(fd, text, strlen(text)) > 0, "%s: %s", path,
		 strerror(errno));
	close(fd);
}

/* Moves this process into a new user namespace, as its root. */
static void ft_own_users(void)
{
	uid_t uid = geteuid();
	char map[32];

	FT_OK(unshare(CLONE_NEWUSER));
	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)uid);
	ft_write_once("/proc/self/uid_map", map);
}

void ft_move_away(bool users)
{
	pid_t pid;

	if (users)
		ft_own_users();
	FT_OK(unshare(CLONE_NEWPID));
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid) {
		waitpid(pid, NULL, 0);
		_exit(FT_GONE);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void ft_fork(struct ft_child *to)
{
	int up[2], down[2];
	pid_t parent = getpid();

	FT_OK(pipe(up));
	FT_OK(pipe(down));
	to->pid = fork();
	FT_CHECK(to->pid >= 0, "fork: %s", strerror(errno));
	to->from = to->pid ? up[0] : down[0];
	to->to = to->pid ? down[1] : up[1];
	close(to->pid ? up[1] : down[1]);
	close(to->pid ? down[0] : up[0]);
	if (to->pid) {
		setpgid(to->pid, to->pid);
		return;
	}
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(FT_GONE);
	ft.neps = 0;
	ft.together = false;
}

void ft_end_child(struct ft_child *child)
{
	kill(-child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->from);
	close(child->to);
}
