/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Contents of messages, and counts of the resources of dead members. */

#include <dirent.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

uint64_t job_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

size_t job_len(int from, int kind, uint32_t seq)
{
	static const size_t lens[] = { 8, 40, 500, 4000, 9000, 30000, JOB_LEN };

	return lens[(from * 5 + kind * 3 + seq * 2654435761u / 65536) %
		    FT_COUNT(lens)];
}

static unsigned int job_seed(int from, int to, int kind, uint32_t seq)
{
	return from * 131 + to * 17 + kind * 7 + seq * 3;
}

struct job_hdr {
	uint32_t from, seq;
};

int job_from(const uint8_t *buf)
{
	struct job_hdr hdr;

	memcpy(&hdr, buf, sizeof(hdr));
	FT_CHECK(hdr.from < (uint32_t)JOB_MAX, "no header: %u", hdr.from);
	return (int)hdr.from;
}

uint32_t job_seq(const uint8_t *buf)
{
	struct job_hdr hdr;

	memcpy(&hdr, buf, sizeof(hdr));
	return hdr.seq;
}

size_t job_fill(uint8_t *buf, int from, int to, int kind, uint32_t seq)
{
	const struct job_hdr hdr = { from, seq };
	size_t len = job_len(from, kind, seq);

	memcpy(buf, &hdr, sizeof(hdr));
	ft_fill(buf + sizeof(hdr), len - sizeof(hdr),
		job_seed(from, to, kind, seq));
	return len;
}

int job_verify(const uint8_t *buf, size_t len, int to, int kind)
{
	struct job_hdr hdr;

	memcpy(&hdr, buf, sizeof(hdr));
	FT_CHECK(hdr.from < (uint32_t)JOB_MAX, "no header: %u", hdr.from);
	FT_CHECK(len == job_len(hdr.from, kind, hdr.seq),
		 "message %u of member %u: %zu bytes", hdr.seq, hdr.from, len);
	ft_verify(buf + sizeof(hdr), len - sizeof(hdr),
		  job_seed(hdr.from, to, kind, hdr.seq), "a message");
	return (int)hdr.from;
}

/* Returns the number of open file descriptors whose target contains text. */
static int job_files(const char *text)
{
	char path[64], target[PATH_MAX];
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;
	ssize_t len;

	FT_CHECK(dir, "/proc/self/fd");
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%.20s",
			 entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = 0;
		count += strstr(target, text) != NULL;
	}
	closedir(dir);
	return count;
}

/* Returns the number of near's files that are mapped. */
static int job_mapped(void)
{
	unsigned long inode, seen[4 * JOB_MAX];
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX];
	int count = 0, i;

	FT_CHECK(maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/memfd:near") ||
		    sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
			continue;
		for (i = 0; i < count && seen[i] != inode; i++)
			;
		if (i == count && count < (int)FT_COUNT(seen))
			seen[count++] = inode;
	}
	fclose(maps);
	return count;
}

bool job_is_clean(int members, bool late)
{
	int pidfds = job_files("pidfd"), maps = job_mapped();
	bool clean = pidfds <= members && maps >= members &&
		     maps <= 2 * members;

	FT_CHECK(clean || !late, "%d pidfds, memory of %d files of near, %d "
		 "members", pidfds, maps, members);
	return clean;
}
