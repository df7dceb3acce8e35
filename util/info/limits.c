/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks the limits of a process (getrlimit(2)) that affect ofi_duo. */

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "info.h"
#include "near/link/shm.h"

/* Number of files that MPI and the core open in a rank */
#define INFO_FILES 64
/* Smallest memory of an endpoint over libfabric's shm, bytes */
#define INFO_SHM_EP (16ULL << 20)

void info_check_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit)) {
		info_found("memlock", INFO_WARNING, "RLIMIT_MEMLOCK: %s",
			   strerror(errno));
		info_remedy("check ulimit -l in the job");
	} else if (limit.rlim_cur == RLIM_INFINITY) {
		info_found("memlock", INFO_OK, "locked memory is not limited");
	} else if (!info_cores_pin()) {
		info_found("memlock", INFO_OK, "locked memory is limited to "
			   "%llu KiB; no core here needs it",
			   (unsigned long long) limit.rlim_cur / 1024);
	} else {
		info_found("memlock", INFO_WARNING, "locked memory is limited "
			   "to %llu KiB; the device's memory registrations "
			   "may fail", (unsigned long long) limit.rlim_cur /
			   1024);
		info_remedy("ulimit -l unlimited: \"* - memlock unlimited\" "
			    "in /etc/security/limits.d, LimitMEMLOCK=infinity "
			    "for slurmd, docker --ulimit memlock=-1");
	}
}

/* Returns the soft limit; RLIM_INFINITY: unlimited or unknown. */
static rlim_t info_limit(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) ? RLIM_INFINITY : limit.rlim_cur;
}

/* Checks the limit of open files. near opens one for each local peer. */
void info_check_files(int ranks)
{
	unsigned long need = (unsigned long)ranks + INFO_FILES;
	rlim_t limit = info_limit(RLIMIT_NOFILE);

	if (limit == RLIM_INFINITY || limit >= need) {
		info_found("files", INFO_OK, "a process may open %llu files, "
			   "one of %d ranks needs some %lu",
			   (unsigned long long)limit, ranks, need);
		return;
	}
	info_found("files", INFO_WARNING, "a process may open %llu files, one "
		   "of %d ranks needs some %lu; without that messages wait, or "
		   "endpoints cannot be opened", (unsigned long long)limit,
		   ranks, need);
	info_remedy("ulimit -n %lu: \"* - nofile %lu\" in "
		    "/etc/security/limits.d, LimitNOFILE=%lu for slurmd, "
		    "docker --ulimit nofile=%lu", need, need, need, need);
}

/* Checks the limit of file sizes: an endpoint's shared memory is a file. */
void info_check_file_size(void)
{
	rlim_t limit = info_limit(RLIMIT_FSIZE);
	size_t pages = info_near_memory() / near_page_size();
	unsigned long long need =
		info_local_is_shm()
			? INFO_SHM_EP
			: near_segment_size(pages < NEAR_SENDERS
						    ? (uint32_t)pages
						    : NEAR_SENDERS);

	if (limit == RLIM_INFINITY || limit >= need)
		return;
	info_found("file_size", INFO_WARNING, "a file may have %llu KiB, an "
		   "endpoint's shared memory has %llu; the core carries all "
		   "messages", (unsigned long long)limit / 1024, need / 1024);
	info_remedy("ulimit -f unlimited: \"* - fsize unlimited\" in "
		    "/etc/security/limits.d, LimitFSIZE=infinity for slurmd");
}
