/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_side.h"

struct gpu gpu;
void *const on_gpu[] = { &gpu, NULL, &gpu };
static const uint8_t handle[NEAR_EXPORT_HANDLE] = "handle";

struct copy {
	uint8_t *to;
	const uint8_t *from;
	size_t len;
	int polls;
};

/* Returns the accessible address of device memory; NULL: host memory. */
static uint8_t *reach(const void *at)
{
	size_t offset = (size_t)((const uint8_t *)at - gpu.base);
	size_t mapped = (size_t)((const uint8_t *)at - gpu.mapped);

	if (mapped < 2 * GPU_LEN)
		return gpu.shadow + mapped;
	return offset < 2 * GPU_LEN ? gpu.shadow + offset : NULL;
}

static bool is_mapped(const void *at)
{
	return (size_t)((const uint8_t *)at - gpu.mapped) < 2 * GPU_LEN;
}

static bool fails(void)
{
	return ++gpu.calls == gpu.fail_at;
}

static int gpu_start(void *device, void *to, const void *from, size_t len,
		     void **copy_out)
{
	uint8_t *in = reach(to), *out = reach(from);
	struct copy *copy = malloc(sizeof(*copy));

	ck_assert(device == &gpu || device == &gpu.second);
	if (is_mapped(to) || is_mapped(from))
		ck_assert(((in && out) || gpu.host) &&
			  is_mapped(to) != is_mapped(from));
	else
		ck_assert_int_ne(!in, !out);
	ck_assert_uint_gt(len, 0);
	if (fails()) {
		free(copy);
		return -EIO;
	}
	*copy = (struct copy) { in ? in : to, out ? out : from, len,
				gpu.polls };
	if (gpu.unordered && gpu.under_way) {
		memcpy(copy->to, copy->from, len);
		copy->len = 0;
	}
	gpu.under_way++;
	*copy_out = copy;
	return 0;
}

static int gpu_done(void *opaque)
{
	struct copy *copy = opaque;
	bool lost;

	if (copy->polls-- > 0 ||
	    (gpu.until_failure && !to_b->draining &&
	     to_b->state != NEAR_PEER_GONE)) {
		if (gpu.on_pending)
			gpu.on_pending();
		return -EAGAIN;
	}
	lost = fails();
	if (!lost)
		memcpy(copy->to, copy->from, copy->len);
	gpu.under_way--;
	free(copy);
	return lost ? -EIO : 0;
}

static void *gpu_pin(void *device, void *memory_, size_t len)
{
	ck_assert_uint_eq(len, NEAR_STAGE);
	gpu.pinned++;
	return &gpu;
}

static void gpu_unpin(void *pin)
{
	gpu.pinned--;
}

static void *gpu_host(void *ctx, const void *memory_, size_t len)
{
	const uint8_t *at = memory_;

	ck_assert(ctx == a.rig || ctx == b.rig);
	ck_assert((size_t)(at - local) + len <= SIDE_LARGE ||
		  (size_t)(at - memory) + len <= SIDE_LARGE);
	return gpu.host;
}

/* near_device.lend() for a's buffer. */
static bool gpu_lend(void *device, const void *memory_, size_t len,
		     uint64_t *key, uint64_t *addr)
{
	*key = LENT_KEY;
	*addr = SIDE_START + ((uintptr_t)memory_ - (uintptr_t)gpu.base) -
		GPU_LEN;
	return gpu.lends;
}

static const void *gpu_queue(void *device)
{
	return gpu.unordered ? NULL : device;
}

/* True if fd is a descriptor of the device's memory. */
static bool is_shared(int fd)
{
	struct stat ours, theirs;

	ck_assert_int_eq(fstat(gpu.fd, &ours), 0);
	return !fstat(fd, &theirs) && ours.st_ino == theirs.st_ino;
}

static int gpu_share(void *device)
{
	ck_assert_ptr_eq(device, &gpu);
	gpu.share_calls++;
	return gpu.share_fails ? -EIO : fcntl(gpu.fd, F_DUPFD_CLOEXEC, 0);
}

static int gpu_map(void *device, const struct near_export *export, int fd,
		   struct near_map *map)
{
	ck_assert(device == &gpu || device == &gpu.second);
	gpu.map_calls++;
	if (export->needs_fd)
		ck_assert(is_shared(fd));
	else
		ck_assert_int_eq(fd, -1);
	if (gpu.map_err)
		return gpu.map_err;
	if (memcmp(export->handle, handle, sizeof(handle)))
		return -EIO;
	*map = (struct near_map) { &gpu.maps, gpu.mapped, gpu.map_len };
	gpu.maps++;
	return 0;
}

