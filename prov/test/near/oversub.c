/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* near_oversub(): when a waiting thread should yield its CPU */

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "unit.h"

#define PIDS 8
#define FIRST 1000		/* pid of the first fake process */

/*
 * CPUs on which this process may run, and those of each other process; 0: no
 * such process
 */
static uint64_t ours, theirs[PIDS];
static int looks, hidden;

static void setup(void)
{
	memset(theirs, 0, sizeof(theirs));
	hidden = -1;
}

/* Replaces sched_getaffinity() of the C library. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	uint64_t mask = pid ? theirs[pid - FIRST] : ours;
	size_t i;

	looks++;
	if (!mask || pid == hidden) {
		errno = mask ? EPERM : ESRCH;
		return -1;
	}
	CPU_ZERO_S(size, set);
	/* bits from the end of the set, beyond a standard cpu_set_t */
	for (i = 0; i < 64; i++)
		if (mask >> i & 1)
			CPU_SET_S(8 * size - 1 - i, size, set);
	return 0;
}

#define ANYWHERE 0xffff
static const struct {
	const char *name;
	uint64_t ours, theirs[PIDS];
	bool yields;
} cases[] = {
	{ "nobody", 1, { 0 }, false },
	{ "one each", 3, { 3 }, false },
	{ "one too many", 3, { 3, 3 }, true },
	{ "two on one", 1, { 1 }, true },
	{ "each bound to its own", 1, { 2, 4, 8, 16 }, false },
	{ "each bound to two of its own", 3, { 0xc, 0x30, 0xc0 }, false },
	{ "bound to ours as well", 1, { 1, 2, 2 }, true },
	{ "others share one, not we", 1, { 2, 2, 2 }, false },
	{ "we alone are bound", 1, { ANYWHERE, ANYWHERE, ANYWHERE }, false },
	{ "they alone are bound", 0xf, { 1, 2, 4 }, false },
	{ "they are bound, and there is none left", 7, { 1, 2, 4 }, true },
	{ "a node of three, of two such", 7, { 7, 7, 0x38, 0x38, 0x38 },
	  false },
	/*
	 * if there are too many processes, only those that may run on the most
	 * CPUs yield
	 */
	{ "bound, and others free on all of these", 1, { 2, 3, 3 }, false },
	{ "free, and others bound on all of these", 3, { 1, 2, 3 }, true },
	{ "bound, and one is free on another as well", 1, { 3 }, false },
	{ "a node of two, of two such", 3, { 3, 3, 0xc, 0xc, 0xc }, true },
};

/* Passes unsorted pids, each twice, and this process's, which counts once. */
static bool oversub_of(const uint64_t *masks)
{
	pid_t pid[2 * PIDS + 1] = { getpid() };
	size_t i, n = 1;

	memcpy(theirs, masks, sizeof(theirs));
	for (i = 0; i < PIDS; i++)
		pid[n++] = FIRST + PIDS - 1 - (pid_t)i;
	for (i = 0; i < PIDS; i++)
		pid[n++] = FIRST + (pid_t)i;
	return near_oversub(pid, n, 0);
}

UNIT_CASE("oversub", setup, NULL);

UNIT_ROUNDS(table, 0, ARRAY_SIZE(cases))
{
	ours = cases[_i].ours;
	ck_assert_msg(oversub_of(cases[_i].theirs) == cases[_i].yields, "%s",
		      cases[_i].name);
}

UNIT_TEST(process_with_unknown_cpus_counts)
{
	static const uint64_t bound[PIDS] = { 2 };
	pid_t far[2] = {0};

	ours = 1;
	ck_assert(!oversub_of(bound));
	hidden = FIRST;
	ck_assert(oversub_of(bound));
	/* two processes without a pid count as two */
	ours = 3;
	ck_assert(!near_oversub(far, 1, 0));
	ck_assert(near_oversub(far, 2, 0));
	/* the CPUs of this process are unknown, too */
	ours = 0;
	ck_assert(near_oversub(far, 0, 0));
}

UNIT_TEST(enough_cpus_read_one_mask)
{
	pid_t pid[3] = { FIRST, FIRST + 1, FIRST + 2 };

	ours = ANYWHERE;
	looks = 0;
	ck_assert(!near_oversub(pid, 3, 0));
	ck_assert_int_eq(looks, 1);
}

UNIT_TEST(process_without_pid_counts)
{
	pid_t pid[1] = { FIRST };

	ours = theirs[0] = 7;
	ck_assert(!near_oversub(pid, 1, 1));
	ck_assert(near_oversub(pid, 1, 2));
}

/* near_oversubscribed() counts the processes of peers, but no failed peers. */
UNIT_TEST(port_counts_live_peers)
{
	struct rig *rig = rig_open(false);
	struct near_addr addr = rig->addr;
	struct near_peer *peer[2];
	int i;

	ours = theirs[0] = theirs[1] = 3;
	rig_peer(rig, rig);
	ck_assert(!near_oversubscribed(rig->port, 0));
	for (i = 0; i < 2; i++) {
		addr.pid = FIRST + i;
		addr.nonce++;
		peer[i] = rig_peer_at(rig, &addr);
		ck_assert(near_oversubscribed(rig->port, 0) == i);
	}
	near_peer_fail(rig->port, peer[0]);
	ck_assert(!near_oversubscribed(rig->port, 0));
	/* the port and peer[1] are two endpoints; a third one counts as well */
	ck_assert(!near_oversubscribed(rig->port, 2));
	ck_assert(near_oversubscribed(rig->port, 3));
	addr.nonce++;
	addr.pid_ns++; /* pids of another namespace are not valid here */
	rig_peer_at(rig, &addr);
	ck_assert(near_oversubscribed(rig->port, 0));
	rig_close(rig);
}
