/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA of device memory over near, at the initiator and at the target. A load or
 * store of the fake device memory raises a signal, so ofi_duo must copy it by
 * the device library.
 */

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "base/params.h"
#include "device/device.h"
#include "port_fixture.h"

#define NEXT 32			/* offset of a second buffer in device memory */

static void setup(void)
{
	static const struct fixture_attr as = {
		.core = "efa", .device = true, .near = true, .onesided = true,
		.cntr_flags = FI_READ | FI_WRITE,
	};

	port_setup(&as);
	fake_device_open(LARGE);
	port_region_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	fake.device.polls = 3;
	memset(fake.device.shadow, 5, LARGE);
}

UNIT_CASE("one-sided", setup, port_device_teardown);

UNIT_TEST(writes_and_reads)
{
	void *desc = fi_mr_desc(mr);

	ck_assert_int_eq(fi_write(fx.ep, fake.device.base, 64, desc, peer,
				  START + 8, KEY, &context), 0);
	ended(FI_RMA | FI_WRITE);
	ck_assert_mem_eq(theirs + 1, fake.device.shadow, 64);
	ck_assert_uint_eq(theirs[0], 0);
	ck_assert_uint_eq(theirs[9], 0);
	ck_assert_int_eq(fi_read(fx.ep, fake.device.base + NEXT, 16, desc,
				 peer, START, KEY, &context), 0);
	ended(FI_RMA | FI_READ);
	ck_assert_mem_eq(fake.device.shadow + NEXT, theirs, 16);
	/* RMA of host memory is not counted as RMA of device memory */
	write_ours(16);
	ended(FI_RMA | FI_WRITE);
	ck_assert_int_eq(fake.device.copies, 2);
	ck_assert_uint_eq(stats_now().device_rma_ops, 2);
	carried(3, 0, 0);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 3);
}

/*
 * After the call, the application may reuse the buffer of a write with
 * FI_INJECT. If ofi_duo's copy of the buffer fails, the core gets the write.
 */
UNIT_TEST(injected_write_copies_buffer)
{
	const struct iovec iov = { fake.device.base, 8 };
	const struct fi_rma_iov at = { START, 8, KEY };
	void *desc = fi_mr_desc(mr);
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer,
		.rma_iov = &at, .rma_iov_count = 1, .context = &context,
	};

	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, FI_INJECT | FI_COMPLETION),
			 0);
	memset(fake.device.shadow, 6, 8);
	ended(FI_RMA | FI_WRITE);
	ck_assert_mem_eq(theirs, fake.device.shadow + 8, 8);
	fake.device.fails = true;
	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, FI_INJECT), 0);
	fake.device.fails = false;
	carried(1, 0, 1);
}

/*
 * There is no memory for the bounce buffer of the domain (_i is 0 or 1) or for
 * a stage (2 or 3). The core executes the write, but the peer stays local. In
 * the provider near (1 and 3), which has no core, the application must retry.
 */
UNIT_LOOP(write_without_memory_uses_core_or_is_repeated, 0, 4)
{
	const bool none = _i % 2, stage = _i / 2;
	void *desc = fi_mr_desc(mr);
	const struct iovec iov = { fake.device.base, 8 };
	const struct fi_rma_iov at = { START, 8, KEY };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer,
		.rma_iov = &at, .rma_iov_count = 1,
	};

	if (stage) {
		ck_assert_int_eq(fi_tinject(fx.ep, "", 0, peer, TAG), 0);
		unit_reject(SYS_fallocate, SECCOMP_RET_ERRNO | ENOSPC);
	} else {
		unit_reject_if(SYS_mmap, 1, 256 << 10,
			       SECCOMP_RET_ERRNO | ENOMEM);
	}
	fixture_ep()->core.carries_nothing = none;
	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, stage ? 0 : FI_INJECT),
			 none ? -FI_EAGAIN : 0);
	carried(0, 0, !none);
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_OK);
	fixture_ep()->core.carries_nothing = false;
}

/* Polls until the peer's RMA has ended. */
static void until_idle(void)
{
	int i;

	for (i = 0; i < 1000 && near_rma_busy(rig.us); i++) {
		poll_cq(1);
		near_poll(rig.port, &rig_sink);
	}
	ck_assert(!near_rma_busy(rig.us));
}

UNIT_LOOP(peer_accesses_device_memory, 0, 2)
{
	const struct iovec iov = { ours, sizeof(ours) };
	const struct near_rma_args args = {
		.verb = _i ? NEAR_WRITE : NEAR_READ, .len = sizeof(ours),
		.addr = fixture_ep()->domain->virt_addrs ?
			(uintptr_t) fake.device.base : 0,
		.key = fi_mr_key(mr), .local = { &iov, 1, NULL },
	};

	ck_assert_int_eq(near_rma(rig.port, rig.us, &args), 0);
	until_idle();
	ck_assert_mem_eq(fake.device.shadow, ours, sizeof(ours));
	ck_assert_int_eq(fake.device.copies, 1);
}

