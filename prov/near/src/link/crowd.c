/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "link/port.h"
#include "near_crowd.h"

#define NEAR_CPU_SETS 8		/* Linux has 8192 processors at most */

struct near_cpus {
	cpu_set_t set[NEAR_CPU_SETS];
};

/* Of its first thread; 0: of this thread. */
static int near_cpus_of(pid_t pid, struct near_cpus *cpus)
{
	*cpus = (struct near_cpus) {0};
	return sched_getaffinity(pid, sizeof(*cpus), cpus->set) ? -errno : 0;
}

/*
 * Can it run on our processors only? Of one that is hidden, or in another pid
 * namespace, this is not known: its host is ours, and so may they be.
 */
static bool near_crowd_needs(const struct near_cpus *ours, pid_t pid)
{
	struct near_cpus theirs, both;
	int ret = pid ? near_cpus_of(pid, &theirs) : -EPERM;

	if (ret)
		return ret != -ESRCH;
	CPU_AND_S(sizeof(both), both.set, ours->set, theirs.set);
	return CPU_EQUAL_S(sizeof(both), both.set, theirs.set);
}

static int near_pid_order(const void *a, const void *b)
{
	const pid_t *first = a, *second = b;

	return *first < *second ? -1 : *first > *second;
}

bool near_crowd(pid_t *pid, size_t count)
{
	size_t i, processes = 1, processors;
	struct near_cpus ours;

	if (near_cpus_of(0, &ours))
		return true;	/* it was never wrong, only slow beside others */
	processors = (size_t)CPU_COUNT_S(sizeof(ours), ours.set);
	if (count < processors)
		return false;
	qsort(pid, count, sizeof(*pid), near_pid_order);
	for (i = 0; i < count && processes <= processors; i++) {
		if (pid[i] == getpid() ||
		    (i && pid[i] && pid[i] == pid[i - 1]))
			continue;
		processes += near_crowd_needs(&ours, pid[i]);
	}
	return processes > processors;
}

bool near_crowded(const struct near_port *port)
{
	const struct near_peer *peer;
	const struct near_link *link;
	pid_t pid[NEAR_SENDERS];
	size_t count = 0;

	for (link = port->peers.next;
	     link != &port->peers && count < NEAR_SENDERS; link = link->next) {
		peer = near_container(link, struct near_peer, link);
		if (!peer->dying && peer->state != NEAR_PEER_GONE)
			pid[count++] = peer->far ? 0 : peer->addr.pid;
	}
	return near_crowd(pid, count);
}
