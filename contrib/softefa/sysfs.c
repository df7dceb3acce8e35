/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The directory of run-time files.  It holds rings and doorbells of queue
 * pairs and one sys-XXXXXX tree per process that looks like /sys as far as the
 * EFA provider looks.  The owner of a file keeps it locked with flock(2); a
 * file whose lock is free is an orphan and whoever finds it removes it.
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

/* Fails with ESTALE when a sweep has removed the file before it was locked. */
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

static int se_remove_entry(const char *path, const struct stat *st, int type,
			   struct FTW *ftw)
{
	remove(path);
	return 0;
}

static void se_remove_tree(const char *path)
{
	nftw(path, se_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Removes what the dead have left; the lock tells the living from them. */
static void se_sweep_entry(const char *name)
{
	bool tree = !strncmp(name, "sys-", 4);
	char path[512], lock[520];
	int fd;

	if (!tree && strncmp(name, "q-", 2))
		return;
	snprintf(path, sizeof(path), "%s/%s", se_cfg.dir, name);
	snprintf(lock, sizeof(lock), "%s%s", path, tree ? "/lock" : "");
	fd = open(lock, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB)) {
		if (tree) {
			se_remove_tree(path);
		} else {
			unlink(path);
			snprintf(path, sizeof(path), "%s/db%s", se_cfg.dir,
				 name + 1);
			unlink(path);
		}
	}
	close(fd);
}

static void se_sweep(void)
{
	DIR *dir = opendir(se_cfg.dir);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		se_sweep_entry(entry->d_name);
	closedir(dir);
}

int se_dir_make(void)
{
	struct stat st;

	if (mkdir(se_cfg.dir, 0700) && errno != EEXIST)
		goto err_report;
	/* Another user's directory would hand our packets to that user. */
	if (lstat(se_cfg.dir, &st))
		goto err_report;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
		errno = EPERM;
		goto err_report;
	}
	se_sweep();
	return 0;

err_report:
	fprintf(stderr, "softefa: %s: %s; set SOFTEFA_DIR to a directory of yours\n",
		se_cfg.dir, strerror(errno));
	return errno;
}

void se_dir_remove(void)
{
	if (se_sys_fd >= 0)
		se_remove_tree(se_sys);
	se_sweep(); /* else what a killed peer has left keeps the directory */
	rmdir(se_cfg.dir); /* fails while another process has files there */
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

/* A tree with a lock, made again when a sweep got in between. */
static int se_sysfs_root(void)
{
	char path[300];
	int i, ret = EIO;

	for (i = 0; i < 100; i++) {
		if (se_dir_make())
			return EIO;
		snprintf(se_sys, sizeof(se_sys), "%s/sys-XXXXXX", se_cfg.dir);
		if (!mkdtemp(se_sys)) {
			ret = errno;
			continue;
		}
		snprintf(path, sizeof(path), "%s/lock", se_sys);
		se_sys_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (se_sys_fd < 0) {
			ret = errno;
			continue;
		}
		ret = se_lock_file(se_sys_fd);
		if (!ret) {
			se_fork_add(se_sys_fd);
			return 0;
		}
		close(se_sys_fd);
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

int se_sysfs_make(struct se_dev *devs, int count)
{
	static const char *const dirs[] = { "devices", "bus", "bus/efa",
		"class", "class/infiniband", "class/infiniband_verbs" };
	char path[300];
	size_t i;
	int ret;

	ret = se_sysfs_root();
	if (ret)
		return ret;
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
	if (!ret)
		setenv("SYSFS_PATH", se_sys, 1);
	return ret;
}
