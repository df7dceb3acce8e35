/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Malformed files in the registry. A lookup finds no peer in them and reads no
 * byte beyond a buffer. A sweep neither counts nor removes them.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "record.h"
#include "unit.h"

static const char *dir;
static struct duo_publication pub;
static uint8_t record[2 * RECORD_SIZE];
static char name[DUO_TRANSPORT_NAME_MAX];

/* Publishes a record of this process; tests overwrite its file. */
static void setup(void)
{
	int fd;

	dir = unit_dir_make();
	unit_publish(dir, "peer", 4, &pub);
	fd = open(pub.path, O_RDONLY);
	ck_assert_int_eq(read(fd, record, sizeof(record)), RECORD_SIZE);
	close(fd);
}

static void teardown(void)
{
	duo_registry_withdraw(&pub);
	unit_dir_remove();
}

static enum fi_duo_reason lookup(void)
{
	memset(name, 0, sizeof(name));
	return unit_lookup(dir, "peer", 4, name);
}

/* Overwrites the file in place, which keeps the owner's lock. */
static void rewrite(size_t size)
{
	int fd = open(pub.path, O_WRONLY | O_TRUNC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, record, size), size);
	close(fd);
}

static void put(size_t offset, uint64_t value, size_t size)
{
	/* little endian: the low bytes */
	memcpy(record + offset, &value, size);
}

/* Overwrites the file with the changed record and its checksum. */
static void rewrite_signed(void)
{
	put(RECORD_CHECKSUM, record_checksum(record), 8);
	rewrite(RECORD_SIZE);
}

UNIT_CASE("content", setup, teardown);

UNIT_TEST(record_format_is_as_in_record_h)
{
	uint64_t checksum;

	memcpy(&checksum, record + RECORD_CHECKSUM, sizeof(checksum));
	ck_assert_uint_eq(checksum, record_checksum(record));
	ck_assert_mem_eq(record + RECORD_ADDR, "peer", 4);
	ck_assert_str_eq((char *) record + RECORD_SHM_NAME, pub.peer_name);
	rewrite(RECORD_SIZE);
	ck_assert_int_eq(lookup(), FI_DUO_OK);
}

static const struct {
	const char *name;
	size_t size;
	enum fi_duo_reason reason;
} size_cases[] = {
	{ "empty: being written", 0, FI_DUO_NOT_REGISTERED },
	{ "one byte", 1, FI_DUO_BAD_RECORD },
	{ "one byte short", RECORD_SIZE - 1, FI_DUO_BAD_RECORD },
	{ "one byte long", RECORD_SIZE + 1, FI_DUO_BAD_RECORD },
	{ "twice as long", 2 * RECORD_SIZE, FI_DUO_BAD_RECORD },
};

UNIT_ROUNDS(wrong_size_is_rejected, 0, ARRAY_SIZE(size_cases))
{
	rewrite(size_cases[_i].size);
	ck_assert_msg(lookup() == size_cases[_i].reason, "%s",
		      size_cases[_i].name);
	ck_assert_msg(name[0] == '\0', "%s: a name was stored",
		      size_cases[_i].name);
	ck_assert_msg(unit_sweep(dir) == 0, "%s: counted as live",
		      size_cases[_i].name);
}

