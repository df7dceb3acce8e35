/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

static char unit_dir[64];
static uint64_t unit_now_us = 1000000000;
static uint64_t unit_reads;

uint64_t duo_clock_us(void)
{
	__atomic_fetch_add(&unit_reads, 1, __ATOMIC_RELAXED);
	return unit_now_us;
}

uint64_t unit_clock_reads(void)
{
	return __atomic_load_n(&unit_reads, __ATOMIC_RELAXED);
}

uint64_t duo_clock_coarse_ms(void)
{
	return unit_now_us / 1000;
}

void unit_pass(uint64_t us)
{
	unit_now_us += us;
}

uint64_t unit_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

const char *unit_dir_make(void)
{
	const char *parent = getenv("TMPDIR");

	ck_assert_int_lt(snprintf(unit_dir, sizeof(unit_dir),
				  "%s/ofi_duo-unit.XXXXXX",
				  parent ? parent : "/tmp"), sizeof(unit_dir));
	ck_assert_ptr_nonnull(mkdtemp(unit_dir));
	duo_params.registry_dir = unit_dir;
	return unit_dir;
}

static bool unit_is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Removes a file, or a directory with all its contents. */
static void unit_remove(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		unlinkat(at, name, 0);
		return;
	}
	while ((entry = readdir(dir))) {
		if (!unit_is_dot(entry->d_name))
			unit_remove(fd, entry->d_name);
	}
	closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

void unit_dir_remove(void)
{
	unit_remove(AT_FDCWD, unit_dir);
}

const char *unit_registry(void)
{
	static char path[DUO_PATH_MAX];
	DIR *dir = opendir(unit_dir);
	struct dirent *entry;
	bool found = false;

	ck_assert_ptr_nonnull(dir);
	while (!found && (entry = readdir(dir))) {
		found = !strncmp(entry->d_name, "ofi_duo.", 8);
		snprintf(path, sizeof(path), "%s/%s", unit_dir,
			 entry->d_name);
	}
	closedir(dir);
	return found ? path : NULL;
}

int unit_dir_count(void)
{
	const char *path = unit_registry();
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	if (!path)
		return 0;
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

void unit_dir_changed(int dir, int seconds_ago)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

	ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &times[1]), 0);
	times[1].tv_sec -= seconds_ago;
	ck_assert_int_eq(futimens(dir, times), 0);
}

size_t unit_sweep(const char *dir)
{
	int lock = duo_registry_lock(dir, DUO_REGISTRY_EXCLUSIVE);
	size_t live;

	ck_assert_int_ge(lock, 0);
	live = duo_registry_sweep(lock, duo_transports);
	duo_registry_unlock(lock);
	return live;
}

void unit_region_make(const char *peer_name)
{
	int fd;

	/* remove the object of a killed test that had the same pid, if any */
	shm_unlink(peer_name);
	fd = shm_open(peer_name, O_CREAT | O_EXCL | O_RDWR, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, UNIT_REGION), 0);
	close(fd);
}

bool unit_any_pid_ns;

enum fi_duo_reason unit_lookup(const char *dir, const void *addr, size_t len,
			       char *peer_name)
{
	struct duo_publication self = { .any_pid_ns = unit_any_pid_ns };
	enum fi_duo_reason reason;

	ck_assert_int_eq(duo_shm_publish(&self), 0);
	strcpy(self.peer_name, "unit-self");
	self.dir = duo_registry_open(dir, NULL);
	ck_assert_int_ge(self.dir, 0);
	ck_assert_int_eq(duo_proc_ns(&self.pid_ns), 0);
	reason = duo_registry_lookup(addr, len, &self, peer_name);
	close(self.dir);
	return reason;
}
