/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The peer of an address fails while a thread starts RMA to the address. */

#include <rdma/fi_rma.h>

#include "av/route.h"
#include "port_fixture.h"

static uint64_t others[WORDS];
static struct near_table *table;
static struct near_port *other;
static ssize_t ret;

FIXTURE_SETUP(setup, port_setup,
	      .core = "efa", .near = true, .onesided = true);

static void done(void *ctx, struct near_peer *from, void *cookie,
		 uint32_t about, int err)
{
}

/* Opens another port, whose region has the key of the peer's region. */
static void open_other(struct near_addr *addr)
{
	static const struct near_rma_sink sink = { .done = done };
	const struct near_attr attr = {
		.sink = &rig_sink, .memory = NEAR_MEMORY,
	};
	const struct near_region_entry entry = {
		.key = KEY, .start = START, .memory = (uintptr_t) others,
		.len = sizeof(others),
		.access = NEAR_MAY_READ | NEAR_MAY_WRITE,
	};

	ck_assert_int_eq(near_open(&other, &attr), 0);
	ck_assert_int_eq(near_table_open(&table, false), 0);
	ck_assert_int_eq(near_rma_open(other, &sink, table, false), 0);
	ck_assert_int_eq(near_table_add(table, &entry), 0);
	near_address(other, addr);
}

static void teardown(void)
{
	port_teardown();
	near_close(other);
	near_table_close(table);
}

static void *writer(void *arg)
{
	ret = fi_write(fx.ep, ours, 64, NULL, peer, START, KEY, NULL);
	return NULL;
}

UNIT_CASE("reused", setup, teardown);

/*
 * While the thread waits for the lock, another peer gets the failed peer's
 * index. The thread's write must not go to this other peer.
 */
UNIT_TEST(write_to_failed_peer_reaches_no_other)
{
	struct duo_near *near = fixture_ep()->near;
	struct duo_lock *lock = &fixture_ep()->group->lock;
	struct near_peer *reused;
	struct near_addr addr;
	pthread_t thread;
	uint32_t index;

	write_ours(64);
	ended(FI_RMA | FI_WRITE);
	index = (uint32_t) duo_route_index(duo_route_load(fixture_ep()->route,
							  peer));
	open_other(&addr);
	duo_lock(lock);
	thread = unit_waiter(writer);
	rig_end();
	while (near->peer[index])
		near_poll(near->port, &duo_near_sink);
	/* as if all other indexes were in use */
	near->next = index;
	ck_assert_int_eq(near_peer_get(near->port, &addr, &reused), 0);
	ck_assert_ptr_eq(near->peer[index], reused);
	duo_unlock(lock);
	unit_thread_end(thread);
	ck_assert_uint_eq(others[0], 0);
	ck_assert(!near_rma_busy(reused));
	ck_assert_int_eq(ret, -FI_EAGAIN);
	near_peer_put(near->port, reused);
}
