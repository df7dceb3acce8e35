/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/log.h"
#include "base/proc.h"
#include "local/registry.h"
#include "local/registry_record.h"

#define DUO_SWEEP_INTERVAL_S 1

/*
 * Removes an unreadable record if it is not locked, which shows that its owner
 * has failed.
 */
static void duo_record_sweep_unread(int dir, const char *name)
{
	struct stat st;
	int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC |
			O_NONBLOCK);

	if (fd < 0)
		return;
	if (duo_record_ours(fd, &st) && duo_record_locked(fd) == -ESRCH)
		unlinkat(dir, name, 0);
	close(fd);
}

/*
 * Removes a record if its owner has failed. Returns 1 if the record is readable
 * and its owner may be alive, else 0.
 */
static size_t duo_record_sweep(int dir, const char *name, uint64_t pid_ns,
			       const struct duo_transport *const *peers)
{
	struct duo_record record;
	int ret, fd = duo_record_open(dir, name, &record);

	if (fd == -FI_EPROTO || (fd < 0 && strchr(name, '.')))
		duo_record_sweep_unread(dir, name);
	if (fd < 0)
		return 0;
	ret = duo_record_check(fd, &record, pid_ns);
	if (ret == -ESRCH) {
		if (peers[record.peer]->reap)
			peers[record.peer]->reap(record.peer_name);
		unlinkat(dir, name, 0);
		DUO_INFO(AV, "removed %s of exited process %d, and its "
			 "memory\n", name, record.pid);
	}
	close(fd);
	return ret != -ESRCH;
}

/* True for the name of a record, also of one that is not ready yet. */
static bool duo_sweep_wants(const char *name)
{
	const char *suffix = duo_record_suffix(name);

	return suffix && (!*suffix || !strcmp(suffix, DUO_NEW_SUFFIX));
}

size_t duo_registry_sweep(int dir, const struct duo_transport *const *peers)
{
	DIR *stream = duo_dir_list(dir);
	uint64_t pid_ns;
	struct dirent *entry;
	size_t live = 0;
	int kind;

	if (!stream)
		return 0;
	if (duo_proc_ns(&pid_ns))
		pid_ns = 0;
	while ((entry = readdir(stream))) {
		if (duo_sweep_wants(entry->d_name))
			live += duo_record_sweep(dir, entry->d_name,
						 pid_ns, peers);
	}
	closedir(stream);
	for (kind = 0; kind < DUO_TRANSPORT_KINDS; kind++) {
		if (peers[kind]->sweep)
			peers[kind]->sweep(dir, pid_ns);
	}
	return live;
}

/*
 * True if the last sweep was more than DUO_SWEEP_INTERVAL_S seconds ago. A
 * sweep stores its time as the directory's access time. Reads of the directory
 * may also update this time, and so delay the next sweep.
 */
static bool duo_sweep_due(int dir)
{
	time_t now = time(NULL);
	struct stat st;

	return !fstat(dir, &st) &&
	       (now > st.st_atim.tv_sec + DUO_SWEEP_INTERVAL_S ||
		now < st.st_atim.tv_sec);
}

void duo_registry_tidy(const char *base,
		       const struct duo_transport *const *peers)
{
	const struct timespec now[2] = {
		{ .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT },
	};
	int dir = duo_registry_open(base, NULL);

	if (dir < 0)
		return;
	if (duo_sweep_due(dir) && !flock(dir, LOCK_EX | LOCK_NB)) {
		/* another process may have swept since the first test */
		if (duo_sweep_due(dir)) {
			duo_registry_sweep(dir, peers);
			futimens(dir, now);
		}
		flock(dir, LOCK_UN);
	}
	close(dir);
}
