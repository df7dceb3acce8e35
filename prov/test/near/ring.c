/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Both ends of one ring, in one thread; places and size classes of rings in a
 * segment; copies of short and scattered data; pools of operations
 */

#include "unit.h"

static struct near_place place;
static struct near_tx tx;
static struct near_rx rx;
static void *memory;

static void setup_tier(uint32_t tier)
{
	ck_assert(near_place(NEAR_SENDERS, 0, tier, &place));
	memory = aligned_alloc(NEAR_PAGE, place.size);
	memset(memory, 0, place.size);
	near_tx_init(&tx, memory, &place);
	near_rx_init(&rx, memory, &place);
}

/* With pages of 4 KiB, all size classes exist. */
static void setup(void)
{
	near_page_assume(4096);
	setup_tier(0);
}

UNIT_SETUP(teardown, free(memory));

static bool put(uint64_t tag)
{
	struct near_slot *slot = near_tx_slot(&tx);

	if (!slot)
		return false;
	slot->tag = tag;
	near_tx_publish(&tx, slot, 0);
	return true;
}

static bool take(uint64_t tag)
{
	uint64_t word;
	struct near_slot *slot = near_rx_slot(&rx, &word);

	if (!slot)
		return false;
	ck_assert_uint_eq(slot->tag, tag);
	rx.dnext = rx.dhead;
	near_rx_release(&rx);
	return true;
}

UNIT_CASE("ring", setup, teardown);

UNIT_TEST(full_and_empty)
{
	uint32_t i;

	ck_assert(!take(0));
	for (i = 0; i < place.slots; i++)
		ck_assert(put(i));
	ck_assert(!put(i));
	for (i = 0; i < place.slots / 4; i++)
		ck_assert(take(i));
	ck_assert_msg(put(place.slots), "a quarter is published");
	for (; i <= place.slots; i++)
		ck_assert(take(i));
	ck_assert(!take(0));
}

/* More laps than a lap number can count; slots are never cleared. */
UNIT_TEST(laps_wrap_without_clearing)
{
	uint64_t sent = 0, taken = 0, wrong = 0, word;

	while (taken < 3ull * 65536 * place.slots / 2) {
		while (sent - taken < 5 && put(sent))
			sent++;
		while (near_rx_slot(&rx, &word)) {
			wrong += rx.slots[rx.head & rx.mask].tag != taken++;
			near_rx_release(&rx);
		}
		if (sent != taken || wrong)
			break;
	}
	ck_assert_uint_eq(sent, taken);
	ck_assert_uint_eq(wrong, 0);
}

UNIT_ROUNDS(permitted_data_fits_empty_ring, 0, NEAR_TIERS)
{
	uint32_t len, round;
	uint64_t end, word;
	struct near_slot *slot;
	uint8_t *data;
	const uint8_t *at;

	teardown();
	setup_tier((uint32_t)_i);
	for (round = 0; round < 20000; round++) {
		len = 1 + round * 7919 % tx.eager_max;
		slot = near_tx_slot(&tx);
		data = near_tx_data(&tx, len, &end);
		ck_assert_msg(data && slot, "round %u: %u bytes", round, len);
		ck_assert(data >= tx.data &&
			  data + len <= tx.data + place.data);
		memset(data, (int)round, len);
		tx.dtail = end;
		slot->eager.len = len;
		near_tx_publish(&tx, slot, 0);
		slot = near_rx_slot(&rx, &word);
		ck_assert_ptr_nonnull(slot);
		at = near_rx_data(&rx, slot->eager.len);
		ck_assert_ptr_eq(at, data);
		ck_assert_uint_eq(at[len - 1], (uint8_t)round);
		near_rx_release(&rx);
	}
}

/*
 * The ring is resized from each size class (_i / NEAR_TIERS) to each size class
 * (_i % NEAR_TIERS).
 */
UNIT_ROUNDS(ring_restarts_in_each_size, 0, NEAR_TIERS * NEAR_TIERS)
{
	uint32_t i, from = (uint32_t)_i / NEAR_TIERS;
	struct near_slot *slot;
	uint64_t word;

	teardown();
	near_place(NEAR_SENDERS, 0, NEAR_TIERS - 1, &place);
	memory = aligned_alloc(NEAR_PAGE, place.size);
	memset(memory, 0, sizeof(struct near_ctl));
	/* fill the memory with words that have the number of the first lap */
	for (i = sizeof(struct near_ctl); i < place.size; i++)
		((uint8_t *)memory)[i] = !(i % 8);
	near_place(NEAR_SENDERS, 0, from, &place);
	near_tx_init(&tx, memory, &place);
	near_rx_init(&rx, memory, &place);
	tx.fence = NEAR_FENCE_ALWAYS;
	memset(tx.slots, 0, place.slots * sizeof(*tx.slots));
	for (i = 0; i < place.slots + 3; i++)
		ck_assert(put(i) && (i == place.slots + 2 || take(i)));
	slot = near_rx_slot(&rx, &word);
	ck_assert_uint_eq(slot->tag, place.slots + 2);

	near_place(NEAR_SENDERS, 0, (uint32_t)_i % NEAR_TIERS, &place);
	near_rx_restart(&rx, &place);
	rx.dnext = rx.dhead;
	near_rx_release(&rx);
	ck_assert(!take(0));
	near_tx_restart(&tx, &place);
	ck_assert_uint_eq(tx.fence, NEAR_FENCE_ALWAYS);
	for (i = 0; i < place.slots; i++)
		ck_assert(put(i));
	ck_assert(!put(i));
	for (i = 0; i < place.slots; i++)
		ck_assert(take(i));
	ck_assert(!take(0));
	ck_assert(put(0) && take(0));
}

