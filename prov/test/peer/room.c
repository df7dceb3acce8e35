/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * room.h: an endpoint whose region has no room is told so, and not by a
 * signal. A file that is shorter than its mapping stands for a full tmpfs:
 * the access beyond its end is the same SIGBUS.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "shm/room.h"
#include "unit.h"

#define PAGES 8
#define LACKING 3	/* the last of them */

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

/* shm gets to its end, and what it wrote is there until it unmaps it. */
UNIT_TEST(too_little)
{
	map(PAGES - LACKING);
	ck_assert_int_eq(duo_room_enable(&shm, name), -FI_ENOSPC);
	ck_assert_int_eq(enabled, 1);
	ck_assert_int_eq(region[PAGES * page - 1], 'x');
}

UNIT_TEST(shm_fails)
{
	map(PAGES - LACKING);
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

static sigjmp_buf back;

static void to_the_application(int number)
{
	siglongjmp(back, 1);
}

/* Before and after, SIGBUS is the application's. */
UNIT_TEST(signal_is_put_back)
{
	struct sigaction action = { .sa_handler = to_the_application }, now;
	sigset_t set, after;

	ck_assert_int_eq(sigaction(SIGBUS, &action, NULL), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	map(PAGES - LACKING);
	ck_assert_int_eq(duo_room_enable(&shm, name), -FI_ENOSPC);
	ck_assert_int_eq(sigaction(SIGBUS, NULL, &now), 0);
	ck_assert_ptr_eq(now.sa_handler, to_the_application);
	ck_assert_int_eq(pthread_sigmask(SIG_UNBLOCK, &set, &after), 0);
	ck_assert_int_eq(sigismember(&after, SIGBUS), 1);
}

static int other_enable(struct fid *fid, int command, void *arg);
static struct fi_ops other_ops = {
	.size = sizeof(other_ops), .control = other_enable,
};
static bool other_told;

static void *touch(void *at)
{
	if (!sigsetjmp(back, 1))
		*(char *) at = 'x';
	else
		other_told = true;
	return NULL;
}

static int other_enable(struct fid *fid, int command, void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, touch,
					region + (PAGES - 1) * page), 0);
	return -pthread_join(thread, NULL);
}

/* Another thread's own SIGBUS meanwhile goes to the application. */
UNIT_TEST(signal_of_another_thread)
{
	struct sigaction action = { .sa_handler = to_the_application };

	ck_assert_int_eq(sigaction(SIGBUS, &action, NULL), 0);
	map(PAGES - LACKING);
	shm.fid.ops = &other_ops;
	ck_assert_int_eq(duo_room_enable(&shm, name), 0);
	ck_assert(other_told);
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
