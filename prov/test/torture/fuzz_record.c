/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Registry records with changed bytes, sizes and checksums. At the end of each
 * round, a lookup must accept the correct record. Each name that a lookup
 * returns must end with a 0 byte.
 */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "fuzz.h"
#include "record.h"
#include "unit.h"

static const char *dir;
static struct duo_publication pub;

static void record_write(const uint8_t *record, size_t size)
{
	int fd = open(pub.path, O_WRONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, record, size), size);
	/* with O_TRUNC, ext4 would write each record to the disk */
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

static void record_input(const uint8_t *good)
{
	uint8_t record[2 * RECORD_SIZE] = { 0 };
	char name[DUO_TRANSPORT_NAME_MAX] = { 0 };
	size_t size = RECORD_SIZE;
	uint64_t checksum;
	int i;

	memcpy(record, good, RECORD_SIZE);
	for (i = 1 + (int)fuzz_below(4); i--;)
		fuzz_change(record, RECORD_CHECKSUM);
	if (!fuzz_once_in(4)) {
		checksum = record_checksum(record);
		memcpy(record + RECORD_CHECKSUM, &checksum, sizeof(checksum));
	}
	if (fuzz_once_in(8))
		size = fuzz_below(sizeof(record));
	record_write(record, size);
	if (unit_lookup(dir, "peer", 4, name) == FI_DUO_OK)
		ck_assert_uint_lt(strnlen(name, sizeof(name)), sizeof(name));
	else
		ck_assert_int_eq(name[0], 0);
	if (fuzz_once_in(4))
		unit_sweep(dir);
	/* a sweep may have removed the record as that of an exited process */
	if (access(pub.path, F_OK)) {
		duo_registry_withdraw(&pub);
		unit_publish(dir, "peer", 4, &pub);
	}
}

static void record_round(void)
{
	uint8_t good[RECORD_SIZE];
	char name[DUO_TRANSPORT_NAME_MAX];
	int fd, i;

	dir = unit_dir_make();
	unit_publish(dir, "peer", 4, &pub);
	fd = open(pub.path, O_RDONLY);
	ck_assert_int_eq(read(fd, good, sizeof(good)), RECORD_SIZE);
	close(fd);
	for (i = 0; i < FUZZ_ROUND; i++)
		record_input(good);
	record_write(good, RECORD_SIZE);
	ck_assert_int_eq(unit_lookup(dir, "peer", 4, name), FI_DUO_OK);
	duo_registry_withdraw(&pub);
	unit_dir_remove();
}

UNIT_LONG_CASE("record", NULL, NULL, 3600 * 12);

UNIT_TEST(changed_records_are_rejected)
{
	fuzz_rounds("records", record_round);
}
