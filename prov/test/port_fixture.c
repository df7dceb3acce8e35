/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "port_fixture.h"

struct near_port *port;
static struct near_table *table;
struct near_peer *to_us;
struct duo_publication pub;
fi_addr_t peer;
uint64_t theirs[WORDS], ours[WORDS];
int done, done_err;
char context;

static bool port_room(void *ctx)
{
	return true;
}

static int port_arrived(void *ctx, struct near_peer *source,
			const struct near_msg *msg)
{
	return 0;
}

static void port_ended(void *ctx, void *cookie, int err)
{
}

static void port_peer(void *ctx, struct near_peer *other)
{
}

const struct near_sink port_sink = {
	.room = port_room,
	.arrived = port_arrived,
	.received = port_ended,
	.sent = port_ended,
	.met = port_peer,
	.gone = port_peer,
	.forgotten = port_peer,
};

static void port_done(void *ctx, struct near_peer *other, void *cookie,
		      uint32_t about, int err)
{
	done++;
	done_err = err;
}

static void port_event(void *ctx, const struct near_rma_event *event)
{
}

static const struct near_rma_sink port_rma_sink = {
	.done = port_done, .event = port_event,
};

static void port_open(void)
{
	const struct near_attr near_attr = { .sink = &port_sink,
					     .memory = NEAR_MEMORY };
	const struct near_region_entry entry = {
		.key = KEY, .start = START, .memory = (uintptr_t) theirs,
		.len = sizeof(theirs),
		.access = NEAR_MAY_READ | NEAR_MAY_WRITE,
	};
	struct near_addr addr;

	ck_assert_int_eq(near_open(&port, &near_attr), 0);
	ck_assert_int_eq(near_table_open(&table), 0);
	ck_assert_int_eq(near_rma_open(port, &port_rma_sink, table), 0);
	ck_assert_int_eq(near_table_add(table, &entry), 0);
	near_address(fixture_ep()->near->port, &addr);
	ck_assert_int_eq(near_peer_get(port, &addr, &to_us), 0);
}

static void port_publish(void)
{
	uint64_t core_addr = PEER;
	struct near_addr addr;

	pub = (struct duo_publication) { .fd = -1, .peer = DUO_PEER_NEAR };
	near_address(port, &addr);
	memcpy(pub.peer_name, &addr, sizeof(addr));
	ck_assert_int_eq(duo_registry_reserve(duo_params.registry_dir,
					      &core_addr, sizeof(core_addr),
					      false, &pub), 0);
	ck_assert_int_eq(duo_registry_ready(&pub), 0);
}

void port_setup(const struct fixture_attr *as)
{
	fixture_open(as);
	ck_assert_int_eq(fixture_try(as), 0);
	memset(theirs, 0, sizeof(theirs));
	memset(ours, 1, sizeof(ours));
	done = done_err = 0;
	port_open();
	port_publish();
	peer = peer_insert(PEER);
}

void port_close(void)
{
	if (!port)
		return;
	near_close(port);
	near_table_close(table);
	port = NULL;
}

void port_teardown(void)
{
	port_close();
	duo_registry_withdraw(&pub);
	fixture_close();
}

/* Polls both until ours is reported. */
struct fi_cq_tagged_entry ended(uint64_t flags)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = -FI_EAGAIN;
	int i;

	for (i = 0; i < 100000 && ret == -FI_EAGAIN; i++) {
		ret = fi_cq_read(fx.cq, &entry, 1);
		near_poll(port, &port_sink);
	}
	ck_assert_int_eq(ret, 1);
	ck_assert_ptr_eq(entry.op_context, &context);
	ck_assert_uint_eq(entry.flags, flags);
	return entry;
}

void carried(uint64_t near_rma_ops_, uint64_t near_atomics,
		    uint64_t core_ops)
{
	struct fi_duo_stats stats = stats_now();

	ck_assert_uint_eq(stats.rma_ops[FI_DUO_LOCAL], near_rma_ops_);
	ck_assert_uint_eq(stats.atomic_ops[FI_DUO_LOCAL], near_atomics);
	ck_assert_uint_eq(stats.rma_ops[FI_DUO_CORE] +
			  stats.atomic_ops[FI_DUO_CORE], core_ops);
	ck_assert_uint_eq(fake.core.onesided_count, core_ops);
}
