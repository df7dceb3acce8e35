/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "shm/room.h"
#include "shm/shm.h"

/* Under a limit of address space: shm maps regions when it needs them. */
static bool duo_room_maps(void)
{
	const size_t size = (size_t) DUO_SHM_ENDPOINTS * DUO_SHM_REGION;
	struct rlimit limit;
	void *map;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	map = mmap(NULL, size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return map != MAP_FAILED && !munmap(map, size);
}

int duo_room_check(void)
{
	struct statvfs st;
	struct rlimit limit;

	if (!duo_room_maps())
		return -FI_ENOMEM;
	/* A file that becomes longer ends its process by SIGXFSZ. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) &&
	    limit.rlim_cur < DUO_SHM_REGION)
		return -EFBIG;
	if (statvfs(DUO_DEV_SHM, &st))
		return -errno;
	/* f_blocks is 0 where there is no limit */
	return st.f_blocks && (uint64_t) st.f_bavail * st.f_bsize <
	       DUO_SHM_REGION ? -FI_ENOSPC : 0;
}

/* Gives a region its pages, those that are there already stay. */
static int duo_room_allocate(const char *name)
{
	struct stat st;
	int ret, fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : -posix_fallocate(fd, 0, st.st_size);
	close(fd);
	return ret;
}

/*
 * While shm fills in its region, which nobody but us can know of yet: a page
 * that /dev/shm has no room for is replaced by one that is private, so that
 * shm gets to its end and the endpoint can be closed.
 */
static struct duo_room_guard {
	pthread_mutex_t one;		/* signal actions are the process's */
	pthread_t thread;
	uintptr_t page;			/* bytes */
	atomic_bool lacked;
	struct sigaction saved;		/* the application's */
	sigset_t mask;
} guard = { .one = PTHREAD_MUTEX_INITIALIZER };

static void duo_room_sigbus(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t) info->si_addr & ~(guard.page - 1);
	int saved = errno;

	if (info->si_code == BUS_ADRERR &&
	    pthread_equal(pthread_self(), guard.thread) &&
	    mmap((void *) at, guard.page, PROT_READ | PROT_WRITE,
		 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		atomic_store(&guard.lacked, true);
	else	/* the access is made again, and the application asked */
		sigaction(SIGBUS, &guard.saved, NULL);
	errno = saved;
}

static void duo_room_guard_begin(void)
{
	struct sigaction action = {
		.sa_sigaction = duo_room_sigbus,
		.sa_flags = SA_SIGINFO,
	};
	sigset_t set;

	pthread_mutex_lock(&guard.one);
	guard.thread = pthread_self();
	guard.page = sysconf(_SC_PAGESIZE);
	atomic_store(&guard.lacked, false);
	sigaction(SIGBUS, &action, &guard.saved);
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);	/* blocked, it would be fatal */
	pthread_sigmask(SIG_UNBLOCK, &set, &guard.mask);
}

/* Returns false if a page was lacking. */
static bool duo_room_guard_end(void)
{
	bool lacked = atomic_load(&guard.lacked);

	pthread_sigmask(SIG_SETMASK, &guard.mask, NULL);
	sigaction(SIGBUS, &guard.saved, NULL);
	pthread_mutex_unlock(&guard.one);
	return !lacked;
}

int duo_room_enable(struct fid_ep *shm, const char *name)
{
	bool complete;
	int ret;

	duo_room_guard_begin();
	ret = fi_enable(shm);
	complete = duo_room_guard_end();
	if (ret)
		return ret;
	return complete ? duo_room_allocate(name) : -FI_ENOSPC;
}
