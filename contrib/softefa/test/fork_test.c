/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A forked child has no descriptor by which peers detect a live process. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

#define MANY 5000

/* A child closes all descriptors, even if there are thousands of QPs. */
START_TEST(child_closes_all_descriptors)
{
	int i, status, fd = -1;
	struct rlimit limit;
	pid_t pid;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < MANY + 100)
		return; /* the limit of open files is too low */
	se_fork_init();
	for (i = 0; i < MANY; i++) {
		fd = se_fork_open("/dev/null", O_RDONLY);
		ck_assert_int_ge(fd, 0);
	}
	pid = fork();
	if (!pid)
		_exit(fcntl(fd, F_GETFD) >= 0);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

struct opener {
	_Atomic bool stop;
};

/* Thread: opens and closes QPs without pause. */
static void *opener_run(void *arg)
{
	struct opener *opener = arg;
	struct rig_node node;

	while (!opener->stop) {
		rig_open(&node, NULL);
		rig_close(&node);
	}
	return NULL;
}

/* True if the descriptor is a socket, or has a lock on a ring. */
static bool shows_life(int fd)
{
	char path[64], text[512];
	struct stat st;
	ssize_t len;
	int info;

	if (fstat(fd, &st))
		return false;
	if (S_ISSOCK(st.st_mode))
		return true;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY);
	len = read(info, text, sizeof(text) - 1);
	close(info);
	text[len < 0 ? 0 : len] = '\0';
	return strstr(text, "FLOCK") != NULL;
}

static bool child_shows_life(void)
{
	int fd;

	for (fd = 3; fd < 256; fd++) {
		if (shows_life(fd))
			return true;
	}
	return false;
}

/*
 * If another thread of the parent creates or destroys a QP during the fork, the
 * child has no descriptor of that QP either.
 */
START_TEST(child_closes_descriptors_of_new_qp)
{
	struct opener opener = { 0 };
	int i, status, held = 0;
	struct rig_node a;
	pthread_t thread;
	pid_t pid;

	rig_wire(_i);
	rig_env("SOFTEFA_REORDER", "0");
	rig_open(&a, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, opener_run, &opener),
			 0);
	for (i = 0; i < 300; i++) {
		pid = fork();
		/*
		 * The child must not call ck_assert(): if the other thread held
		 * libcheck's lock during the fork, the child would wait for the
		 * lock forever. So the child reports its result by its status.
		 */
		if (!pid)
			_exit(child_shows_life());
		ck_assert_int_gt(pid, 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		held += status != 0;
	}
	opener.stop = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(held, 0);
	rig_close(&a);
}
END_TEST

Suite *suite_fork(void)
{
	Suite *suite = suite_create("fork");
	TCase *tc = tcase_create("fork");

	tcase_add_test(tc, child_closes_all_descriptors);
	tcase_add_loop_test(tc, child_closes_descriptors_of_new_qp, 0,
			    RIG_WIRES);
	suite_add_tcase(suite, tc);
	return suite;
}