static const struct {
	const char *name;
	size_t offset, size;
	uint64_t value;
	enum fi_duo_reason reason;
} field_cases[] = {
	{"magic", RECORD_MAGIC, 8, 0, FI_DUO_BAD_RECORD},
	{"older version", RECORD_VERSION, 4, 5, FI_DUO_NAMESPACE},
	{"newer version", RECORD_VERSION, 4, 7, FI_DUO_NAMESPACE},
	{"own size 0", RECORD_OWN_SIZE, 4, 0, FI_DUO_BAD_RECORD},
	{"own size large", RECORD_OWN_SIZE, 4, ~0u, FI_DUO_BAD_RECORD},
	{"pid 0", RECORD_PID, 4, 0, FI_DUO_BAD_RECORD},
	{"pid -1", RECORD_PID, 4, ~0u, FI_DUO_BAD_RECORD},
	{"later process, same pid", RECORD_START, 8, 1, FI_DUO_EXITED},
	{"start not known", RECORD_START, 8, 0, FI_DUO_OK},
	{"addr_len 0", RECORD_ADDR_LEN, 8, 0, FI_DUO_NOT_REGISTERED},
	{"addr_len 3", RECORD_ADDR_LEN, 8, 3, FI_DUO_NOT_REGISTERED},
	{"addr_len 256", RECORD_ADDR_LEN, 8, 256, FI_DUO_NOT_REGISTERED},
	{"addr_len 257", RECORD_ADDR_LEN, 8, 257, FI_DUO_BAD_RECORD},
	{"addr_len 2^32 - 1", RECORD_ADDR_LEN, 8, ~0u, FI_DUO_BAD_RECORD},
	{"other address, same hash", RECORD_ADDR, 1, 'P',
	 FI_DUO_NOT_REGISTERED},
	{"addr_len 2^64 - 1", RECORD_ADDR_LEN, 8, ~0ull, FI_DUO_BAD_RECORD},
	{"near", RECORD_PEER, 4, DUO_TRANSPORT_NEAR, FI_DUO_TRANSPORT_MISMATCH},
	{"no such peer", RECORD_PEER, 4, DUO_TRANSPORT_KINDS,
	 FI_DUO_BAD_RECORD},
	{"other pid namespace", RECORD_PID_NS, 8, 1, FI_DUO_NAMESPACE},
	{"other net namespace", RECORD_NET_NS, 8, 1, FI_DUO_NAMESPACE},
	{"other mount or libfabric", RECORD_COMPAT_ID, 8, 1, FI_DUO_NAMESPACE},
};

UNIT_ROUNDS(wrong_field_is_rejected, 0, ARRAY_SIZE(field_cases))
{
	put(field_cases[_i].offset, field_cases[_i].value,
	    field_cases[_i].size);
	rewrite_signed();
	ck_assert_msg(lookup() == field_cases[_i].reason, "%s",
		      field_cases[_i].name);
	ck_assert_msg((name[0] != '\0') ==
		      (field_cases[_i].reason == FI_DUO_OK),
		      "%s: name", field_cases[_i].name);
}

UNIT_TEST(unterminated_name_is_rejected)
{
	memset(record + RECORD_SHM_NAME, 'n', DUO_TRANSPORT_NAME_MAX);
	rewrite_signed();
	ck_assert_int_eq(lookup(), FI_DUO_BAD_RECORD);
}

/* A record of another version, which may have any size, is kept. */
UNIT_TEST(other_version_is_kept)
{
	put(RECORD_VERSION, 7, 4);
	rewrite(RECORD_SIZE + 8);
	ck_assert_int_eq(lookup(), FI_DUO_NAMESPACE);
	rewrite(RECORD_OWN_SIZE);
	ck_assert_int_eq(lookup(), FI_DUO_NAMESPACE);
	/*
	 * The sweep keeps the record, because its lock shows that its owner
	 * runs
	 */
	ck_assert_uint_eq(unit_sweep(dir), 0);
	ck_assert_int_eq(unit_dir_count(), 1);
}

UNIT_TEST(damaged_byte_is_rejected)
{
	enum fi_duo_reason reason;
	size_t i;

	for (i = 0; i < RECORD_SIZE; i++) {
		record[i] ^= 0x20;
		rewrite(RECORD_SIZE);
		reason = i >= RECORD_VERSION && i < RECORD_OWN_SIZE ?
			 FI_DUO_NAMESPACE : FI_DUO_BAD_RECORD;
		ck_assert_msg(lookup() == reason, "byte %zu", i);
		record[i] ^= 0x20;
	}
	rewrite(RECORD_SIZE);
	ck_assert_int_eq(lookup(), FI_DUO_OK);
}

enum kind {
	SYMLINK, DANGLING, DIRECTORY, FIFO,
};

static const struct {
	const char *name;
	enum kind kind;
} kind_cases[] = {
	{ "symbolic link to a good record", SYMLINK },
	{ "dangling symbolic link", DANGLING },
	{ "directory", DIRECTORY },
	{ "fifo", FIFO },
};

