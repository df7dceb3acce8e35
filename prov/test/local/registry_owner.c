/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The user's registry directory. All processes of the user must find the same
 * directory, even if many start at once. Other users and hosts may have objects
 * with similar names.
 */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/proc.h"
#include "unit.h"

#define LEAST "0000000000000000"	/* sorts before all random names */
#define STARTERS 8
#define ROUNDS 20

static const char *dir;
static char ours[DUO_PATH_MAX];

UNIT_SETUP(setup, dir = unit_dir_make());

/* Stores the name of this user's registry on the host with this id. */
static void make_name(char *path, size_t size, uint64_t host)
{
	snprintf(path, size, "%s/ofi_duo.%016" PRIx64 "." LEAST, dir, host);
}

static void make_name_here(char *path, size_t size)
{
	uint64_t host;

	ck_assert_int_eq(duo_proc_host(&host), 0);
	make_name(path, size, host);
}

static void expect_ours(const char *what)
{
	char again[DUO_PATH_MAX];
	struct stat st;
	int fd = duo_registry_open(dir, ours);

	ck_assert_msg(fd >= 0, "%s: %d", what, fd);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_msg((st.st_mode & 07777) == 0700, "%s: %o", what,
		      st.st_mode);
	close(fd);
	fd = duo_registry_open(dir, again);
	ck_assert_msg(fd >= 0 && !strcmp(ours, again), "%s: %s", what, again);
	close(fd);
}

enum squatter {
	SYMLINK, DANGLING, REGULAR, GROUP_MAY_READ, OTHERS_MAY_WRITE, FOREIGN,
};

static const struct {
	const char *name;
	enum squatter squatter;
} squatter_cases[] = {
	{ "symbolic link to a good directory", SYMLINK },
	{ "dangling symbolic link", DANGLING },
	{ "file", REGULAR },
	{ "the group may read", GROUP_MAY_READ },
	{ "others may write", OTHERS_MAY_WRITE },
	{ "another user's", FOREIGN },
};

static void squat(enum squatter squatter, const char *path)
{
	char good[2 * DUO_PATH_MAX];

	snprintf(good, sizeof(good), "%s.good", path);
	umask(0);
	switch (squatter) {
	case SYMLINK:
		ck_assert_int_eq(mkdir(good, 0700), 0);
		ck_assert_int_eq(symlink(good, path), 0);
		break;
	case DANGLING:
		ck_assert_int_eq(symlink("/nonexistent", path), 0);
		break;
	case REGULAR:
		close(open(path, O_CREAT | O_WRONLY, 0600));
		break;
	case GROUP_MAY_READ:
		ck_assert_int_eq(mkdir(path, 0740), 0);
		break;
	case OTHERS_MAY_WRITE:
		ck_assert_int_eq(mkdir(path, 0702), 0);
		break;
	default:
		ck_assert_int_eq(mkdir(path, 0700), 0);
		ck_assert_int_eq(chown(path, 12345, 12345), 0);
	}
}

UNIT_CASE("owner", setup, unit_dir_remove);

/*
 * An object that has a registry's name, but belongs to another user or is no
 * directory, must be ignored.
 */
UNIT_LOOP(foreign_object_is_ignored, 0, ARRAY_SIZE(squatter_cases))
{
	const char *what = squatter_cases[_i].name;
	char path[DUO_PATH_MAX];
	struct stat st;

	if (squatter_cases[_i].squatter == FOREIGN && geteuid())
		return;		/* only root can make the object */
	make_name_here(path, sizeof(path));
	squat(squatter_cases[_i].squatter, path);
	expect_ours(what);
	ck_assert_msg(strcmp(ours, path), "%s: used", what);
	ck_assert_msg(!lstat(path, &st), "%s: removed", what);
}

/*
 * A directory of another host stays, because its pids and locks have no meaning
 * on this host.
 */
UNIT_TEST(directory_of_other_host_stays)
{
	char path[DUO_PATH_MAX], file[2 * DUO_PATH_MAX];
	struct stat st;
	uint64_t host;

	ck_assert_int_eq(duo_proc_host(&host), 0);
	make_name(path, sizeof(path), ~host);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(file, sizeof(file), "%s/" LEAST ".new", path);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	expect_ours("beside another host's");
	ck_assert_str_ne(ours, path);
	ck_assert_uint_eq(unit_sweep(dir), 0);
	ck_assert_int_eq(stat(file, &st), 0);
}

UNIT_TEST(unfinished_directory_of_dead_maker_is_used)
{
	char path[DUO_PATH_MAX];
	struct stat st;

	make_name_here(path, sizeof(path));
	ck_assert_int_eq(mkdir(path, 01700), 0);
	expect_ours("beside a dead maker's");
	ck_assert_str_ne(ours, path);
	ck_assert_int_ne(stat(path, &st), 0);
}