/* A CPU cannot execute atomics on device memory. */
UNIT_TEST(device_atomics_use_core)
{
	void *desc = fi_mr_desc(mr);
	uint64_t was;

	ck_assert_int_eq(fi_atomic(fx.ep, fake.device.base, 1, desc, peer,
				   START, KEY, FI_UINT64, FI_SUM, NULL), 0);
	carried(0, 0, 1);
	ck_assert_int_eq(fi_fetch_atomic(fx.ep, ours, 1, NULL,
					 fake.device.base, desc, peer, START,
					 KEY, FI_UINT64, FI_SUM, NULL), 0);
	carried(0, 0, 2);
	fetch_add(ours, 1, &was);
	ended(FI_ATOMIC | FI_READ);
	carried(0, 1, 2);
}

/*
 * Asserts that near's text for the last RMA of device memory begins with
 * "begin", and that near has counted operations under this text. NULL: there
 * was no such RMA.
 */
static void device_path(const char *begin)
{
	const struct fi_ops_duo *ops = ops_of(fx.ep);
	const char *text, *way;
	unsigned int i;
	uint64_t count, all = 0, this = 0;

	text = ops->device_path(fx.ep, peer);
	if (begin)
		ck_assert_msg(text && !strncmp(text, begin, strlen(begin)),
			      "%s", text);
	else
		ck_assert_ptr_null(text);
	for (i = 0; (way = ops->device_count(fx.ep, i, &count)); i++) {
		all += count;
		this += text == way ? count : 0;
	}
	ck_assert_uint_eq(this > 0, begin != NULL);
	ck_assert_uint_eq(all, stats_now().device_rma_ops);
	ck_assert_ptr_null(ops->device_path(fx.ep, 1 << 20));
}

/* Starts a write from device memory to the peer's device memory. */
static void start_write(void)
{
	ck_assert_int_eq(fi_write(fx.ep, fake.device.base, 64, fi_mr_desc(mr),
				  peer, START + 8, DEVICE_KEY, &context), 0);
}

static void write_device(void)
{
	start_write();
	ended(FI_RMA | FI_WRITE);
}

/* FI_INJECT, which may be a default flag, must not prevent a mapped read. */
UNIT_TEST(read_with_inject_is_mapped)
{
	const struct iovec iov = { fake.device.base, 64 };
	const struct fi_rma_iov at = { START + 8, 64, DEVICE_KEY };
	void *desc = fi_mr_desc(mr);
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer,
		.rma_iov = &at, .rma_iov_count = 1, .context = &context,
	};

	port_add_device("fake");
	ck_assert_int_eq(fi_readmsg(fx.ep, &msg, FI_INJECT | FI_COMPLETION), 0);
	ended(FI_RMA | FI_READ);
	ck_assert_uint_eq(stats_now().device_rma_mapped, 1);
}

/*
 * For RMA between device memory at both ends, this process maps the peer's
 * memory, and keeps the mapping. If _i is 0, fi_close() of the endpoint
 * releases the mapping. Otherwise the peer removes its region first, and this
 * process releases the mapping when it registers memory (1) or closes a region
 * (2).
 */
UNIT_LOOP(peers_device_memory_is_mapped, 0, 3)
{
	char *theirs_at = fake.device.shadow + LARGE / 2 + 108;
	static char host[64];
	struct fid_mr *other;

	port_add_device("fake");
	device_path(NULL);
	memset(fake.device.shadow, 7, 64);
	write_device();
	write_device();
	ck_assert_mem_eq(theirs_at, fake.device.shadow, 64);
	ck_assert_int_eq(theirs_at[-1], 5);
	ck_assert_int_eq(theirs_at[64], 5);
	ck_assert_int_eq(fake.device.copies, 2);
	ck_assert_int_eq(fake.device.map_calls, 1);
	ck_assert_uint_eq(stats_now().device_rma_ops, 2);
	ck_assert_uint_eq(stats_now().device_rma_mapped, 2);
	carried(2, 0, 0);
	device_path("mapped by CUDA IPC");
	if (_i == 0)
		return;	/* fi_close() of the endpoint releases the mapping */
	port_remove_device();
	ck_assert_int_eq(fake.device.maps, 1);
	if (_i == 1) {
		other = host_region(host, sizeof(host), FI_READ, 5);
		ck_assert_int_eq(fake.device.maps, 0);
		ck_assert_int_eq(fi_close(&other->fid), 0);
	} else {
		port_region_close();
	}
	ck_assert_int_eq(fake.device.maps, 0);
}