static void make_file(enum kind kind, const char *path, const char *good)
{
	switch (kind) {
	case SYMLINK:
		ck_assert_int_eq(symlink(good, path), 0);
		break;
	case DANGLING:
		ck_assert_int_eq(symlink("/nonexistent", path), 0);
		break;
	case DIRECTORY:
		ck_assert_int_eq(mkdir(path, 0700), 0);
		break;
	default:
		ck_assert_int_eq(mkfifo(path, 0600), 0);
	}
}

UNIT_CASE("file", setup, teardown);

UNIT_ROUNDS(non_file_is_rejected, 0, ARRAY_SIZE(kind_cases))
{
	const char *what = kind_cases[_i].name;
	char good[DUO_PATH_MAX + 8];
	struct stat st;

	snprintf(good, sizeof(good), "%s/good", dir);
	ck_assert_int_eq(rename(pub.path, good), 0);
	make_file(kind_cases[_i].kind, pub.path, good);
	ck_assert_msg(lookup() == FI_DUO_BAD_RECORD, "%s", what);
	ck_assert_msg(unit_sweep(dir) == 0, "%s: counted", what);
	ck_assert_msg(!lstat(pub.path, &st), "%s: removed", what);
}

/* A record of another user is rejected. Only root can make that file. */
UNIT_TEST(foreign_file_is_rejected)
{
	struct stat st;

	if (geteuid())
		return;
	ck_assert_int_eq(chown(pub.path, 12345, 12345), 0);
	ck_assert_int_eq(lookup(), FI_DUO_BAD_RECORD);
	ck_assert_uint_eq(unit_sweep(dir), 0);
	ck_assert_int_eq(stat(pub.path, &st), 0);
}

/*
 * A malformed file has the name of the endpoint's record. The publication
 * fails, and the file stays.
 */
UNIT_TEST(malformed_file_blocks_publication)
{
	struct duo_publication second;

	rewrite(1);
	ck_assert_int_eq(unit_reserve(dir, "peer", 4, &second),
			 -FI_EADDRINUSE);
	ck_assert_int_eq(second.fd, -1);
	ck_assert_uint_eq(unit_sweep(dir), 0);
	ck_assert_int_eq(unit_dir_count(), 1);
}

UNIT_TEST(sweep_keeps_other_names)
{
	static const char *const other[] = {
		"0123456789abcdef.old", "0123456789abcde", "sem.x",
	};
	char path[2 * DUO_PATH_MAX];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(other); i++) {
		snprintf(path, sizeof(path), "%.*s/%s",
			 (int) (strrchr(pub.path, '/') - pub.path), pub.path,
			 other[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	ck_assert_uint_eq(unit_sweep(dir), 1);
	ck_assert_int_eq(unit_dir_count(), 4);
}

/*
 * The local transport accepts records of any pid namespace. For these, the lock
 * shows whether the owner runs; the pid does not matter.
 */
UNIT_TEST(any_pid_ns_transport_tests_lock)
{
	put(RECORD_PID_NS, 1, 8);
	put(RECORD_PID, 0x7ffffff0, 4);
	rewrite_signed();
	unit_any_pid_ns = true;
	ck_assert_int_eq(lookup(), FI_DUO_OK);
	close(pub.fd);
	ck_assert_int_eq(lookup(), FI_DUO_EXITED);
	pub.fd = open(pub.path, O_RDWR | O_CLOEXEC);
	unit_any_pid_ns = false;
	ck_assert_int_eq(lookup(), FI_DUO_NAMESPACE);
}

/*
 * The record's pid belongs to another pid namespace and has no meaning here.
 * But the owner holds the record's lock. So a sweep must keep the record.
 */
UNIT_TEST(sweep_keeps_other_pid_namespaces)
{
	put(RECORD_PID_NS, 1, 8);
	put(RECORD_PID, 0x7ffffff0, 4);
	rewrite_signed();
	ck_assert_uint_eq(unit_sweep(dir), 1);
	ck_assert_int_eq(unit_dir_count(), 1);
}
