/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory for the fakes: pages that cannot be accessed. Copies use a
 * second mapping of the same pages.
 */

#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/lock.h"
#include "device/device.h"
#include "device/stream.h"
#include "fake.h"

static const struct duo_device_iface *const *fake_device_saved;

/* Returns the address in the second mapping; NULL: not device memory. */
static char *fake_device_shadow(const void *addr)
{
	uintptr_t at = (uintptr_t) addr - (uintptr_t) fake.device.base;

	return at < fake.device.len ? fake.device.shadow + at : NULL;
}

/* True if the calling function, a start or a poll of a copy, must fail. */
static bool fake_device_fails(void)
{
	return fake.device.fails ||
	       (fake.device.fail_at && !--fake.device.fail_at);
}

/* A copy; the poll that reports its end copies the bytes. */
struct fake_copy {
	struct duo_stream_copy base;
	char *to;
	const char *from;
	size_t len;
	int polls;
};

static int fake_stream_open(struct duo_stream *stream)
{
	fake.device.open++;
	return 0;
}

static void fake_stream_close(struct duo_stream *stream)
{
	fake.device.open--;
}

static int fake_copy_open(struct duo_stream_copy *copy)
{
	return 0;
}

static void fake_copy_close(struct duo_stream_copy *copy)
{
}

static int fake_copy_start(struct duo_stream_copy *base, void *to,
			   const void *from, size_t len)
{
	char *in = fake_device_shadow(to), *out = fake_device_shadow(from);
	struct fake_copy *copy = (struct fake_copy *) base;

	ck_assert_msg(!in != !out || (in && fake.device.maps),
		      "a copy has one side on the device");
	ck_assert_uint_gt(len, 0);
	if (fake_device_fails())
		return -FI_EIO;
	copy->to = in ? in : to;
	copy->from = out ? out : from;
	copy->len = len;
	copy->polls = fake.device.polls;
	fake.device.copies++;
	fake.device.under_way++;
	return 0;
}

static int fake_copy_done(struct duo_stream_copy *base)
{
	struct fake_copy *copy = (struct fake_copy *) base;
	bool fails;

	if (copy->polls-- > 0)
		return -FI_EAGAIN;
	fails = fake_device_fails();
	if (!fails)
		memcpy(copy->to, copy->from, copy->len);
	fake.device.under_way--;
	return fails ? -FI_EIO : 0;
}

static void fake_copy_wait(struct duo_stream_copy *base)
{
	((struct fake_copy *) base)->polls = 0;
}

static const struct duo_stream_driver fake_driver = {
	.size = sizeof(struct duo_stream),
	.copy_size = sizeof(struct fake_copy),
	.open = fake_stream_open,
	.close = fake_stream_close,
	.copy_open = fake_copy_open,
	.copy_close = fake_copy_close,
	.start = fake_copy_start,
	.done = fake_copy_done,
	.wait = fake_copy_wait,
};

static int fake_device_prepare(const struct fi_mr_attr *attr, const void *addr,
			       struct duo_stream **stream)
{
	ck_assert_ptr_eq(addr, fake.device.base);
	return fake.device.fails ? -FI_ENODEV :
	       duo_stream_open(&fake_driver, 0, NULL, stream);
}

static struct duo_device_handle *
fake_device_handle(void (*release)(struct duo_device_handle *handle))
{
	struct duo_device_handle *handle = malloc(sizeof(*handle));

	ck_assert_ptr_nonnull(handle);
	handle->release = release;
	return handle;
}

static void fake_device_unpin(struct duo_device_handle *pin)
{
	fake.device.pinned--;
	free(pin);
}

static struct duo_device_handle *fake_device_pin(struct duo_stream *stream,
						 void *memory, size_t len)
{
	if (!fake.device.open)
		return NULL;
	if (!stream)
		fake.device.host = (struct iovec) { memory, len };
	fake.device.pinned++;
	return fake_device_handle(fake_device_unpin);
}

