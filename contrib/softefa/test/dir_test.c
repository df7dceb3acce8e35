/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* softefa removes only its own files from the directory of run-time files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

static char dir[64];

static void dir_use(const char *name)
{
	snprintf(dir, sizeof(dir), "/dev/shm/softefa-test-%d-%s",
		 (int)getpid(), name);
	rig_env("SOFTEFA_DIR", dir);
}

/* Appends to the name of the directory until its path fills path[size]. */
static void lengthen(char *path, size_t size)
{
	int len = snprintf(path, size, "%s", dir);

	memset(path + len, 'x', size - 1 - len);
	path[size - 1] = '\0';
	rig_env("SOFTEFA_DIR", path);
}

static void touch(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_msg(fd >= 0, "%s: %d", path, errno);
	close(fd);
}

static bool there(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

static void drop(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ck_assert_int_eq(remove(path), 0);
}

/* Runs softefa in a child. Returns the number of devices. */
static int run_child(void)
{
	int status, count = 0;
	pid_t pid = fork();

	if (!pid) {
		if (!ibv_get_device_list(&count))
			count = 0;
		exit(count);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const char *const own[] = {
	"q-and-a.txt", "q-fe80000000000000000000000000000-1",
	"q-fe800000000000000000000000000000-1.bak",
	"q-fe800000000000000000000000000000-", "sys-backups", "sys-log",
	"db-dump", "thesis.tex",
};
#define OWN (int)(sizeof(own) / sizeof(own[0]))

/*
 * If SOFTEFA_DIR has foreign files, the process gets no device, and softefa
 * removes no file.
 */
START_TEST(foreign_directory_is_not_changed)
{
	int i;

	dir_use("others");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	for (i = 0; i < OWN; i++)
		touch(own[i]);
	ck_assert_int_eq(run_child(), 0);
	for (i = 0; i < OWN; i++) {
		ck_assert_msg(there(own[i]), "%s", own[i]);
		drop(own[i]);
	}
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* Foreign files in softefa's directory stay, even within its trees. */
START_TEST(foreign_files_are_not_removed)
{
	char tree[128];
	int i;

	dir_use("mixed");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	touch(".softefa");
	for (i = 0; i < OWN; i++)
		touch(own[i]);
	snprintf(tree, sizeof(tree), "%s/sys-abcdef", dir);
	ck_assert_int_eq(mkdir(tree, 0700), 0);
	touch("sys-abcdef/lock");
	touch("sys-abcdef/precious");
	touch("q-fe800000000000000000000000000000-1");
	touch("db-fe800000000000000000000000000000-1");
	ck_assert_int_eq(run_child(), 1);
	ck_assert(!there("q-fe800000000000000000000000000000-1"));
	ck_assert(!there("db-fe800000000000000000000000000000-1"));
	ck_assert(!there("sys-abcdef/lock"));
	for (i = 0; i < OWN; i++) {
		ck_assert_msg(there(own[i]), "%s", own[i]);
		drop(own[i]);
	}
	drop("sys-abcdef/precious");
	drop("sys-abcdef");
	drop(".softefa");
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/*
 * A process was killed after it made its tree, and before it made the lock in
 * the tree. A later process removes the tree.
 */
START_TEST(tree_without_lock_is_removed)
{
	char tree[128];

	dir_use("empty");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	snprintf(tree, sizeof(tree), "%s/sys-abcdef", dir);
	ck_assert_int_eq(mkdir(tree, 0700), 0);
	ck_assert_int_eq(run_child(), 1);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* The directory is removed if softefa created it; otherwise it stays. */
START_TEST(directory_is_removed_by_its_creator)
{
	dir_use("found");
	ck_assert_int_eq(run_child(), 1);
	ck_assert(!there("."));
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert_int_eq(run_child(), 1);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* A path that is too long or relative gives no device, and no directory. */
START_TEST(invalid_path_gives_no_device)
{
	char path[210];

	dir_use("invalid");
	lengthen(path, sizeof(path));
	ck_assert_int_eq(run_child(), 0);
	path[191] = '\0';
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_int_eq(chdir("/dev/shm"), 0);
	rig_env("SOFTEFA_DIR", strrchr(dir, '/') + 1);
	ck_assert_int_eq(run_child(), 0);
	ck_assert_int_ne(access(dir, F_OK), 0);
}
END_TEST

/* With the longest permitted path, the names of all files must fit. */
START_TEST(longest_path_works)
{
	char path[192];

	dir_use("longest");
	lengthen(path, sizeof(path));
	rig_env("SOFTEFA_NDEV", "32");
	ck_assert_int_eq(run_child(), 32);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

#define STARTS 400

/*
 * Two rows of processes start and exit without pause, so that the last process
 * removes the directory while another one starts. Each gets a device, and the
 * directory is not left behind.
 */
START_TEST(processes_start_and_exit_at_the_same_time)
{
	int i, status, bad = 0;
	pid_t pid;

	dir_use("race");
	pid = fork();
	ck_assert_int_ge(pid, 0);
	for (i = 0; i < STARTS; i++)
		bad += run_child() != 1;
	if (!pid)
		_exit(bad != 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(bad, 0);
	ck_assert(!there("."));
}
END_TEST

/*
 * If the process can open no file descriptor, it gets no device, and errno has
 * the reason.
 */
START_TEST(missing_descriptor_is_reported)
{
	struct rlimit limit = { 3, 3 };

	dir_use("limit");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_ptr_null(ibv_get_device_list(NULL));
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* A process whose start fails leaves no files behind. */
START_TEST(failed_start_leaves_no_files)
{
	struct rlimit limit = { 0, 0 };
	int status;
	pid_t pid;

	dir_use("full");
	if (_i)
		ck_assert_int_eq(mkdir(dir, 0700), 0);
	pid = fork();
	if (!pid) {
		/*
		 * With this limit, softefa can create files, but not write to
		 * them, as on a full file system
		 */
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		exit(!ibv_get_device_list(NULL));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 1);
	if (_i)
		ck_assert_int_eq(rmdir(dir), 0);
	ck_assert(!there("."));
}
END_TEST

Suite *suite_dir(void)
{
	Suite *suite = suite_create("dir");
	TCase *tc = tcase_create("dir");

	tcase_add_test(tc, foreign_directory_is_not_changed);
	tcase_add_test(tc, foreign_files_are_not_removed);
	tcase_add_test(tc, tree_without_lock_is_removed);
	tcase_add_test(tc, directory_is_removed_by_its_creator);
	tcase_add_test(tc, invalid_path_gives_no_device);
	tcase_add_test(tc, longest_path_works);
	tcase_add_test(tc, processes_start_and_exit_at_the_same_time);
	tcase_add_test(tc, missing_descriptor_is_reported);
	tcase_add_loop_test(tc, failed_start_leaves_no_files, 0, 2);
	suite_add_tcase(suite, tc);
	return suite;
}