UNIT_TEST(sender_without_ring_has_no_slot)
{
	near_tx_none(&tx);
	ck_assert_ptr_null(near_tx_slot(&tx));
	ck_assert_ptr_null(near_tx_slot_past(&tx));
	ck_assert(!near_tx_reload(&tx));
}

UNIT_TEST(invalid_values_are_rejected)
{
	static const uint64_t heads[] = { 1, 1000, 1ull << 63, 1ull << 40 };
	uint64_t end;
	size_t i;

	ck_assert_ptr_null(near_rx_data(&rx, place.data));
	ck_assert_ptr_null(near_rx_data(&rx, UINT32_MAX));
	ck_assert_ptr_null(near_rx_data(&rx, SIZE_MAX));
	for (i = 0; i < ARRAY_SIZE(heads); i++) {
		tx.tail = 0;
		tx.head = 0 - (uint64_t)place.slots;
		tx.ctl->head = heads[i];
		ck_assert_ptr_null(near_tx_slot(&tx));
		tx.dtail = 0;
		tx.dhead = 0 - (uint64_t)place.data;
		tx.ctl->dhead = heads[i] + 64;
		ck_assert_ptr_null(near_tx_data(&tx, 64, &end));
	}
}

/* Page sizes of kernels, bytes */
static const size_t pages[] = { 4096, 16384, 65536 };

UNIT_CASE("rest", NULL, NULL);

/* _i / 4 is the index of pages[], and _i % 4 is the index of growing[]. */
UNIT_ROUNDS(rings_are_adjacent, 0, 12)
{
	static const uint32_t growing[] = { 0, 1, 252, NEAR_SENDERS };
	size_t end, page;
	struct near_place at;
	uint32_t i, tier;

	near_page_assume(page = pages[_i / 4]);
	end = (sizeof(struct near_segment) + page - 1) / page * page;
	for (i = 0; i < NEAR_SENDERS; i++) {
		for (tier = 0; tier < near_tier_least(); tier++)
			ck_assert(!near_place(growing[_i % 4], i, tier, &at));
		for (; tier <= near_tier_most(growing[_i % 4], i); tier++) {
			ck_assert(near_place(growing[_i % 4], i, tier, &at));
			ck_assert_uint_eq(at.offset, end);
			ck_assert_uint_eq(at.offset % page, 0);
			ck_assert_uint_eq(at.size, near_tier_pages(tier) *
					  page);
			ck_assert_uint_le(at.size, at.span);
			ck_assert_uint_eq(at.size, sizeof(struct near_ctl) +
					  at.slots * sizeof(struct near_slot) +
					  at.data);
			ck_assert_uint_eq(at.slots & (at.slots - 1), 0);
			ck_assert_uint_eq(at.data % NEAR_LINE, 0);
		}
		ck_assert_uint_eq(at.size, at.span);
		ck_assert(!near_place(growing[_i % 4], i, tier, &at));
		ck_assert(!near_place(growing[_i % 4], i, UINT32_MAX, &at));
		end += at.span;
	}
	ck_assert_uint_eq(end, near_segment_size(growing[_i % 4]));
}

/*
 * The data ring of each size class has space for a message of eager[] bytes. _i
 * is the index of pages[].
 */
UNIT_ROUNDS(size_classes_have_limits, 0, 3)
{
	static const uint32_t eager[NEAR_TIERS] = {
		1024, 2048, 4096, 8192, 16384, 16384, 16384, 16384,
	};
	struct near_place at;
	uint32_t tier, least;

	near_page_assume(pages[_i]);
	least = near_tier_least();
	ck_assert_uint_eq(near_tier_pages(least), 1);
	for (tier = least; tier < NEAR_TIERS; tier++) {
		near_place(NEAR_SENDERS, 0, tier, &at);
		ck_assert_uint_ge(near_data_max(at.data), eager[tier]);
		ck_assert_uint_eq(near_tier_fit(near_tier_pages(tier)), tier);
		if (tier > least)
			ck_assert_uint_eq(near_tier_fit(near_tier_pages(tier) -
							1), tier - 1);
	}
	ck_assert_uint_eq(near_tier_fit(0), least);
	ck_assert_uint_eq(near_tier_fit(SIZE_MAX), NEAR_TIERS - 1);
}

