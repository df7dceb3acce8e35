/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The search for a free claim. near_group_has() reads files. So the search may
 * call it only once for the ring, and once for a new page of claims.
 */

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit.h"

static int looks;
/* claim that kill() opens, as its sender would before an exit; NULL: none */
static struct near_claim *opening;

/* Replaces the function of link/group.c; counts its calls in `looks`. */
bool near_group_has(size_t size)
{
	looks++;
	return true;
}

/*
 * Replaces kill() of the C library. If there is a claim `opening`, opens this
 * claim, and reports that the process has exited.
 */
int kill(pid_t pid, int sig)
{
	if (!opening)
		return (int)syscall(SYS_kill, pid, sig);
	opening->state = NEAR_CLAIM_OPEN;
	opening = NULL;
	errno = ESRCH;
	return -1;
}

/*
 * A page has 64 claims. The search calls near_group_has() for the page when a
 * sender takes its first claim.
 */
static const struct {
	uint32_t taken;	/* number of claims that are taken before the test */
	/* expected calls of near_group_has(): for the ring, and for a page */
	int looks;
} rows[] = {
	{ 0, 2 }, { 1, 1 }, { 63, 1 }, { 64, 2 }, { 1000, 1 }, { 1024, 2 },
};

UNIT_CASE("claim", NULL, rig_close_all);

UNIT_LOOP(ring_is_found_among_many, 0, ARRAY_SIZE(rows))
{
	const uint32_t taken = rows[_i].taken;
	struct rig *us = rig_open(false), *other = rig_open(false);
	struct near_peer *to_us = rig_peer(other, us);
	uint32_t i;

	for (i = 0; i < taken; i++)
		us->port->segment->claim[i].state = NEAR_CLAIM_TAKEN;
	looks = 0;
	ck_assert_int_eq(rig_send(other, to_us, 1, "", 0), 0);
	ck_assert_uint_eq(to_us->index, taken);
	ck_assert_int_eq(looks, rows[_i].looks);
	rig_until(us, NULL, 1);
	rig_close(other);
	rig_until(us, NULL, 2);
}

/*
 * The port has loaded the state TAKEN of a claim. Before the port checks the
 * sender's process, the sender opens the claim and exits. The port must keep
 * the claim.
 */
UNIT_TEST(claim_opened_before_exit_is_kept)
{
	struct rig *us = rig_open(false), *other = rig_open(false);
	struct near_claim *claim = us->port->segment->claim;

	ck_assert_int_eq(rig_send(other, rig_peer(other, us), 1, "", 0), 0);
	claim->state = NEAR_CLAIM_TAKEN | (uint32_t)getpid() << NEAR_CLAIM_PID;
	opening = claim;
	near_rings_check(us->port);
	ck_assert_ptr_null(opening);
	ck_assert_uint_eq(claim->state, NEAR_CLAIM_OPEN);
	rig_until(us, NULL, 1);
}
