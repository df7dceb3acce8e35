/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softefa.h"
#include "wire_shm.h"

/*
 * Stores the path of the doorbell of a ring: ".../db-GID-QPN" for the ring
 * ".../q-GID-QPN". se_sweep_entry() must use the same name, because it removes
 * the doorbell together with the ring.
 */
static void se_doorbell_path(char *path, size_t size, const char *ring_path)
{
	const char *name = strrchr(ring_path, '/') + 1;

	snprintf(path, size, "%.*sdb%s", (int)(name - ring_path), ring_path,
		 name + 1);
}

int se_doorbell_open(struct se_doorbell *bell, const char *ring_path,
		     bool wanted)
{
	bell->fd = -1;
	if (!wanted)
		return 0;
	se_doorbell_path(bell->path, sizeof(bell->path), ring_path);
	/* the ring is new: an exited process has left the FIFO, if any */
	unlink(bell->path);
	if (mkfifo(bell->path, 0600))
		return errno;
	/*
	 * Open for writing, too: while no process has a FIFO open for writing,
	 * reads of the FIFO return an end of file
	 */
	bell->fd = open(bell->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (bell->fd < 0) {
		unlink(bell->path);
		return errno;
	}
	return 0;
}

void se_doorbell_unlink(struct se_doorbell *bell)
{
	if (bell->fd >= 0)
		unlink(bell->path);
}

void se_doorbell_close(struct se_doorbell *bell)
{
	if (bell->fd >= 0)
		close(bell->fd);
	bell->fd = -1;
}

void se_doorbell_clear(struct se_doorbell *bell)
{
	char buf[64];

	while (bell->fd >= 0 && read(bell->fd, buf, sizeof(buf)) > 0)
		;
}

void se_doorbell_self(struct se_doorbell *bell)
{
	/* if the FIFO is full, it is readable without a further byte */
	if (bell->fd >= 0 && write(bell->fd, "", 1) < 0)
		return;
}

int se_doorbell_tx_init(struct se_doorbell_tx *bell, const char *ring_path)
{
	char path[SE_SHM_PATH];

	se_doorbell_path(path, sizeof(path), ring_path);
	/*
	 * Open for reading, too: if the peer exits, a write to a FIFO that no
	 * process reads would raise SIGPIPE
	 */
	bell->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return bell->fd >= 0 || errno == ENOENT ? 0 : errno;
}

void se_doorbell_tx_close(struct se_doorbell_tx *bell)
{
	if (bell->fd >= 0)
		close(bell->fd);
	bell->fd = -1;
}

void se_doorbell_ring(struct se_doorbell_tx *bell)
{
	if (write(bell->fd, "", 1) < 0)
		return; /* if the FIFO is full, it is readable anyway */
}

bool se_gid_known(const union ibv_gid *gid)
{
	struct dirent *entry;
	bool found = false;
	char prefix[36];
	DIR *dir;

	prefix[0] = 'q';
	prefix[1] = '-';
	se_gid_hex(gid, prefix + 2);
	dir = opendir(se_cfg.dir);
	while (dir && !found && (entry = readdir(dir)))
		found = !strncmp(entry->d_name, prefix, 34);
	if (dir)
		closedir(dir);
	return found;
}
