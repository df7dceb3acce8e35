/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Finds or creates the user's directory in the base directory:
 * docs/registry.md. Until the directory is finished, it has the sticky bit, and
 * its maker, the process that has created it, holds its lock.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/proc.h"
#include "local/registry.h"
#include "local/registry_record.h"

/* maximum number of attempts to find or create the directory despite races */
#define DUO_DIR_ROUNDS 1000
#define DUO_DIR_DIGITS 16 /* digits of each of the two numbers in a name */
#define DUO_DIR_PREFIX (sizeof("ofi_duo.") - 1 + DUO_DIR_DIGITS + 1)
#define DUO_DIR_NAME (DUO_DIR_PREFIX + DUO_DIR_DIGITS + 1)

/*
 * The base directory, which has the directories of all users. prefix: the start
 * of the names of this host's directories
 */
struct duo_base {
	int fd;
	char prefix[DUO_DIR_PREFIX + 1];
};

/* lowest name of a finished and of an unfinished directory; "": none */
struct duo_dirs {
	char ready[DUO_DIR_NAME];
	char making[DUO_DIR_NAME];
};

/* Opens the base directory. The prefix contains an id of the host's boot. */
static int duo_base_open(struct duo_base *base, const char *path)
{
	uint64_t host;

	if (duo_proc_host(&host))
		return -FI_EOPNOTSUPP;
	snprintf(base->prefix, sizeof(base->prefix), "ofi_duo.%016" PRIx64 ".",
		 host);
	base->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return base->fd < 0 ? -errno : 0;
}

static bool duo_dir_named(const struct duo_base *base, const char *name)
{
	return !strncmp(name, base->prefix, DUO_DIR_PREFIX) &&
	       duo_registry_is_record(name + DUO_DIR_PREFIX);
}

/* True if the directory is this user's, and others cannot lock or change it. */
static bool duo_dir_private(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == geteuid() &&
	       !(st->st_mode & (S_IRWXG | S_IRWXO));
}

static void duo_dirs_note(char *least, const char *name)
{
	if (!least[0] || strcmp(name, least) < 0)
		memcpy(least, name, DUO_DIR_NAME);
}

/* Finds the user's directories, except `but`. Returns 0 or -errno. */
static int duo_dirs_scan(const struct duo_base *base, const char *but,
			 struct duo_dirs *dirs)
{
	DIR *stream = duo_dir_list(base->fd);
	struct dirent *entry;
	struct stat st;
	int err;

	memset(dirs, 0, sizeof(*dirs));
	if (!stream)
		return -errno;
	while (errno = 0, (entry = readdir(stream))) {
		if (!duo_dir_named(base, entry->d_name) ||
		    !strcmp(entry->d_name, but) ||
		    fstatat(base->fd, entry->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) || !duo_dir_private(&st))
			continue;
		duo_dirs_note(st.st_mode & S_ISVTX ? dirs->making : dirs->ready,
			      entry->d_name);
	}
	err = errno;
	closedir(stream);
	return -err;
}

static int duo_dir_open(const struct duo_base *base, const char *name)
{
	int fd = openat(base->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * Opens a directory that duo_dirs_scan() has found. Returns a file descriptor
 * or -errno; -ENOENT: the directory was removed, or is not private.
 */
static int duo_dir_enter(const struct duo_base *base, const char *name)
{
	int fd = duo_dir_open(base, name);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && duo_dir_private(&st)))
		return fd;
	close(fd);
	return -ENOENT;
}

/*
 * Waits until the maker has finished or removed the directory. If the maker has
 * failed, removes the directory. Returns 0, -FI_ETIMEDOUT or -errno.
 */
static int duo_dir_await(const struct duo_base *base, const char *name)
{
	int ret, fd = duo_dir_open(base, name);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	ret = duo_dir_lock(fd, LOCK_EX);
	if (!ret && !fstat(fd, &st) && st.st_nlink && st.st_mode & S_ISVTX)
		unlinkat(base->fd, name, AT_REMOVEDIR);
	duo_registry_unlock(fd);
	return ret;
}

/*
 * Finishes the directory `name`, which this process has created, opened as fd
 * and locked. If the user already has a finished directory, or an unfinished
 * one with a lower name, removes `name` instead. While the user has an
 * unfinished directory with a higher name, waits for the maker of that
 * directory. This causes no deadlock, because that maker does not wait for
 * `name`. Returns 0 if `name` was finished or removed, -FI_EPERM if the file
 * system has no owners or modes, or another error.
 */
static int duo_dir_contend(const struct duo_base *base, const char *name,
			   int fd)
{
	struct duo_dirs dirs;
	struct stat st;
	int ret;

	do {
		if (fstat(fd, &st) || !duo_dir_private(&st)) {
			ret = -FI_EPERM;
			break;
		}
		ret = duo_dirs_scan(base, name, &dirs);
		if (ret || dirs.ready[0] ||
		    (dirs.making[0] && strcmp(dirs.making, name) < 0))
			break;
		if (!dirs.making[0])
			return fchmod(fd, S_IRWXU) ? -errno : 0;
		ret = duo_dir_await(base, dirs.making);
	} while (!ret);
	unlinkat(base->fd, name, AT_REMOVEDIR);
	return ret;
}

/*
 * Tries to create the user's directory. Returns 0 or an error. After 0, the
 * caller must scan again, because either this or another process may have
 * finished a directory.
 */
static int duo_dir_make(const struct duo_base *base)
{
	char name[DUO_DIR_NAME];
	uint64_t random;
	int fd, ret = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(name, sizeof(name), "%s%016" PRIx64, base->prefix, random);
	if (mkdirat(base->fd, name, S_IRWXU | S_ISVTX))
		return errno == EEXIST ? 0 : -errno;
	fd = duo_dir_open(base, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	/*
	 * a process in duo_dir_await() may have locked or removed the directory
	 */
	if (!flock(fd, LOCK_EX | LOCK_NB) && !duo_dir_removed(fd))
		ret = duo_dir_contend(base, name, fd);
	duo_registry_unlock(fd);
	return ret;
}

static int duo_dir_find(const struct duo_base *base, char *name)
{
	struct duo_dirs dirs;
	int fd, ret, round = 0;

	do {
		ret = duo_dirs_scan(base, "", &dirs);
		if (!ret && dirs.ready[0]) {
			memcpy(name, dirs.ready, DUO_DIR_NAME);
			fd = duo_dir_enter(base, name);
			if (fd != -ENOENT)
				return fd;
		} else if (!ret && dirs.making[0]) {
			ret = duo_dir_await(base, dirs.making);
		} else if (!ret) {
			ret = duo_dir_make(base);
		}
		if (!ret && ++round == DUO_DIR_ROUNDS)
			ret = -FI_ETIMEDOUT;
	} while (!ret);
	return ret;
}

int duo_registry_open(const char *path, char *dir)
{
	char name[DUO_DIR_NAME];
	struct duo_base base;
	int fd, ret;

	if (strlen(path) + 1 + DUO_DIR_NAME > DUO_PATH_MAX)
		return -FI_ETOOSMALL;
	if (!duo_proc_user_known())
		return -FI_EPERM;
	ret = duo_base_open(&base, path);
	if (ret)
		return ret;
	fd = duo_dir_find(&base, name);
	close(base.fd);
	if (fd >= 0 && dir)
		snprintf(dir, DUO_PATH_MAX, "%s/%s", path, name);
	return fd;
}
