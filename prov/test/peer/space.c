/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * shm/region.c: before shm creates a region (the shared memory of an endpoint),
 * ofi_duo checks that there is space for it. Afterwards, ofi_duo allocates the
 * pages of the region.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

UNIT_CASE("space", NULL, NULL);

UNIT_TEST(region_pages_are_allocated)
{
	const char *name = "ofi_duo-unit-space";
	struct stat st;
	int fd;

	ck_assert_int_eq(duo_shm_allocate(name), -ENOENT);
	fd = shm_open(name, O_CREAT | O_RDWR, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 100000), 0);
	ck_assert_int_eq(pwrite(fd, "shm's", 5, 50000), 5);
	ck_assert_int_eq(duo_shm_allocate(name), 0);
	ck_assert_int_eq(shm_unlink(name), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_ge(st.st_blocks * 512, 100000);
	close(fd);
}

/*
 * The file size limit is below the size of a region. duo_shm_check_space() must
 * return an error: if shm extended the file, a signal would end the process.
 */
UNIT_TEST(file_size_limit_returns_error)
{
	ck_assert_int_eq(duo_shm_check_space(), 0);
	unit_limit(RLIMIT_FSIZE, 1 << 20);
	ck_assert_int_eq(duo_shm_check_space(), -EFBIG);
}
