/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Delegated operations: the initiator is killed, or the target closes. */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rma_side.h"

UNIT_CASE("ends", side_setup_delegs, side_teardown);

/*
 * Forks an initiator that sends a message, delegates a write, sends another
 * message, and kills itself. The write's slot has the state `deleg`.
 */
static void be_killed_with(enum near_deleg deleg)
{
	const struct near_addr there = b.rig->addr;
	struct near_tx *tx;
	struct rig *rig;
	pid_t child = fork();

	if (!child) {
		rig = rig_open(false);
		near_peer_get(rig->port, &there, &to_b);
		if (rig_send(rig, to_b, 2, local, 8))
			_exit(1);
		tx = &to_b->tx;
		tx->slots[1] = (struct near_slot) {
			.tag = SIDE_START,
			.rma = { .key = SIDE_KEY, .id = 1ull << 32, .len = 8,
				 .verb = NEAR_WRITE, .flags = NEAR_RMA_INLINE,
				 .bytes = { 1, 2, 3, 4, 5, 6, 7, 8 } },
		};
		near_tx_publish(tx, &tx->slots[1],
				near_word(NEAR_KIND_RMA, deleg, 0, 0));
		if (rig_send(rig, to_b, 3, local, 8))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
}

/*
 * After an initiator was killed, the target must deliver the messages before
 * and behind the delegated write, and must execute an open write. A revoked
 * write may be lost.
 */
UNIT_LOOP(messages_of_killed_initiator_arrive, 0, 3)
{
	static const enum near_deleg at[] = {
		NEAR_DELEG_OPEN,
		NEAR_DELEG_REVOKED,
		NEAR_DELEG_EXECUTED,
	};
	uint8_t *expect = at[_i] == NEAR_DELEG_OPEN
				  ? (uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8}
				  : (uint8_t[8]){0};

	be_killed_with(at[_i]);
	rig_until(b.rig, NULL, 4);
	ck_assert_uint_eq(b.rig->event[1].msg.tag, 2);
	ck_assert_uint_eq(b.rig->event[2].msg.tag, 3);
	ck_assert_int_eq(b.rig->event[3].kind, RIG_GONE);
	ck_assert_mem_eq(memory, expect, 8);
}

/* The target closes while it executes an operation: the operation fails. */
UNIT_TEST(closing_target_fails_operation)
{
	side_put(0);
	side_ctl()->doing = 1;
	b.rig->port->segment->closed = 1;
	side_lost(1);
	side_untouched();
}