static void *gpu_memory(int fd, int prot)
{
	void *at = mmap(NULL, 2 * GPU_LEN, prot, MAP_SHARED, fd, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

static void gpu_open(void)
{
	int fd = memfd_create("gpu", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, 2 * GPU_LEN), 0);
	gpu = (struct gpu) {
		.base = gpu_memory(fd, PROT_NONE),
		.mapped = gpu_memory(fd, PROT_NONE),
		.shadow = gpu_memory(fd, PROT_READ | PROT_WRITE),
		.polls = 2,
		.map_len = GPU_LEN,
		.fd = fd,
	};
	side_unmapped = 0;
	side_device = (struct near_device) {
		.start = gpu_start, .done = gpu_done, .pin = gpu_pin,
		.unpin = gpu_unpin, .queue = gpu_queue, .map = gpu_map,
		.share = gpu_share, .host = gpu_host, .lend = gpu_lend,
	};
}

void gpu_region_add(uint64_t key, uint32_t access)
{
	const struct near_region_entry entry = {
		.key = key, .start = SIDE_START,
		.memory = (uintptr_t)gpu.base, .len = GPU_LEN,
		.access = access, .device = (uintptr_t)&gpu,
	};

	ck_assert_int_eq(near_table_add(b.table, &entry), 0);
}

void gpu_region(void)
{
	gpu_region_add(GPU_KEY, (NEAR_MAY_READ | NEAR_MAY_WRITE) <<
				NEAR_MAY_DEVICE);
	rig_fill(gpu.shadow, 2 * GPU_LEN, 3);
	rig_fill(local, SIDE_LARGE, 9);
}

static void gpu_export_as(struct near_table *table, uint64_t key, uint64_t id,
			  bool needs_fd)
{
	struct near_export export = {
		.id = id, .base = (uintptr_t)gpu.base, .needs_fd = needs_fd,
	};

	memcpy(export.handle, handle, sizeof(handle));
	ck_assert_int_eq(near_table_export(table, key, &export), 0);
}

void gpu_export(uint64_t id)
{
	gpu_export_as(b.table, GPU_KEY, id, false);
}

void gpu_export_fd(uint64_t id)
{
	gpu_export_as(b.table, GPU_KEY, id, true);
}

void gpu_region_again(uint64_t id)
{
	near_table_remove(b.table, GPU_KEY);
	gpu_region();
	if (id)
		gpu_export(id);
}

void gpu_unmap(void)
{
	ck_assert_ptr_eq(near_table_unmapped(a.table), &gpu.maps);
	gpu.maps--;
}

void gpu_lend_region(uint32_t access, bool needs_fd)
{
	const struct near_region_entry entry = {
		.key = LENT_KEY, .start = SIDE_START,
		.memory = (uintptr_t)gpu.base + GPU_LEN, .len = GPU_LEN,
		.access = access, .device = (uintptr_t)&gpu,
	};

	near_table_remove(a.table, LENT_KEY);
	ck_assert_int_eq(near_table_add(a.table, &entry), 0);
	gpu_export_as(a.table, LENT_KEY, GPU_ID, needs_fd);
	gpu.lends = true;
	gpu.host = &gpu;
	gpu.map_len = 2 * GPU_LEN;
}

void gpu_setup_direct(void)
{
	gpu_open();
	side_setup_direct();
	gpu_region();
}

void gpu_setup_asked(void)
{
	gpu_open();
	side_setup_asked();
	gpu_region();
}

void gpu_setup_mapped(void)
{
	gpu_setup_direct();
	gpu_export(GPU_ID);
}

void gpu_setup_mapped_asked(void)
{
	gpu_setup_asked();
	gpu_export(GPU_ID);
}

void gpu_teardown(void)
{
	side_teardown();
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert_int_eq(gpu.pinned, 0);
	ck_assert_int_eq(gpu.maps, side_unmapped);
	close(gpu.fd);
	munmap(gpu.base, 2 * GPU_LEN);
	munmap(gpu.mapped, 2 * GPU_LEN);
	munmap(gpu.shadow, 2 * GPU_LEN);
}

int gpu_rma(enum near_verb verb, int where, size_t offset, size_t len,
	    uint32_t flags)
{
	const struct iovec iov = {
		where & AT_A ? gpu.base + GPU_LEN + offset : local + offset,
		len,
	};

	return side_rma(.verb = verb, .flags = flags, .addr = offset,
			.key = where & AT_B ? GPU_KEY : SIDE_KEY,
			.local = { &iov, 1, where & AT_A ? on_gpu : NULL });
}

void gpu_run(enum near_verb verb, int where, size_t len, uint32_t done,
	     bool both)
{
	ck_assert_int_eq(gpu_rma(verb, where, 0, len, 0), 0);
	side_until(done, both);
}

void gpu_paths(uint64_t all, uint64_t mapped)
{
	uint64_t sum = 0;
	int path;

	for (path = 0; path < NEAR_DEVICE_PEERS; path++)
		sum += near_rma_device_ops(a.rig->port, path);
	ck_assert_uint_eq(sum, all);
	ck_assert_uint_eq(gpu_mapped_ops(), mapped);
}

uint64_t gpu_mapped_ops(void)
{
	return near_rma_device_ops(a.rig->port, NEAR_DEVICE_MAPPED) +
	       near_rma_device_ops(a.rig->port, NEAR_DEVICE_SHARED);
}

void gpu_last_path(enum near_device_path path)
{
	ck_assert_int_eq(near_rma_device_path(to_b), path);
}

void gpu_event_follows(void)
{
	int i, ret;

	gpu.polls = 50;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, GPU_LEN, NEAR_RMA_DATA),
			 0);
	while ((ret = rig_send(a.rig, to_b, 1, local, 8)) == -EAGAIN) {
		side_poll(1);
		if (b.events)
			ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN,
					 GPU_LEN);
	}
	ck_assert_int_eq(ret, 0);
	for (i = 0; i < 1000 && !b.rig->count; i++)
		side_poll(1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_uint_eq(b.rig->count, 1);
	ck_assert_uint_eq(b.events, 1);
	ck_assert_uint_eq(b.events_at, 0);
	ck_assert(b.event.has_data && b.event.write);
	ck_assert_uint_eq(b.event.data, SIDE_DATA);
	ck_assert_uint_eq(b.event.len, GPU_LEN);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
}

const uint8_t *gpu_at_a(int where)
{
	return where & AT_A ? gpu.shadow + GPU_LEN : local;
}

const uint8_t *gpu_at_b(int where)
{
	return where & AT_B ? gpu.shadow : memory;
}
