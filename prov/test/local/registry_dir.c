/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The registry's directory: permissions, lock, sweep and removal */

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "unit.h"

static const char *dir;
static char path[DUO_PATH_MAX];
static struct duo_publication pub = { .fd = -1 };

static void setup(void)
{
	int fd;

	dir = unit_dir_make();
	fd = duo_registry_open(dir, path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	duo_registry_withdraw(&pub);
	unit_dir_remove();
}

static void publish(void)
{
	unit_publish(dir, "a", 1, &pub);
}

static int lock(enum duo_registry_lock_mode mode)
{
	int fd = duo_registry_lock(dir, mode);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* True if another process could lock the directory in this mode. */
static bool can_lock(int operation)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	bool can = !flock(fd, operation | LOCK_NB);

	close(fd);
	return can;
}

UNIT_CASE("owner", setup, teardown);

UNIT_TEST(directory_has_mode_of_owner_only)
{
	struct stat st;
	int fd;

	umask(0);
	fd = lock(DUO_REGISTRY_SHARED);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_uint_eq(st.st_uid, geteuid());
	duo_registry_unlock(fd);
}

/*
 * All users share the parent directory. A lock of it, by any user, must not
 * delay the registry.
 */
UNIT_TEST(lock_of_parent_has_no_effect)
{
	int base = open(dir, O_RDONLY | O_DIRECTORY);

	ck_assert_int_eq(flock(base, LOCK_EX), 0);
	duo_registry_unlock(lock(DUO_REGISTRY_EXCLUSIVE));
	publish();
	close(base);
}

UNIT_CASE("lock", setup, teardown);

UNIT_TEST(lock_is_shared_or_exclusive)
{
	int one = lock(DUO_REGISTRY_SHARED);
	int two = lock(DUO_REGISTRY_SHARED);

	ck_assert(!can_lock(LOCK_EX));
	duo_registry_unlock(one);
	ck_assert(!can_lock(LOCK_EX));
	duo_registry_unlock(two);
	one = lock(DUO_REGISTRY_EXCLUSIVE);
	ck_assert(!can_lock(LOCK_SH));
	duo_registry_unlock(one);
	ck_assert(can_lock(LOCK_EX));
}

/*
 * A child waits while the parent holds the lock exclusively. Then the child
 * must find the record that the parent published meanwhile.
 */
UNIT_TEST(exclusive_lock_is_waited_for)
{
	int fd = lock(DUO_REGISTRY_EXCLUSIVE);
	char name[DUO_TRANSPORT_NAME_MAX];
	pid_t child = fork();

	if (!child) {
		close(fd);
		lock(DUO_REGISTRY_SHARED);
		_exit(unit_lookup(dir, "a", 1, name) != FI_DUO_OK);
	}
	usleep(30000);
	publish();
	duo_registry_unlock(fd);
	unit_join(child);
}

UNIT_TEST(wait_for_lock_grows_with_starts)
{
	int i, fd = lock(DUO_REGISTRY_EXCLUSIVE);
	pid_t child = fork();

	if (!child) {
		close(fd);
		lock(DUO_REGISTRY_EXCLUSIVE);
		_exit(0);
	}
	for (i = 0; i < 16; i++) {	/* 4 s: over DUO_LOCK_WAIT_MS */
		usleep(250000);
		publish();
		duo_registry_withdraw(&pub);
	}
	duo_registry_unlock(fd);
	unit_join(child);
}

UNIT_TEST(forked_child_does_not_keep_lock)
{
	int fd = lock(DUO_REGISTRY_EXCLUSIVE), ready[2];
	pid_t child;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	if (!child) {
		close(ready[1]);
		/* returns when the parent has tested the lock */
		_exit(read(ready[0], &fd, 1) != 0);
	}
	duo_registry_unlock(fd);
	ck_assert(can_lock(LOCK_EX));
	close(ready[1]);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

UNIT_CASE("life", setup, teardown);

UNIT_TEST(last_withdrawal_removes_directory)
{
	struct duo_publication second = { .fd = -1 };

	publish();
	ck_assert_int_eq(unit_reserve(dir, "b", 1, &second), 0);
	duo_registry_withdraw(&second);
	ck_assert_int_eq(access(path, F_OK), 0);
	duo_registry_withdraw(&pub);
	ck_assert_int_ne(access(path, F_OK), 0);
	publish();
	ck_assert_int_eq(unit_dir_count(), 1);
}

/*
 * A process that holds the directory's lock is going to publish a record. So
 * the last withdrawal must not remove the directory.
 */
UNIT_TEST(locked_directory_is_not_removed)
{
	int fd;

	publish();
	fd = lock(DUO_REGISTRY_SHARED);
	duo_registry_withdraw(&pub);
	ck_assert_int_eq(access(path, F_OK), 0);
	duo_registry_unlock(fd);
}

#define ROUNDS 100

/*
 * Two processes publish and withdraw records in a loop. Each must find the
 * directory, although the other one may remove it.
 */
UNIT_TEST(concurrent_starts_find_directory)
{
	int i;
	pid_t child = fork();

	for (i = 0; i < ROUNDS; i++) {
		int fd = duo_registry_lock(dir, DUO_REGISTRY_SHARED);
		int ret = fd < 0 ? fd : unit_reserve(dir, child ? "a" : "b", 1,
						     &pub);

		if (!ret)
			ret = duo_registry_ready(&pub);
		if (!child && ret)
			_exit(1);
		ck_assert_msg(!ret, "round %d: %d", i, ret);
		duo_registry_unlock(fd);
		duo_registry_withdraw(&pub);
	}
	if (!child)
		_exit(0);
	unit_join(child);
	ck_assert_ptr_null(unit_registry());
}

/* Leaves a record without a lock, as an exited process does. */
static void leave_dead(void)
{
	int registry = duo_registry_open(dir, NULL);
	int fd = openat(registry, "0123456789abcdef.new",
			O_CREAT | O_EXCL | O_WRONLY, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
	close(registry);
}

static void swept(int seconds_ago)
{
	struct timespec times[2] = { { 0 }, { .tv_nsec = UTIME_OMIT } };

	ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
	times[0].tv_sec -= seconds_ago;
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

UNIT_TEST(sweep_is_limited_in_rate)
{
	time_t begin;

	/*
	 * repeats until both calls of duo_registry_tidy() are within a second
	 */
	do {
		begin = time(NULL);
		leave_dead();
		swept(10);
		duo_registry_tidy(dir, duo_transports);
		ck_assert_int_eq(unit_dir_count(), 0);
		leave_dead();
		duo_registry_tidy(dir, duo_transports);
	} while (!unit_dir_count() && time(NULL) > begin + 1);
	ck_assert_msg(unit_dir_count() == 1, "swept twice in a second");
	swept(-10);	/* as if the clock had been set back */
	duo_registry_tidy(dir, duo_transports);
	ck_assert_int_eq(unit_dir_count(), 0);
}

/*
 * Another process holds the lock of the directory. It has created a record's
 * file, but not locked the file yet. A sweep must keep the file.
 */
UNIT_TEST(sweep_keeps_unlocked_new_file)
{
	int fd = lock(DUO_REGISTRY_SHARED);

	leave_dead();
	swept(10);
	duo_registry_tidy(dir, duo_transports);
	ck_assert_int_eq(unit_dir_count(), 1);
	duo_registry_unlock(fd);
	/*
	 * again, because unit_dir_count() has changed the access time, which is
	 * the time of the last sweep
	 */
	swept(10);
	duo_registry_tidy(dir, duo_transports);
	ck_assert_int_eq(unit_dir_count(), 0);
}