/*
 * fi_close() of a region fails with -FI_EBUSY until a mapped (_i is 0) or
 * staged write from this region has ended. An older registration, for which the
 * core returned the same region, can be closed meanwhile.
 */
UNIT_LOOP(region_in_use_stays_open, 0, 2)
{
	struct fid_mr *first = mr;

	port_region_again();
	port_add_device(_i ? "other" : "fake");
	fake.device.polls = 8;
	start_write();
	ck_assert_int_eq(fi_close(&first->fid), 0);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EBUSY);
	ended(FI_RMA | FI_WRITE);
	port_region_close();
}

/*
 * The region's entry in the region table has an export if gpu_ipc permits this
 * (_i is 0).
 */
UNIT_LOOP(region_is_exported, 0, 2)
{
	const struct near_region_entry *entry;
	struct fid_mr *other;

	duo_params.gpu_ipc = _i != 1;
	other = device_region(FI_REMOTE_READ, 3, 0);
	entry = near_table_find(fixture_ep()->domain->table, fi_mr_key(other));
	ck_assert_ptr_nonnull(entry);
	ck_assert_uint_eq(entry->export_id, _i != 1);
	ck_assert_uint_eq(entry->device, (uintptr_t) other);
	/* fi_mr_enable() adds the region to the table again */
	ck_assert_int_eq(fi_mr_enable(other), 0);
	entry = near_table_find(fixture_ep()->domain->table, fi_mr_key(other));
	ck_assert_uint_eq(entry->export_id, _i != 1);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	duo_params.gpu_ipc = 1;
}

/*
 * duo_device_near.lend() returns key and address by which a target may copy the
 * region (lent operation). It returns false if the range exceeds the region, if
 * the access rights permit no local operation (_i is 3), or if gpu_ipc is 0. If
 * a region has no remote access (_i < 2), ofi_duo chooses the key.
 */
UNIT_LOOP(region_is_lent, 0, 4)
{
	static const uint64_t access[] = {
		FI_RECV, FI_READ, FI_WRITE | FI_REMOTE_READ, FI_REMOTE_WRITE,
	};
	const struct near_region_entry *entry;
	uint64_t key = 0, addr = 0;
	struct fid_mr *other = device_region(access[_i], 3, 0);

	ck_assert_uint_eq(duo_device_near.lend(other, fake.device.base + 8, 16,
					       &key, &addr), _i != 3);
	ck_assert_uint_eq(key == fi_mr_key(other), _i == 2);
	entry = near_table_find(fixture_ep()->domain->table, key);
	ck_assert_uint_eq(entry != NULL, _i != 3);
	if (entry) {
		ck_assert_uint_eq(addr, entry->start + 8);
		ck_assert_uint_eq(entry->access & NEAR_MAY_LEND, NEAR_MAY_LEND);
		ck_assert_uint_eq(entry->export_id, 1);
	}
	ck_assert(!duo_device_near.lend(other, fake.device.base + 8, LARGE - 7,
					&key, &addr));
	ck_assert_int_eq(fi_close(&other->fid), 0);
	duo_params.gpu_ipc = 0;
	other = device_region(access[_i], 3, 0);
	ck_assert(!duo_device_near.lend(other, fake.device.base, 16, &key,
					&addr));
	ck_assert_int_eq(fi_close(&other->fid), 0);
	duo_params.gpu_ipc = 1;
}

static char target[64 << 10];

/* Registers target[], memory of this process that peers' RMA may name. */
static struct fid_mr *host_open(void)
{
	port_add_messages("fake", NEAR_MAY_LEND);
	memset(target, 7, sizeof(target));
	return host_region(target, sizeof(target),
			   FI_REMOTE_READ | FI_REMOTE_WRITE, 5);
}

/* The peer starts RMA between its device memory and target[]. */
static void rma_of_peer(bool write, struct fid_mr *region)
{
	static void *const device[] = { target };
	const struct iovec iov = {
		(void *) (uintptr_t) DEVICE_AT, sizeof(target),
	};
	struct near_rma_args args = {
		.verb = write ? NEAR_WRITE : NEAR_READ, .len = sizeof(target),
		.key = fi_mr_key(region), .local = { &iov, 1, device },
		.addr = fixture_ep()->domain->virt_addrs ?
			(uintptr_t) target : 0,
	};

	ck_assert_int_eq(near_rma(rig.port, rig.us, &args), 0);
}

/*
 * Lent operation: the peer executes RMA between its device memory and host
 * memory of this process, and this process's device copies the bytes. If bit 0
 * of _i is set, the operation is a write. If bit 1 is set, the host memory is
 * not pinned, so this process's device does not copy.
 */
