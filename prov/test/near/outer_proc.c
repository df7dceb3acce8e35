/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* base/proc.c in processes whose /proc is that of an outer pid namespace */

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

UNIT_CASE("outer proc", NULL, NULL);

/* Pid namespace and start time that a process finds for itself */
struct itself {
	uint64_t ns;
	uint64_t start;
	int err;
};

static void tell_itself(int fd)
{
	struct itself itself = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	itself.err = duo_proc_ns(&itself.ns);
	if (!itself.err)
		itself.err = duo_proc_start(getpid(), &itself.start);
	if (write(fd, &itself, sizeof(itself)) < 0)
		_exit(2);
	for (;;)
		pause();
}

/* Joins many groups, which /proc/PID/status lists before the pids. */
static void join_groups(void)
{
	static gid_t group[2000];
	int i;

	for (i = 0; i < 2000; i++)
		group[i] = 100000 + i;
	if (setgroups(2000, group))
		fprintf(stderr, "groups: %s\n", strerror(errno));
}

/* Forks two processes in a new pid namespace. Returns their parent's pid. */
static pid_t two_in_a_namespace(int fd, bool groups)
{
	pid_t maker = fork();
	int i;

	if (maker)
		return maker;
	if (groups)
		join_groups();
	if (unshare(CLONE_NEWPID))
		_exit(0);
	for (i = 0; i < 2; i++)
		if (!fork())
			tell_itself(fd);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

/*
 * The processes still have the /proc of the outer namespace. If _i is 1, they
 * are in many groups.
 */
UNIT_LOOP(outer_proc_yields_own_pid, 0, 2)
{
	struct itself itself[2];
	uint64_t ns, start;
	pid_t maker, pid[2];
	ssize_t len;
	int fd[2], i;

	ck_assert_int_eq(duo_proc_ns(&ns), 0);
	ck_assert_int_eq(pipe(fd), 0);
	maker = two_in_a_namespace(fd[1], _i);
	close(fd[1]);
	for (i = 0; i < 2; i++) {
		len = read(fd[0], &itself[i], sizeof(itself[i]));
		if (!i && !len) {
			rig_skip("proc_of_outside",
				 "no pid namespace may be made");
			return;
		}
		ck_assert_int_eq(len, sizeof(itself[i]));
		ck_assert_int_eq(itself[i].err, 0);
		ck_assert(itself[i].ns != ns);
		/* the pid in the test's namespace */
		pid[i] = itself[i].ns >> 32;
		ck_assert_int_eq(duo_proc_start(pid[i], &start), 0);
		ck_assert(itself[i].start == start);
	}
	ck_assert(itself[0].ns != itself[1].ns);
	while (i--)
		kill(pid[i], SIGKILL);
	ck_assert_int_eq(waitpid(maker, NULL, 0), maker);
}
