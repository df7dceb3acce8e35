/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A sender attaches to the first free ring of a receiver. It may call
 * near_group_has(), which reads files, only once for the ring, and once more if
 * the ring's claim is in a page of claims that has no memory yet.
 */

#include "near/link/group.h"
#include "unit.h"

static int looks;

/* Replaces the function of link/group.c; counts its calls in `looks`. */
bool near_group_has(size_t size)
{
	looks++;
	return true;
}

/* A page has 64 claims. Its memory is checked when its first one is taken. */
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
