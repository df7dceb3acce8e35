/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The path of an address changes from local to core while threads send. */

#include "fixture.h"

static fi_addr_t addr;
static int context;

static ssize_t sender_ret;

static void *sender_run(void *arg)
{
	sender_ret = send_x(fx.ep, addr, &context);
	return NULL;
}

UNIT_CASE("rejected", fixture_setup, fixture_close);

/*
 * The path changes to the core while the sender waits for the lock. The sender
 * must then use the core.
 */
UNIT_TEST(waiting_sender_uses_changed_path)
{
	struct duo_lock *lock = &fixture_ep()->group->lock;
	pthread_t sender;

	peer_publish(1);
	addr = peer_insert(1);
	duo_lock(lock);
	sender = unit_waiter(sender_run);
	duo_map_use_core(fixture_ep(), 0);
	duo_unlock(lock);
	unit_thread_end(sender);
	ck_assert_int_eq(sender_ret, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
}