/*
 * 64 or 192 ports that all send to each other; each port also has a page with
 * its registry record
 */
UNIT_TEST(memory_of_ports_is_limited)
{
	near_page_assume(4096);
	ck_assert_uint_le(64 * (near_memory(NEAR_MEMORY, 63) + NEAR_PAGE),
			  64 << 20);
	ck_assert_uint_le(192 * (near_memory(NEAR_MEMORY, 191) + NEAR_PAGE),
			  600 << 20);
	ck_assert_uint_le(near_memory(NEAR_MEMORY, 1), 352 << 10);
	ck_assert_uint_eq(near_memory(0, 0), 2 * NEAR_PAGE);
	ck_assert_uint_eq(near_memory(0, 100), (3 + 100) * NEAR_PAGE);
	ck_assert_uint_eq(near_memory(SIZE_MAX, 100),
			  (3 + 100 * 84) * NEAR_PAGE);
	/* the same 64 ports on kernels with larger pages */
	near_page_assume(16384);
	ck_assert_uint_le(64 * near_memory(NEAR_MEMORY, 63), 66 << 20);
	near_page_assume(65536);
	ck_assert_uint_le(64 * near_memory(NEAR_MEMORY, 63), 260 << 20);
}

UNIT_TEST(small_copies)
{
	uint8_t from[64], to[64];
	size_t len, i;

	rig_fill(from, sizeof(from), 1);
	for (len = 0; len <= NEAR_INLINE; len++) {
		memset(to, 0xaa, sizeof(to));
		near_copy_small(to, from, len);
		ck_assert_mem_eq(to, from, len);
		for (i = len; i < sizeof(to); i++)
			ck_assert_uint_eq(to[i], 0xaa);
	}
}

UNIT_TEST(vectors)
{
	uint8_t a[5], b[9], flat[14], back[14];
	struct iovec iov[] = { { a, 5 }, { NULL, 0 }, { b, 9 } };
	size_t from, len;

	rig_fill(flat, sizeof(flat), 2);
	ck_assert_uint_eq(near_iov_len(iov, 3), 14);
	for (from = 0; from < 14; from++) {
		for (len = 0; from + len <= 14; len++) {
			memset(a, 0, sizeof(a));
			memset(b, 0, sizeof(b));
			near_iov_in(iov, from, flat + from, len);
			memset(back, 0, sizeof(back));
			near_iov_out(back, iov, from, len);
			ck_assert_mem_eq(back, flat + from, len);
		}
	}
}

static void *get(struct near_pool *pool)
{
	void *object = near_pool_get(pool);

	ck_assert_ptr_nonnull(object);
	return object;
}

UNIT_TEST(pool_ids)
{
	struct near_pool pool;
	void *first, *second;
	uint64_t id;
	uint32_t at = 0;

	near_pool_init(&pool, sizeof(struct near_pooled) + 1,
		       2 * NEAR_POOL_CHUNK);
	ck_assert_ptr_null(near_pool_find(&pool, 0));
	first = get(&pool);
	id = near_pool_id(first);
	ck_assert_ptr_eq(near_pool_find(&pool, id), first);
	near_pool_put(&pool, first);
	ck_assert_ptr_null(near_pool_find(&pool, id));
	second = get(&pool);
	ck_assert_ptr_eq(second, first);
	ck_assert_ptr_null(near_pool_find(&pool, id));
	ck_assert_ptr_null(near_pool_find(&pool, id + (1ull << 32)));
	ck_assert_ptr_null(near_pool_find(&pool, UINT64_MAX));
	ck_assert_ptr_eq(near_pool_next(&pool, &at), second);
	ck_assert_ptr_null(near_pool_next(&pool, &at));
	near_pool_fini(&pool);
}

UNIT_TEST(pool_limit)
{
	struct near_pool pool;
	void *object[2 * NEAR_POOL_CHUNK];
	int i;

	near_pool_init(&pool, 100, 2 * NEAR_POOL_CHUNK);
	for (i = 0; i < 2 * NEAR_POOL_CHUNK; i++)
		object[i] = get(&pool);
	ck_assert_ptr_null(near_pool_get(&pool));
	for (i = 0; i < 2 * NEAR_POOL_CHUNK; i++)
		ck_assert_ptr_eq(near_pool_find(&pool,
				 near_pool_id(object[i])), object[i]);
	near_pool_put(&pool, object[7]);
	ck_assert_ptr_eq(get(&pool), object[7]);
	near_pool_fini(&pool);
}
