/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "near/link/port.h"

#define NEAR_CPU_SETS 8	/* sets of 1024 CPUs each; Linux supports 8192 CPUs */

struct near_cpus {
	cpu_set_t set[NEAR_CPU_SETS];
};

/*
 * Stores the CPUs on which the main thread of process pid may run. If pid is 0,
 * stores those of the calling thread. Returns 0 or -errno.
 */
static int near_cpus_of(pid_t pid, struct near_cpus *cpus)
{
	*cpus = (struct near_cpus) {0};
	return sched_getaffinity(pid, sizeof(*cpus), cpus->set) ? -errno : 0;
}

/*
 * True if process pid may run only on the CPUs in `cpus`, or if its CPUs are
 * unknown. False if the process does not exist. pid 0: an unknown process.
 */
static bool near_oversub_needs(const struct near_cpus *cpus, pid_t pid)
{
	struct near_cpus theirs, both;
	int ret = pid ? near_cpus_of(pid, &theirs) : -EPERM;

	if (ret)
		return ret != -ESRCH;
	CPU_AND_S(sizeof(both), both.set, cpus->set, theirs.set);
	return CPU_EQUAL_S(sizeof(both), both.set, theirs.set);
}

static int near_pid_order(const void *a, const void *b)
{
	const pid_t *first = a, *second = b;

	return *first < *second ? -1 : *first > *second;
}

bool near_oversub(pid_t *pid, size_t count, size_t others)
{
	size_t processes = 1 + others, i, cpus;
	struct near_cpus ours;
	pid_t self = getpid();

	if (near_cpus_of(0, &ours))
		return true;	/* unknown: a needless yield is only slow */
	cpus = (size_t)CPU_COUNT_S(sizeof(ours), ours.set);
	if (count + others < cpus)
		return false;
	/* pid may be NULL, which qsort() does not accept */
	if (count)
		qsort(pid, count, sizeof(*pid), near_pid_order);
	/*
	 * All peers of one process count as one process. Each entry with pid 0
	 * counts as a process of its own.
	 */
	for (i = 0; i < count; i++)
		if (pid[i] != self && !(i && pid[i] && pid[i] == pid[i - 1]))
			processes += near_oversub_needs(&ours, pid[i]);
	return processes > cpus;
}

bool near_oversubscribed(const struct near_port *port, size_t endpoints)
{
	const struct near_peer *peer;
	pid_t pid[NEAR_SENDERS];
	size_t count = 0, known = 1;

	near_list_each(peer, &port->peers, link) {
		if (count == NEAR_SENDERS)
			break;
		if (near_peer_failed(peer))
			continue;
		known += !peer->own;
		pid[count++] = peer->far ? 0 : peer->addr.pid;
	}
	return near_oversub(pid, count,
			    endpoints > known ? endpoints - known : 0);
}
