/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "link/proc.h"
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
	if (near_proc_ns(&place->pid_ns))
		place->pid_ns = 0;
	place->net_ns = duo_namespace("/proc/self/ns/net");
}

uint64_t duo_process_start(pid_t pid)
{
	uint64_t start;

	return near_proc_start(pid, &start) ? 0 : start;
}

int duo_process_check(pid_t pid, uint64_t start)
{
	if (start)
		return near_proc_check(pid, start);
	return kill(pid, 0) && errno == ESRCH ? -ESRCH : 0;
}
