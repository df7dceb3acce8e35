/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The pages of a region of shm: asked for before, and taken when it is there. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "shm/shm.h"
#include "unit.h"

#define PAGES 8

static char name[64];
static char *region;
static size_t page;
static int enable_ret, enabled;

static int enable(struct fid *fid, int command, void *arg)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		memset(region + i * page, 'x', page);
	enabled++;
	return enable_ret;
}

static struct fi_ops ops = { .size = sizeof(ops), .control = enable };
static struct fid_ep shm = { .fid = { .ops = &ops } };

static void map(size_t there)
{
	int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, there * page), 0);
	region = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	ck_assert_ptr_ne(region, MAP_FAILED);
	close(fd);
}

static void setup(void)
{
	page = sysconf(_SC_PAGESIZE);
	snprintf(name, sizeof(name), "ofi_duo-unit-room.%d", getpid());
	shm_unlink(name);
}

static void teardown(void)
{
	if (region)
		munmap(region, PAGES * page);
	shm_unlink(name);
}

UNIT_CASE("room", setup, teardown);

UNIT_TEST(enough)
{
	map(PAGES);
	ck_assert_int_eq(duo_room_enable(&shm, name), 0);
	ck_assert_int_eq(enabled, 1);
}

UNIT_TEST(shm_fails)
{
	map(PAGES);
	enable_ret = -FI_EIO;
	ck_assert_int_eq(duo_room_enable(&shm, name), -FI_EIO);
}

UNIT_TEST(all_pages_are_there_afterwards)
{
	struct stat st;
	int fd;

	map(PAGES);
	fd = shm_open(name, O_RDWR, 0);
	ck_assert_int_eq(ftruncate(fd, 2 * PAGES * page), 0);
	ck_assert_int_eq(duo_room_enable(&shm, name), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_blocks * 512, 2 * PAGES * page);
	close(fd);
}

/* Refused before shm makes the file longer, which would end the process. */
UNIT_TEST(file_size_is_limited)
{
	struct rlimit limit;

	ck_assert_int_eq(duo_room_check(), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 1 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(duo_room_check(), -EFBIG);
}
