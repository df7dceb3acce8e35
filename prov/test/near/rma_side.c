/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "rma_side.h"

struct side a, b;
struct near_peer *to_b;
struct near_device side_device;
int side_unmapped;
uint8_t *memory, *local;

static struct side *side_of(void *ctx)
{
	return ctx == a.rig ? &a : &b;
}

static void side_done(void *ctx, struct near_peer *peer, void *cookie,
		      uint32_t about, int err)
{
	struct side *side = side_of(ctx);

	side->done++;
	side->err = err;
	side->cookie = cookie;
	if (side->on_done)
		side->on_done();
}

static void side_event(void *ctx, const struct near_rma_event *event)
{
	struct side *side = side_of(ctx);

	side->events++;
	side->events_at = side->rig->count;
	side->event = *event;
}

static const struct near_rma_sink side_sink = {
	.done = side_done, .event = side_event, .device = &side_device,
};

static void side_open(struct side *side, bool no_cma)
{
	memset(side, 0, sizeof(*side));
	side->rig = rig_open(no_cma);
	ck_assert_int_eq(near_table_open(&side->table, true), 0);
	ck_assert_int_eq(near_rma_open(side->rig->port, &side_sink,
				       side->table, false), 0);
	near_address(side->rig->port, &side->rig->addr);
}

static void side_close(struct side *side)
{
	rig_close(side->rig);
	while (near_table_unmapped(side->table))
		side_unmapped++;
	near_table_close(side->table);
}

void side_region(uint64_t key, uint32_t access, size_t len)
{
	const struct near_region_entry entry = {
		.key = key, .start = SIDE_START, .memory = (uintptr_t)memory,
		.len = len, .access = access,
	};

	ck_assert_int_eq(near_table_add(b.table, &entry), 0);
}

static void side_setup_as(bool no_cma)
{
	side_open(&a, no_cma);
	side_open(&b, no_cma);
	to_b = rig_peer(a.rig, b.rig);
	memory = aligned_alloc(64, (SIDE_LARGE + 63) & ~63u);
	local = aligned_alloc(64, (SIDE_LARGE + 63) & ~63u);
	memset(memory, 0, SIDE_LARGE);
	rig_fill(local, SIDE_LARGE, 7);
	side_region(SIDE_KEY, NEAR_MAY_READ | NEAR_MAY_WRITE, SIDE_LARGE);
}

void side_setup_direct(void)
{
	side_setup_as(false);
	near_rma_peer(to_b)->skip = UINT32_MAX;
}

void side_setup_asked(void)
{
	side_setup_as(true);
}

void side_teardown(void)
{
	side_close(&a);
	side_close(&b);
	free(memory);
	free(local);
}

int side_call(struct near_rma_args args)
{
	args.addr += SIDE_START;
	if (!args.len)
		args.len = near_iov_len(args.local.iov, args.local.count);
	args.data = SIDE_DATA;
	args.about = 1;
	if (!args.cookie)
		args.cookie = local;
	return near_rma(a.rig->port, to_b, &args);
}

int side_start(enum near_verb verb, uint64_t key, size_t offset, size_t len,
	       uint32_t flags)
{
	return side_rma(.verb = verb, .flags = flags, .addr = offset,
			.key = key, .local = SIDE_BUF(local, len));
}

void side_poll(int times)
{
	while (times--) {
		rig_poll(a.rig, 1);
		rig_poll(b.rig, 1);
	}
}

void side_until(uint32_t done, bool both)
{
	int i;

	for (i = 0; i < 100000 && a.done < done; i++) {
		rig_poll(a.rig, 1);
		if (both)
			rig_poll(b.rig, 1);
	}
	ck_assert_uint_eq(a.done, done);
	ck_assert_int_eq(a.err, 0);
}

void side_lost(uint32_t done)
{
	int i;

	for (i = 0; i < 3000 && a.done < done; i++)
		rig_poll_ms(a.rig, 1);
	ck_assert_uint_eq(a.done, done);
	ck_assert_int_eq(a.err, ECONNRESET);
	ck_assert(!near_rma_busy(to_b));
}

void side_fails(int err)
{
	while (!a.done)
		side_poll(1);
	ck_assert_int_eq(a.err, err);
}

void side_request(struct near_rma_slot request)
{
	struct near_slot *slot = near_control_slot(a.rig->port, to_b);

	slot->tag = SIDE_START;
	slot->rma = request;
	near_control_send(a.rig->port, to_b, slot, NEAR_KIND_RMA, 0);
}

int side_deleg(enum near_verb verb, uint64_t key, size_t offset, size_t len)
{
	to_b->rma->skip = 0;
	return side_start(verb, key, offset, len, 0);
}

void side_put(size_t offset)
{
	ck_assert_int_eq(side_deleg(NEAR_WRITE, SIDE_KEY, offset, 8), 0);
}

void side_setup_offers(void)
{
	side_setup_direct();
	ck_assert_int_eq(side_start(NEAR_READ, SIDE_KEY, 0, 1, 0),
			 NEAR_RMA_DONE);
	to_b->rma->skip = 0;
	rig_fill(local, SIDE_LARGE, 7);
}

void side_setup_delegs(void)
{
	side_setup_offers();
	/* b gets an active ring from a */
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	rig_until(b.rig, NULL, 1);
}

struct near_ctl *side_ctl(void)
{
	return to_b->tx.ctl;
}

void side_untouched(void)
{
	size_t i, n = 0;

	for (i = 0; i < SIDE_LARGE; i++)
		n += !!memory[i];
	ck_assert_uint_eq(n, 0);
}
