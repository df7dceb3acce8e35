/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The directory of run-time files. It has the rings and doorbells of queue
 * pairs and, for each process, a tree sys-XXXXXX: the part of /sys that the EFA
 * provider reads. The owner of a file locks it with flock(2). A file without a
 * lock is an orphan, which any process removes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softefa.h"

#define SE_MARK ".softefa" /* marks a directory that sweeps may clean */
#define SE_MADE_MODE 0400  /* mode of the mark if softefa made the directory */

static char se_sys[256];
static int se_sys_fd = -1;

void se_gid_hex(const union ibv_gid *gid, char hex[33])
{
	static const char digit[] = "0123456789abcdef";
	int i;

	for (i = 0; i < 16; i++) {
		hex[2 * i] = digit[gid->raw[i] >> 4];
		hex[2 * i + 1] = digit[gid->raw[i] & 15];
	}
	hex[32] = '\0';
}

/*
 * Locks the file. Returns 0, ESTALE if another process's sweep has removed or
 * locked the file, or another errno.
 */
int se_lock_file(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? ESTALE : errno;
	if (fstat(fd, &st))
		return errno;
	return st.st_nlink ? 0 : ESTALE;
}

bool se_file_orphaned(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB))
		return false;
	flock(fd, LOCK_UN);
	return true;
}

/* True for "-GID-QPN", the end of the name of a ring or doorbell. */
static bool se_name_rest(const char *rest)
{
	size_t digits;

	if (rest[0] != '-' || strspn(rest + 1, "0123456789abcdef") != 32 ||
	    rest[33] != '-')
		return false;
	digits = strspn(rest + 34, "0123456789");
	return digits && digits <= 5 && !rest[34 + digits];
}

bool se_ring_name(const char *name)
{
	return name[0] == 'q' && se_name_rest(name + 1);
}

static bool se_doorbell_name(const char *name)
{
	return !strncmp(name, "db", 2) && se_name_rest(name + 2);
}

