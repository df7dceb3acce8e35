/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The path of an address changes from local to core while threads send. */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

static fi_addr_t addr;
static int context;

static atomic_int sender_tid;
static ssize_t sender_ret;

static void *sender_run(void *arg)
{
	atomic_store(&sender_tid, syscall(SYS_gettid));
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
	ck_assert_int_eq(pthread_create(&sender, NULL, sender_run, NULL), 0);
	while (unit_state(atomic_load(&sender_tid)) != 'S')
		sched_yield();
	duo_map_use_core(fixture_ep(), 0);
	duo_unlock(lock);
	ck_assert_int_eq(pthread_join(sender, NULL), 0);
	ck_assert_int_eq(sender_ret, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
}
