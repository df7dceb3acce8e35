/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A fake device. Both processes map its memory at the same address. */

#include <errno.h>

#include "talk.h"

#define TALK_POLLS 3	/* polls of a copy before the poll that ends it */

static const struct talk *talk_now;	/* struct talk of this process */
void *const talk_device_handle = &talk_now;

struct talk_copy {
	void *to;
	const void *from;
	size_t len;
	int polls;
};

static int talk_copy_start(void *device, void *to, const void *from, size_t len,
			   void **copy_out)
{
	struct talk_copy *copy = malloc(sizeof(*copy));

	*copy = (struct talk_copy) { to, from, len, TALK_POLLS };
	*copy_out = copy;
	return 0;
}

static int talk_copy_done(void *opaque)
{
	struct talk_copy *copy = opaque;

	if (copy->polls-- > 0)
		return -EAGAIN;
	memcpy(copy->to, copy->from, copy->len);
	free(copy);
	return 0;
}

static void *talk_pin(void *device, void *memory, size_t len)
{
	return NULL;
}

static const void *talk_queue(void *device)
{
	return device;
}

static void *talk_pinned(void *ctx, const void *memory, size_t len)
{
	return talk_now->plan->device == NEAR_DEVICE_LENT ?
	       talk_device_handle : NULL;
}

static int talk_map(void *device, const struct near_export *export, int fd,
		    struct near_map *map)
{
	*map = (struct near_map) { talk_device_handle,
				   (uint8_t *)(uintptr_t)export->base,
				   sizeof(talk_now->common->device) };
	return 0;
}

static bool talk_lend(void *device, const void *memory, size_t len,
		      uint64_t *key, uint64_t *addr)
{
	*key = TALK_LENT_KEY;
	*addr = TALK_BASE + (uintptr_t)memory -
		(uintptr_t)talk_now->common->device;
	return true;
}

const struct near_device talk_near_device = {
	.start = talk_copy_start, .done = talk_copy_done, .pin = talk_pin,
	.queue = talk_queue, .host = talk_pinned, .map = talk_map,
	.lend = talk_lend,
};

void talk_device_open(const struct talk *talk)
{
	talk_now = talk;
}

void talk_device_region(struct talk *talk, uint64_t key, void *memory,
			size_t len, uint32_t access)
{
	const struct near_region_entry entry = {
		.key = key, .start = TALK_BASE, .memory = (uintptr_t)memory,
		.len = len, .access = access,
		.device = (uintptr_t)talk_device_handle,
	};
	const struct near_export export = {
		.id = 1, .base = (uintptr_t)memory,
	};

	ck_assert_int_eq(near_table_add(talk->table, &entry), 0);
	ck_assert_int_eq(near_table_export(talk->table, key, &export), 0);
}