static bool se_tree_name(const char *name)
{
	return !strncmp(name, "sys-", 4) && strlen(name) == 10 &&
	       strspn(name + 4, "abcdefghijklmnopqrstuvwxyz"
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == 6;
}

/*
 * Callback of nftw(): removes directories, and files with the names that
 * se_sysfs_make() uses. Other files stay, and so do their directories.
 */
static int se_remove_entry(const char *path, const struct stat *st, int type,
			   struct FTW *ftw)
{
	const char *name = path + ftw->base;

	if (type == FTW_DP)
		rmdir(path);
	else if (type == FTW_SL || type == FTW_SLN ?
		 !strcmp(name, "driver") || !strcmp(name, "device") :
		 type == FTW_F && (!strcmp(name, "lock") ||
				   !strcmp(name, "abi_version")))
		unlink(path);
	return 0;
}

static void se_remove_tree(const char *path)
{
	nftw(path, se_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/*
 * Removes the file or tree if its owner has exited. Returns false if the owner
 * still holds the lock; otherwise true, also for a foreign file.
 */
static bool se_sweep_entry(const char *name)
{
	bool tree = se_tree_name(name), dead;
	char path[512], lock[520];
	int fd;

	if (!tree && !se_ring_name(name))
		return true;
	snprintf(path, sizeof(path), "%s/%s", se_cfg.dir, name);
	snprintf(lock, sizeof(lock), "%s%s", path, tree ? "/lock" : "");
	fd = open(lock, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	/*
	 * A tree has no lock if its owner was killed before it created the
	 * lock, or is about to create it. rmdir() removes the tree only if the
	 * tree is empty. If that was the tree of a live owner, the owner cannot
	 * create the lock, and makes another tree: see se_sysfs_root().
	 */
	if (fd < 0 && errno == ENOENT && tree)
		rmdir(path);
	if (fd < 0)
		return true;
	dead = !flock(fd, LOCK_EX | LOCK_NB);
	if (dead && tree) {
		se_remove_tree(path);
	} else if (dead) {
		unlink(path);
		snprintf(path, sizeof(path), "%s/db%s", se_cfg.dir, name + 1);
		unlink(path);
	}
	close(fd);
	return dead;
}

/*
 * Removes orphans. "leaving": this process exits; stops at the first file with
 * a live owner, because that owner sweeps when it exits.
 */
static void se_sweep(bool leaving)
{
	DIR *dir = opendir(se_cfg.dir);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (!se_sweep_entry(entry->d_name) && leaving)
			break;
	}
	closedir(dir);
}

/*
 * Returns 0 if the directory is softefa's: it has SE_MARK, or no foreign files.
 * Otherwise returns ENOTEMPTY, or the errno of a directory that it cannot read.
 */
static int se_dir_check(void)
{
	DIR *dir = opendir(se_cfg.dir);
	struct dirent *entry;
	bool marked = false, foreign = false;
	const char *name;

	if (!dir)
		return errno;
	while ((entry = readdir(dir))) {
		name = entry->d_name;
		marked |= !strcmp(name, SE_MARK);
		foreign |= strcmp(name, ".") && strcmp(name, "..") &&
			   !se_tree_name(name) && !se_ring_name(name) &&
			   !se_doorbell_name(name);
	}
	closedir(dir);
	return marked || !foreign ? 0 : ENOTEMPTY;
}

/*
 * Creates the mark. "made": this process has created the directory. Then the
 * mark is read-only, and this mode permits se_dir_unmake() to remove the
 * directory. The permission is not in the mark's contents, because another
 * process could read the mark after its creation, but before the contents are
 * written.
 */
static int se_dir_mark(bool made)
{
	mode_t mode = made ? SE_MADE_MODE : 0600;
	char path[300];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/" SE_MARK, se_cfg.dir);
	fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return errno;
	/* if another process has created the mark, open() keeps its mode */
	if (made && fchmod(fd, mode))
		ret = errno;
	close(fd);
	return ret;
}

static int se_dir_make(void)
{
	bool made = !mkdir(se_cfg.dir, 0700);
	struct stat st;

	if (!made && errno != EEXIST)
		goto err_report;
	/* reject the directory of another user, who could read the packets */
	if (lstat(se_cfg.dir, &st))
		goto err_retry;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
		errno = EPERM;
		goto err_report;
	}
	errno = se_dir_check();
	if (errno == ENOTEMPTY) {
		fprintf(stderr, "softefa: %s: has foreign files and no "
			SE_MARK "; set SOFTEFA_DIR to a new or empty directory\n",
			se_cfg.dir);
		return ENOTEMPTY;
	}
	if (!errno)
		errno = se_dir_mark(made);
	if (errno)
		goto err_retry;
	se_sweep(false);
	return 0;

err_retry:
	if (errno == ENOENT)
		return EAGAIN; /* another process has removed the directory */
err_report:
	fprintf(stderr, "softefa: %s: %s; set SOFTEFA_DIR to a directory of this user\n",
		se_cfg.dir, strerror(errno));
	return errno;
}

/* True if the directory has no file but the mark. */
static bool se_dir_unused(void)
{
	DIR *dir = opendir(se_cfg.dir);
	struct dirent *entry;
	int others = 0;

	if (!dir)
		return false;
	while ((entry = readdir(dir)))
		others += strcmp(entry->d_name, ".") &&
			  strcmp(entry->d_name, "..") &&
			  strcmp(entry->d_name, SE_MARK);
	closedir(dir);
	return !others;
}

/*
 * If the directory has no file but the mark, removes the mark and, if softefa
 * has created the directory, the directory. A process that starts later creates
 * both again. If a process has made a file since the check, rmdir() fails. Then
 * this function makes the mark again for that process.
 */
static void se_dir_unmake(void)
{
	struct stat st;
	char path[300];

	snprintf(path, sizeof(path), "%s/" SE_MARK, se_cfg.dir);
	while (se_dir_unused() && !stat(path, &st) && !unlink(path)) {
		if ((st.st_mode & 0777) != SE_MADE_MODE ||
		    !rmdir(se_cfg.dir) || errno != ENOTEMPTY ||
		    se_dir_mark(true))
			return;
	}
}

void se_dir_remove(void)
{
	if (se_sys_fd >= 0)
		se_remove_tree(se_sys);
	se_sweep(true); /* the last process removes files of killed ones */
	se_dir_unmake();
}

static int se_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t len = (ssize_t)strlen(text);
	int ret = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, (size_t)len) != len)
		ret = errno ? errno : EIO;
	close(fd);
	return ret;
}

