/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Owners of records that SIGKILL has ended. Lookups reject their records; a
 * sweep removes the records, and the regions (the owners' shared memory).
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "record.h"
#include "unit.h"

#define FILES 64 /* limit of open files in tests without free descriptors */

static const char *dir;
static char name[DUO_TRANSPORT_NAME_MAX], region[DUO_TRANSPORT_NAME_MAX];
static int report[2];	/* pipe through which the child reports its progress */

static void setup(void)
{
	dir = unit_dir_make();
	ck_assert_int_eq(pipe(report), 0);
}

static enum fi_duo_reason lookup(void)
{
	return unit_lookup(dir, "peer", 4, name);
}

static bool region_exists(const char *peer_name)
{
	int fd = shm_open(peer_name, O_RDONLY, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Child: publishes "peer" with a region, writes the region's name to the pipe,
 * and waits to be killed. If `orphan` is not NULL, forks a child, and writes
 * this child's pid to the pipe.
 */
static void child_main(bool ready, const pid_t *orphan)
{
	struct duo_publication pub;
	pid_t pid;

	if (unit_reserve(dir, "peer", 4, &pub))
		_exit(1);
	unit_region_make(pub.peer_name);
	if (ready && duo_registry_ready(&pub))
		_exit(1);
	pid = orphan ? fork() : -1;
	if (pid && (write(report[1], pub.peer_name, sizeof(name)) < 0 ||
		    (orphan && write(report[1], &pid, sizeof(pid)) < 0)))
		_exit(1);
	for (;;)
		pause();
}

static pid_t child_start(bool ready, pid_t *orphan)
{
	pid_t child = fork();

	if (!child)
		child_main(ready, orphan);
	ck_assert_int_eq(read(report[0], region, sizeof(region)),
			 sizeof(region));
	if (orphan)
		ck_assert_int_eq(read(report[0], orphan, sizeof(*orphan)),
				 sizeof(*orphan));
	return child;
}

/* Asserts that a sweep, or one of another process before, removed all. */
static void expect_swept(void)
{
	ck_assert_uint_eq(unit_sweep(dir), 0);
	ck_assert(!region_exists(region));
	ck_assert_int_eq(unit_dir_count(), 0);
}

UNIT_CASE("exited", setup, unit_dir_remove);

UNIT_TEST(record_of_dead_owner_is_swept)
{
	struct duo_publication pub;
	pid_t child = child_start(true, NULL);

	ck_assert_int_eq(lookup(), FI_DUO_OK);
	ck_assert_uint_eq(unit_sweep(dir), 1);
	unit_kill(child);
	ck_assert_int_eq(lookup(), FI_DUO_EXITED);
	expect_swept();
	ck_assert_int_eq(lookup(), FI_DUO_NOT_REGISTERED);
	/* the owner's address can be published again */
	ck_assert_int_eq(unit_reserve(dir, "peer", 4, &pub), 0);
	duo_registry_withdraw(&pub);
}

UNIT_TEST(reserved_record_of_dead_owner_is_swept)
{
	pid_t child = child_start(false, NULL);

	ck_assert_uint_eq(unit_sweep(dir), 1);
	unit_kill(child);
	expect_swept();
}

/*
 * The owner of a record exited after it had created the record's file, and
 * before it wrote to the file.
 */
UNIT_TEST(empty_record_of_dead_owner_is_swept)
{
	int registry = duo_registry_open(dir, NULL);

	close(openat(registry, "0123456789abcdef.new", O_CREAT | O_WRONLY,
		     0600));
	close(registry);
	ck_assert_int_eq(unit_dir_count(), 1);
	ck_assert_uint_eq(unit_sweep(dir), 0);
	ck_assert_int_eq(unit_dir_count(), 0);
}

/*
 * The owner has exited, but its child has inherited the record's file
 * descriptor and, by that, the record's lock. The owner must count as exited
 * all the same.
 */
UNIT_TEST(inherited_lock_does_not_keep_record)
{
	pid_t orphan, child = child_start(true, &orphan);

	ck_assert_int_eq(lookup(), FI_DUO_OK);
	unit_kill(child);
	ck_assert_int_eq(lookup(), FI_DUO_EXITED);
	expect_swept();
	kill(orphan, SIGKILL);
}

static int spare[FILES];
static int spares;

static void use_files(int left)
{
	unit_limit(RLIMIT_NOFILE, FILES);
	while ((spare[spares] = dup(report[0])) >= 0)
		spares++;
	while (left--)
		close(spare[--spares]);
}

static void free_files(void)
{
	while (spares)
		close(spare[--spares]);
}

/*
 * A sweep can open only _i more files, too few for /proc or the records. It
 * must not remove the record of a live process.
 */
UNIT_LOOP(sweep_without_descriptors_keeps_record, 0, 8)
{
	pid_t child = child_start(true, NULL);
	struct duo_publication own;
	int lock;

	unit_publish(dir, "own", 3, &own);
	lock = duo_registry_lock(dir, DUO_REGISTRY_EXCLUSIVE);
	ck_assert_int_ge(lock, 0);
	use_files(_i);
	duo_registry_sweep(lock, duo_transports);
	free_files();
	ck_assert_msg(unit_dir_count() == 2, "%d descriptors", _i);
	ck_assert_msg(region_exists(region), "%d descriptors: region", _i);
	ck_assert_int_eq(lookup(), FI_DUO_OK);
	duo_registry_unlock(lock);
	duo_registry_withdraw(&own);
	unit_kill(child);
	ck_assert_uint_eq(unit_sweep(dir), 0);
}

/*
 * A lookup can open only _i more files. It must not report the peer as exited,
 * and a later lookup must find the peer.
 */
UNIT_LOOP(lookup_without_descriptors_is_repeated, 0, 4)
{
	pid_t child = child_start(true, NULL);
	char found[DUO_TRANSPORT_NAME_MAX];
	struct duo_publication own;
	enum fi_duo_reason reason;

	unit_publish(dir, "own", 3, &own);
	use_files(_i);
	reason = duo_registry_lookup("peer", 4, &own, found);
	free_files();
	ck_assert_msg(reason == (_i > 1 ? FI_DUO_OK :
					  FI_DUO_RECORD_UNREADABLE),
		      "%d descriptors: reason %d", _i, reason);
	duo_registry_withdraw(&own);
	unit_kill(child);
	ck_assert_uint_eq(unit_sweep(dir), 0);
}

/*
 * A record may contain any region name, even a path. A sweep must remove the
 * region only if its name has ofi_duo's prefix.
 */
static const struct {
	const char *name;
	const char *region;
} region_cases[] = {
	{ "of another program", "/ofi_duo-unit-other" },
	{ "with a path", "ofi_duo.s.0./../x" },
	{ "empty", "" },
};

UNIT_LOOP(sweep_removes_only_ofi_duo_regions, 0, ARRAY_SIZE(region_cases))
{
	const char *other = region_cases[_i].region;
	bool real = other[0] == '/';
	struct duo_publication pub;
	uint8_t record[RECORD_SIZE];
	uint64_t checksum;

	if (real)
		unit_region_make(other);
	unit_publish(dir, "peer", 4, &pub);
	ck_assert_int_eq(pread(pub.fd, record, sizeof(record), 0),
			 sizeof(record));
	memset(record + RECORD_SHM_NAME, 0, DUO_TRANSPORT_NAME_MAX);
	memcpy(record + RECORD_SHM_NAME, other, strlen(other));
	checksum = record_checksum(record);
	memcpy(record + RECORD_CHECKSUM, &checksum, sizeof(checksum));
	ck_assert_int_eq(pwrite(pub.fd, record, sizeof(record), 0),
			 sizeof(record));
	close(pub.fd);	/* also releases the record's lock */

	ck_assert_int_eq(lookup(), FI_DUO_EXITED);
	ck_assert_uint_eq(unit_sweep(dir), 0);
	ck_assert_int_eq(unit_dir_count(), 0);
	if (real) {
		ck_assert_msg(region_exists(other), "%s: removed",
			      region_cases[_i].name);
		shm_unlink(other);
	}
}