UNIT_LOOP(device_copies_for_peer, 0, 4)
{
	struct fid_mr *region = host_open();

	if (_i & 2)
		fake.device.host.iov_len = 0;
	rma_of_peer(_i & 1, region);
	until_idle();
	ck_assert_mem_eq(port_device((void *) (uintptr_t) DEVICE_AT), target,
			 sizeof(target));
	ck_assert_int_eq(target[0], _i & 1 ? 5 : 7);
	ck_assert_int_eq(fake.device.copies, !(_i & 2));
	ck_assert_uint_eq(near_rma_device_ops(rig.port, NEAR_DEVICE_LENT),
			  !(_i & 2));
	/*
	 * near reports the initiator's operations only; this process was the
	 * target
	 */
	device_path(NULL);
	ck_assert_int_eq(fi_close(&region->fid), 0);
}

/*
 * fi_close() of a host region waits for the device's copy of a lent operation,
 * because the application may free the memory afterwards. The operation then
 * ends without an error. If _i is 0, the operation is a read, otherwise a
 * write.
 */
UNIT_LOOP(close_of_host_region_waits_for_device, 0, 2)
{
	struct fid_mr *region = host_open();
	int i;

	fake.device.polls = 50;
	rma_of_peer(_i, region);
	for (i = 0; i < 10 && !fake.device.under_way; i++)
		poll_cq(1);
	ck_assert_int_eq(fake.device.under_way, 1);
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_int_eq(fake.device.under_way, 0);
	ck_assert_mem_eq(port_device((void *) (uintptr_t) DEVICE_AT), target,
			 sizeof(target));
	until_idle();
	ck_assert_uint_eq(near_rma_device_ops(rig.port, NEAR_DEVICE_LENT), 1);
}

/*
 * The peer's device memory is not mapped, because gpu_ipc is 0 (_i is 0), or
 * because mapping fails. The write is staged in host memory.
 */
UNIT_LOOP(peers_memory_is_not_mapped, 0, 2)
{
	port_add_device("other");
	duo_params.gpu_ipc = _i;
	write_device();
	ck_assert_int_eq(fake.device.map_calls, _i);
	device_path(_i ? "host memory: CUDA" : "host memory: GPU_IPC");
	ck_assert_uint_eq(stats_now().device_rma_ops, 1);
	ck_assert_uint_eq(stats_now().device_rma_mapped, 0);
	duo_params.gpu_ipc = 1;
}

/*
 * Host memory that is registered after device memory is pinned. The device then
 * copies between this host memory and the peer's device memory. If bit 0 of _i
 * is set, the host memory is too short to be pinned. If bit 1 is set, gpu_ipc
 * is 0, and ofi_duo does not pin the host memory either.
 */
UNIT_LOOP(registered_host_memory_is_copied_by_device, 0, 4)
{
	static char host[64 << 10];
	char *theirs_at = fake.device.shadow + LARGE / 2 + 108;
	size_t len = sizeof(host) - (_i & 1);
	struct fid_mr *region;

	port_add_device("fake");
	duo_params.gpu_ipc = !(_i & 2);
	memset(host, 7, sizeof(host));
	region = host_region(host, len, FI_WRITE, 5);
	ck_assert_int_eq(fake.device.pinned, !_i);
	ck_assert_int_eq(fi_write(fx.ep, host, 64, fi_mr_desc(region), peer,
				  START + 8, DEVICE_KEY, &context), 0);
	ended(FI_RMA | FI_WRITE);
	ck_assert_uint_eq(stats_now().device_rma_mapped, !_i);
	if (!_i)
		ck_assert_mem_eq(theirs_at, host, 64);
	device_path(_i ? "host memory: one end" : "mapped by CUDA IPC");
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_int_eq(fake.device.pinned, 0);
	duo_params.gpu_ipc = 1;
}

/* With FI_OFI_DUO_STATS, fi_close() prints how operations were copied. */
UNIT_TEST(statistics_have_each_way)
{
	int saved = dup(STDERR_FILENO), end[2];
	char text[4096] = "";

	port_add_device("fake");
	write_device();
	ck_assert_int_eq(pipe(end), 0);
	duo_params.stats = 1;
	dup2(end[1], STDERR_FILENO);
	fixture_close_ep();
	dup2(saved, STDERR_FILENO);
	duo_params.stats = 0;
	ck_assert_int_gt(read(end[0], text, sizeof(text) - 1), 0);
	ck_assert_ptr_nonnull(strstr(text, "ops=1 mapped by CUDA IPC\n"));
	close(end[0]);
	close(end[1]);
	close(saved);
}
