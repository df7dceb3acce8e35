/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "near/link/port.h"

#define NEAR_CPU_SETS 8	/* sets of 1024 CPUs each; Linux supports 8192 CPUs */

struct near_cpus {
	cpu_set_t set[NEAR_CPU_SETS];
};

/* Stores the CPUs of pid's main thread; pid 0: of the calling thread. */
static int near_cpus_of(pid_t pid, struct near_cpus *cpus)
{
	*cpus = (struct near_cpus) {0};
	return sched_getaffinity(pid, sizeof(*cpus), cpus->set) ? -errno : 0;
}

static size_t near_cpus_count(const struct near_cpus *cpus)
{
	return (size_t)CPU_COUNT_S(sizeof(*cpus), cpus->set);
}

/* CPUs, and the number of processes that may run on no other CPUs. */
struct near_oversub_set {
	struct near_cpus cpus;
	size_t processes;
};

/*
 * True if the process may run only on CPUs of the set, or if its CPUs are
 * unknown.
 */
static bool near_oversub_needs(const struct near_oversub_set *set,
			       bool known, const struct near_cpus *theirs)
{
	struct near_cpus both;

	CPU_AND_S(sizeof(both), both.set, set->cpus.set, theirs->set);
	return !known || CPU_EQUAL_S(sizeof(both), both.set, theirs->set);
}

/*
 * Adds to set->processes the number of members of pid[] that may run only on
 * the set's CPUs. pid[] must be sorted. If joined is not NULL, each process
 * that may run on a CPU of joined adds all its CPUs to joined.
 */
static void near_oversub_count(struct near_oversub_set *set,
			       const pid_t *pid, size_t count,
			       struct near_cpus *joined)
{
	struct near_cpus theirs, both;
	pid_t self = getpid();
	size_t i;
	int ret;

	for (i = 0; i < count; i++) {
		if (pid[i] == self || (i && pid[i] && pid[i] == pid[i - 1]))
			continue;
		ret = pid[i] ? near_cpus_of(pid[i], &theirs) : -EPERM;
		if (ret == -ESRCH)
			continue;
		set->processes += near_oversub_needs(set, !ret, &theirs);
		if (ret || !joined)
			continue;
		CPU_AND_S(sizeof(both), both.set, joined->set, theirs.set);
		if (near_cpus_count(&both))
			CPU_OR_S(sizeof(*joined), joined->set, joined->set,
				 theirs.set);
	}
}

static bool near_oversub_is(const struct near_oversub_set *set)
{
	return set->processes > near_cpus_count(&set->cpus);
}

static int near_pid_order(const void *a, const void *b)
{
	const pid_t *first = a, *second = b;

	return *first < *second ? -1 : *first > *second;
}

bool near_oversub(pid_t *pid, size_t count, size_t others)
{
	struct near_oversub_set ours = { .processes = 1 + others }, all = ours;

	if (near_cpus_of(0, &ours.cpus))
		/* CPUs unknown: a yield is safe, though slow */
		return true;
	if (count + others < near_cpus_count(&ours.cpus))
		return false;
	/* qsort() does not accept a NULL pid */
	if (count)
		qsort(pid, count, sizeof(*pid), near_pid_order);
	all.cpus = ours.cpus;
	near_oversub_count(&ours, pid, count, &all.cpus);
	if (near_oversub_is(&ours) ||
	    count + others < near_cpus_count(&all.cpus))
		return near_oversub_is(&ours);
	near_oversub_count(&all, pid, count, NULL);
	return near_oversub_is(&all);
}

bool near_oversubscribed(const struct near_port *port, size_t endpoints)
{
	const struct near_peer *peer;
	const struct near_link *link;
	pid_t pid[NEAR_SENDERS];
	size_t count = 0, known = 1;

	for (link = port->peers.next;
	     link != &port->peers && count < NEAR_SENDERS; link = link->next) {
		peer = near_container(link, struct near_peer, link);
		if (peer->draining || peer->state == NEAR_PEER_GONE)
			continue;
		known += !!memcmp(&peer->addr, &port->addr,
				  sizeof(peer->addr));
		pid[count++] = peer->far ? 0 : peer->addr.pid;
	}
	return near_oversub(pid, count, near_oversub_others(endpoints, known));
}