static bool is_open(const char *fds, const char *path)
{
	DIR *stream = opendir(fds);
	char target[DUO_PATH_MAX];
	struct dirent *entry;
	bool found = false;
	ssize_t len;

	while (stream && !found && (entry = readdir(stream))) {
		len = readlinkat(dirfd(stream), entry->d_name, target,
				 sizeof(target) - 1);
		found = len > 0 && (size_t) len == strlen(path) &&
			!memcmp(target, path, len);
	}
	closedir(stream);
	return found;
}

static void wait_until_open(pid_t pid, const char *path)
{
	char fds[64];

	snprintf(fds, sizeof(fds), "/proc/%d/fd", (int) pid);
	while (!is_open(fds, path))
		usleep(1000);
}

/*
 * A child finds a directory that another process, the maker, has not finished.
 * The child must wait for the directory's lock, and then use the directory.
 */
UNIT_TEST(unfinished_directory_is_waited_for)
{
	char path[DUO_PATH_MAX];
	int fd;
	pid_t child;

	make_name_here(path, sizeof(path));
	ck_assert_int_eq(mkdir(path, 01700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	child = fork();
	if (!child) {
		close(fd);
		fd = duo_registry_open(dir, ours);
		_exit(fd < 0 || strcmp(ours, path));
	}
	/* the child has opened the directory; next it waits for the lock */
	wait_until_open(child, path);
	ck_assert_int_eq(fchmod(fd, 0700), 0);
	ck_assert_int_eq(flock(fd, LOCK_UN), 0);
	unit_join(child);
}

/*
 * The maker of the directory was stopped. duo_registry_lock() must return
 * -FI_EBUSY, and not wait in duo_registry_open(): fi_enable() would hold the
 * domain's locks during the wait.
 */
UNIT_TEST(unfinished_directory_of_stopped_maker_is_busy)
{
	char path[DUO_PATH_MAX];
	int fd;

	make_name_here(path, sizeof(path));
	ck_assert_int_eq(mkdir(path, 01700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(duo_registry_lock(dir, DUO_REGISTRY_SHARED),
			 -FI_EBUSY);
	close(fd);
}

static int count_dirs(void)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(stream)))
		count += entry->d_type == DT_DIR && entry->d_name[0] != '.';
	closedir(stream);
	return count;
}

/* Starts a process that creates and removes a file with a registry's name. */
static pid_t start_churn(void)
{
	char path[DUO_PATH_MAX];
	pid_t child = fork();

	if (child)
		return child;
	make_name_here(path, sizeof(path));
	for (;;) {
		close(open(path, O_CREAT | O_WRONLY, 0600));
		unlink(path);
	}
}

/*
 * Child: waits until the parent has closed go[]. Then opens the registry's
 * directory, and writes this directory's inode number. Stays until all children
 * have written.
 */
static void starter(const int *go, int report, int leave)
{
	struct stat st;
	char byte;
	int fd;

	close(go[1]);
	/* until the parent lets all children start */
	if (read(go[0], &byte, 1))
		_exit(1);
	fd = duo_registry_open(dir, NULL);
	if (fd < 0 || fstat(fd, &st) ||
	    write(report, &st.st_ino, sizeof(st.st_ino)) < 0)
		_exit(1);
	_exit(read(leave, &byte, 1) != 0);
}

static void start_round(int round)
{
	int go[2], report[2], leave[2], i;
	pid_t child[STARTERS];
	ino_t first = 0, ino;

	ck_assert_int_eq(pipe(go) | pipe(report) | pipe(leave), 0);
	for (i = 0; i < STARTERS; i++) {
		child[i] = fork();
		if (!child[i]) {
			close(leave[1]);
			starter(go, report[1], leave[0]);
		}
	}
	close(go[1]);
	for (i = 0; i < STARTERS; i++) {
		ck_assert_int_eq(read(report[0], &ino, sizeof(ino)),
				 sizeof(ino));
		first = first ? first : ino;
		ck_assert_msg(ino == first, "round %d: two directories", round);
	}
	ck_assert_msg(count_dirs() == 1, "round %d: %d directories", round,
		      count_dirs());
	close(leave[1]);
	for (i = 0; i < STARTERS; i++)
		unit_join(child[i]);
	close(go[0]), close(report[0]), close(report[1]), close(leave[0]);
	i = duo_registry_open(dir, ours);
	close(i);
	ck_assert_int_eq(rmdir(ours), 0);
}

UNIT_TEST(concurrent_starts_use_one_directory)
{
	pid_t churn = start_churn();
	int round;

	for (round = 0; round < ROUNDS; round++)
		start_round(round);
	unit_kill(churn);
}