/*
 * Creates this process's tree and locks it. Tries again if another process's
 * sweep has removed the tree before it was locked. Returns 0 or an errno.
 */
static int se_sysfs_root(void)
{
	char path[300];
	int i, ret = EIO;

	for (i = 0; i < 100; i++) {
		ret = se_dir_make();
		if (ret == EAGAIN)
			continue;
		if (ret)
			return ret;
		snprintf(se_sys, sizeof(se_sys), "%s/sys-XXXXXX", se_cfg.dir);
		if (!mkdtemp(se_sys)) {
			ret = errno;
			continue;
		}
		snprintf(path, sizeof(path), "%s/lock", se_sys);
		se_sys_fd = se_fork_open(path, O_RDWR | O_CREAT);
		if (se_sys_fd < 0) {
			ret = errno;
			rmdir(se_sys);
			continue;
		}
		ret = se_lock_file(se_sys_fd);
		if (!ret)
			return 0;
		se_fork_close(se_sys_fd);
		se_sys_fd = -1;
	}
	return ret;
}

static int se_sysfs_dev(struct se_dev *dev)
{
	struct ibv_device *ibv = &dev->ibv;
	char path[400], target[64];
	int len;

	snprintf(path, sizeof(path), "%s/devices/%s", se_sys, dev->pci);
	if (mkdir(path, 0700) && errno != EEXIST)
		return errno;
	snprintf(path, sizeof(path), "%s/devices/%s/driver", se_sys, dev->pci);
	if (symlink("../../bus/efa", path) && errno != EEXIST)
		return errno;
	len = snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path),
		       "%s/class/infiniband/%s", se_sys, ibv->name);
	if (len >= (int)sizeof(ibv->ibdev_path))
		return ENAMETOOLONG;
	len = snprintf(ibv->dev_path, sizeof(ibv->dev_path),
		       "%s/class/infiniband_verbs/%s", se_sys, ibv->dev_name);
	if (len >= (int)sizeof(ibv->dev_path))
		return ENAMETOOLONG;
	if (mkdir(ibv->ibdev_path, 0700) && errno != EEXIST)
		return errno;
	snprintf(target, sizeof(target), "../../../devices/%s", dev->pci);
	snprintf(path, sizeof(path), "%s/device", ibv->ibdev_path);
	return symlink(target, path) && errno != EEXIST ? errno : 0;
}

/* Fills the tree of se_sysfs_root(). Returns 0 or an errno. */
static int se_sysfs_fill(struct se_dev *devs, int count)
{
	static const char *const dirs[] = { "devices", "bus", "bus/efa",
		"class", "class/infiniband", "class/infiniband_verbs" };
	char path[300];
	size_t i;
	int ret;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", se_sys, dirs[i]);
		if (mkdir(path, 0700))
			return errno;
	}
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/abi_version",
		 se_sys);
	ret = se_write_file(path, "6\n");
	for (i = 0; !ret && i < (size_t)count; i++)
		ret = se_sysfs_dev(&devs[i]);
	return ret;
}

int se_sysfs_make(struct se_dev *devs, int count)
{
	int ret = se_sysfs_root();

	if (ret)
		return ret;
	ret = se_sysfs_fill(devs, count);
	if (ret)
		se_dir_remove();
	else
		setenv("SYSFS_PATH", se_sys, 1);
	return ret;
}
