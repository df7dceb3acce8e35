/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "port_fixture.h"

static struct near_table *table;
uint64_t theirs[WORDS], ours[WORDS];
char context;
struct fid_mr *mr;
int port_device_polls, port_device_fails;
uint32_t port_data;
void (*port_ended)(void *cookie, int err);

static void port_done(void *ctx, struct near_peer *other, void *cookie,
		      uint32_t about, int err)
{
	if (port_ended)
		port_ended(cookie, err);
}

char *port_device(const void *at)
{
	size_t offset = (uintptr_t) at - DEVICE_AT;

	return offset < MESSAGE_LEN ?
	       fake.device.shadow + LARGE / 2 + 100 + offset : NULL;
}

/*
 * A copy by the peer's device; the poll that reports its end copies the bytes.
 */
struct port_copy {
	char *to;
	const char *from;
	size_t len;
	int polls;
};

static int port_start(void *device, void *to, const void *from, size_t len,
		      void **copy_out)
{
	struct port_copy *copy = malloc(sizeof(*copy));

	if (port_device_fails && !--port_device_fails) {
		free(copy);
		return -FI_EIO;
	}
	*copy = (struct port_copy) {
		port_device(to) ? port_device(to) : to,
		port_device(from) ? port_device(from) : from, len,
		port_device_polls,
	};
	*copy_out = copy;
	return 0;
}

static int port_copied(void *opaque)
{
	struct port_copy *copy = opaque;
	bool fails;

	if (copy->polls-- > 0)
		return -FI_EAGAIN;
	fails = port_device_fails && !--port_device_fails;
	if (!fails)
		memcpy(copy->to, copy->from, copy->len);
	free(copy);
	return fails ? -FI_EIO : 0;
}

static void *port_pin(void *device, void *memory, size_t len)
{
	return NULL;
}

static bool port_lend(void *device, const void *memory, size_t len,
		      uint64_t *key, uint64_t *addr)
{
	*key = DEVICE_KEY;
	*addr = START + ((uintptr_t) memory - DEVICE_AT);
	return true;
}

static const struct near_device port_near_device = {
	.start = port_start, .done = port_copied, .pin = port_pin,
	.lend = port_lend,
};

static void port_event(void *ctx, const struct near_rma_event *event)
{
	port_data += event->has_data;
}

static const struct near_rma_sink port_rma_sink = {
	.device = &port_near_device,
	.done = port_done, .event = port_event,
};

static void port_region(void)
{
	const struct near_region_entry entry = {
		.key = KEY, .start = START, .memory = (uintptr_t) theirs,
		.len = sizeof(theirs),
		.access = NEAR_MAY_READ | NEAR_MAY_WRITE,
	};

	ck_assert_int_eq(near_table_open(&table, true), 0);
	ck_assert_int_eq(near_rma_open(rig.port, &port_rma_sink, table, false),
			 0);
	ck_assert_int_eq(near_table_add(table, &entry), 0);
}

static void port_add(const char *handle, size_t len, uint32_t access)
{
	const struct near_region_entry entry = {
		.key = DEVICE_KEY, .start = START, .memory = DEVICE_AT,
		.len = len, .device = 1, .access = access,
	};
	struct near_export export = { .id = 9, .base = DEVICE_AT - 100 };

	strcpy((char *) export.handle, handle);
	ck_assert_int_eq(near_table_add(table, &entry), 0);
	ck_assert_int_eq(near_table_export(table, DEVICE_KEY, &export), 0);
}

void port_add_device(const char *handle)
{
	port_add(handle, sizeof(theirs),
		 (NEAR_MAY_READ | NEAR_MAY_WRITE) << NEAR_MAY_DEVICE);
}

void port_add_messages(const char *handle, uint32_t access)
{
	port_add(handle, MESSAGE_LEN, access);
}

void port_remove_device(void)
{
	near_table_remove(table, DEVICE_KEY);
}

void port_setup(const struct fixture_attr *as)
{
	port_device_polls = port_device_fails = 0;
	port_data = 0;
	port_ended = NULL;
	memset(theirs, 0, sizeof(theirs));
	memset(ours, 1, sizeof(ours));
	near_open_as(as);
	port_region();
	near_publish();
}

void port_close(void)
{
	rig_end();
	near_table_close(table);
	table = NULL;
}

void port_teardown(void)
{
	near_teardown();
	if (table)
		near_table_close(table);
}

void write_ours(size_t len)
{
	ck_assert_int_eq(fi_write(fx.ep, ours, len, NULL, peer, START, KEY,
				  &context), 0);
}

void fetch_add(const uint64_t *operands, size_t count, uint64_t *was)
{
	ck_assert_int_eq(fi_fetch_atomic(fx.ep, operands, count, NULL, was,
					 NULL, peer, START, KEY, FI_UINT64,
					 FI_SUM, &context), 0);
}

void add(const uint64_t *operand)
{
	ck_assert_int_eq(fi_atomic(fx.ep, operand, 1, NULL, peer, START, KEY,
				   FI_UINT64, FI_SUM, &context), 0);
}

struct fi_cq_tagged_entry ended(uint64_t flags)
{
	struct fi_cq_tagged_entry entry = both_entry(&context);

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

struct fid_mr *host_region(void *buf, size_t len, uint64_t access,
			   uint64_t key)
{
	struct fid_mr *region;

	ck_assert_int_eq(fi_mr_reg(fx.domain, buf, len, access, 0, key, 0,
				   &region, NULL), 0);
	return region;
}

struct fid_mr *device_region(uint64_t access, uint64_t key, uint64_t flags)
{
	const struct iovec iov = { fake.device.base, LARGE };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .iface = FI_HMEM_CUDA,
		.access = access, .requested_key = key,
	};
	struct fid_mr *region;

	ck_assert_int_eq(fi_mr_regattr(fx.domain, &attr, flags, &region), 0);
	return region;
}

void port_region_open(uint64_t access)
{
	mr = device_region(access, 1, FI_HMEM_DEVICE_ONLY);
}

void port_region_again(void)
{
	const struct duo_mr *first = duo_container_of(mr, struct duo_mr,
						      mr_fid);

	fake.core.cached = fake_obj_of(&first->core->fid);
	port_region_open(FI_SEND);
	fake.core.cached = NULL;
}

void port_region_close(void)
{
	if (mr)
		ck_assert_int_eq(fi_close(&mr->fid), 0);
	mr = NULL;
}

void port_device_teardown(void)
{
	port_region_close();
	port_teardown();
	fake_device_close();
}