static bool fake_device_pinned(const struct duo_stream *stream,
			       const void *memory, size_t len)
{
	const struct iovec *host = &fake.device.host;
	size_t at = (uintptr_t) memory - (uintptr_t) host->iov_base;

	ck_assert_ptr_eq(stream->driver, &fake_driver);
	return host->iov_base && at < host->iov_len &&
	       len <= host->iov_len - at;
}

static int fake_device_export(const struct duo_stream *stream, const void *addr,
			      size_t len, struct near_export *export)
{
	ck_assert_ptr_eq(stream->driver, &fake_driver);
	if (fake.device.fails)
		return -FI_EIO;
	*export = (struct near_export) {
		.handle = "fake", .id = 1, .base = (uintptr_t) addr,
	};
	return 0;
}

static void fake_device_unmap(struct duo_device_handle *mapping)
{
	if (fake.lock && fake.lock->on) {
		ck_assert_msg(duo_lock_try(fake.lock),
			      "unmap() is called with the lock held");
		duo_lock_release(fake.lock);
	}
	fake.device.maps--;
	free(mapping);
}

static int fake_device_map(struct duo_stream *stream,
			   const struct near_export *export, int fd,
			   struct near_map *map)
{
	ck_assert_ptr_eq(stream->driver, &fake_driver);
	fake.device.map_calls++;
	if (strcmp((const char *) export->handle, "fake"))
		return -FI_EIO;
	*map = (struct near_map) {
		.mapping = fake_device_handle(fake_device_unmap),
		.at = (uint8_t *) fake.device.base + fake.device.len / 2,
		.len = fake.device.len / 2,
	};
	fake.device.maps++;
	return 0;
}

static const struct duo_device_iface fake_device_cuda = {
	.id = FI_HMEM_CUDA,
	.open = fake_device_prepare,
	.pin = fake_device_pin,
	.pinned = fake_device_pinned,
	.export = fake_device_export,
	.map = fake_device_map,
};

static const struct duo_device_iface *const fake_device_ifaces[] = {
	&fake_device_cuda, NULL,
};

void fake_device_open(size_t len)
{
	int fd = memfd_create("fake device", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, len), 0);
	fake.device.base = mmap(NULL, len, PROT_NONE, MAP_SHARED, fd, 0);
	fake.device.shadow = mmap(NULL, len, PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);
	fake.device.len = len;
	ck_assert_ptr_ne(fake.device.base, MAP_FAILED);
	ck_assert_ptr_ne(fake.device.shadow, MAP_FAILED);
	close(fd);
	fake_device_saved = duo_device_ifaces;
	duo_device_ifaces = fake_device_ifaces;
}

void fake_device_close(void)
{
	ck_assert_int_eq(fake.device.open, 0);
	ck_assert_int_eq(fake.device.under_way, 0);
	ck_assert_int_eq(fake.device.pinned, 0);
	ck_assert_int_eq(fake.device.maps, 0);
	duo_device_ifaces = fake_device_saved;
	munmap(fake.device.base, fake.device.len);
	munmap(fake.device.shadow, fake.device.len);
	memset(&fake.device, 0, sizeof(fake.device));
}

char *fake_reach(enum fi_duo_path path, void *buf, void *desc)
{
	char *shadow = fake_device_shadow(buf);
	const struct fake_obj *mr = desc;

	if (!shadow) {
		ck_assert_msg(path == FI_DUO_CORE || !desc,
			      "a descriptor was passed to shm");
		return buf;
	}
	ck_assert_msg(desc, "path %d: device memory without descriptor", path);
	ck_assert_uint_eq(mr->mr.fid.fclass, FI_CLASS_MR);
	ck_assert_msg(!mr->closed && mr->path == path,
		      "path %d has got a descriptor of path %d", path,
		      mr->path);
	ck_assert_int_eq(mr->iface, FI_HMEM_CUDA);
	return shadow;
}
