/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What an endpoint over shm says of itself in the registry, and what is left
 * of those whose process has died: a region of shared memory, by its name.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/proc.h"
#include "shm/shm.h"

/* What the names of our user's regions begin with. Returns its length. */
static int duo_shm_prefix(char *buf, size_t size)
{
	return snprintf(buf, size, "ofi_duo.s.%u.", (unsigned) geteuid());
}

/*
 * /dev/shm is everybody's, and shm takes what it finds there by a name for
 * its own: nobody must guess the next one.
 */
static int duo_shm_make_name(uint64_t pid_ns, char *name)
{
	char prefix[32];
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	duo_shm_prefix(prefix, sizeof(prefix));
	memset(name, 0, DUO_PEER_NAME_MAX);
	snprintf(name, DUO_PEER_NAME_MAX, "%s%d.%" PRIx64 ".%016" PRIx64,
		 prefix, (int) getpid(), pid_ns & 0xffffffff, random);
	return 0;
}

/*
 * Both have the same mount of /dev/shm, the same structures in it, and the same
 * user namespace: without that, shm may not read the other's memory.
 */
static int duo_shm_realm(uint64_t *realm)
{
	uint64_t same[] = {
		0, fi_version(), duo_proc_inode("/proc/self/ns/user"),
	};
	struct stat st;

	if (stat(DUO_DEV_SHM, &st))
		return -FI_EOPNOTSUPP;
	same[0] = st.st_dev;
	*realm = duo_registry_hash(same, sizeof(same));
	return 0;
}

int duo_shm_publish(struct duo_publication *pub)
{
	uint64_t pid_ns = 0;
	int ret = duo_shm_realm(&pub->realm);

	if (ret)
		return ret;
	pub->peer = DUO_PEER_SHM;
	duo_proc_ns(&pid_ns);
	return duo_shm_make_name(pid_ns, pub->peer_name);
}

/* All but the random number is the same: user, pid and its namespace. */
bool duo_shm_sibling(const char *name, const char *other)
{
	return !strncmp(name, other, strrchr(name, '.') - name + 1);
}

/* Only what can be a region: of this user, by whichever number it has that. */
void duo_shm_bury(const char *name)
{
	static const char prefix[] = "ofi_duo.s.";

	if (!strncmp(name, prefix, sizeof(prefix) - 1) && !strchr(name, '/'))
		shm_unlink(name);
}

/*
 * Removes regions whose record is gone: their names say whose they were. If
 * no region is left, nobody has met any endpoint: the count begins again.
 */
void duo_shm_sweep(int dir, uint64_t pid_ns)
{
	char prefix[32], ns[32];
	int pid, len = duo_shm_prefix(prefix, sizeof(prefix));
	DIR *stream = opendir(DUO_DEV_SHM);
	struct dirent *entry;
	uint64_t realm;
	size_t left = 0;

	if (!stream)
		return;
	snprintf(ns, sizeof(ns), ".%" PRIx64 ".", pid_ns & 0xffffffff);
	while ((entry = readdir(stream))) {
		if (strncmp(entry->d_name, prefix, len))
			continue;
		pid = atoi(entry->d_name + len);
		if (pid > 0 && strstr(entry->d_name + len, ns) &&
		    duo_proc_check(pid, 0) == -ESRCH)
			shm_unlink(entry->d_name);
		else
			left++;
	}
	closedir(stream);
	if (!left && !duo_shm_realm(&realm))
		duo_registry_forget(dir, realm);
}
