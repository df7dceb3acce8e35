/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "local/process.h"

static uint64_t duo_namespace(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

uint64_t duo_user_ns(void)
{
	return duo_namespace("/proc/self/ns/user");
}

void duo_place_read(struct duo_place *place)
{
	place->pid_ns = duo_namespace("/proc/self/ns/pid");
	place->user_ns = duo_user_ns();
	place->net_ns = duo_namespace("/proc/self/ns/net");
}

/* The command's name, field 2, may hold anything: the rest follows its ')'. */
static uint64_t duo_process_parse(const char *text)
{
	const char *rest = strrchr(text, ')');
	uint64_t start;
	char state;

	/* proc_pid_stat(5): state is field 3, the start field 22 */
	if (!rest || sscanf(rest + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s "
			    "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
			    &state, &start) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : start;
}

uint64_t duo_process_start(pid_t pid)
{
	char path[32], text[1024];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return duo_process_parse(text);
}

bool duo_process_lives(pid_t pid, uint64_t start)
{
	if (!start)
		return kill(pid, 0) == 0 || errno == EPERM;
	return duo_process_start(pid) == start;
}
