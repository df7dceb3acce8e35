/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Tests of queue/match.h: the predicates are tested with tables of cases, and
 * the queues are compared with a model.
 */

#include <inttypes.h>

#include "unit.h"

#define ANY FI_ADDR_UNSPEC
#define ALL (~0ULL)

static const struct {
	const char *name;
	struct duo_want want;
	fi_addr_t addr;
	uint64_t tag;
	bool takes;
} takes_cases[] = {
	{ "same address and tag", { 3, 7, 0 }, 3, 7, true },
	{ "other address", { 3, 7, 0 }, 4, 7, false },
	{ "other tag", { 3, 7, 0 }, 3, 6, false },
	{ "any source", { ANY, 7, 0 }, 4, 7, true },
	{ "any source, other tag", { ANY, 7, 0 }, 4, 8, false },
	{ "any source, unknown source", { ANY, 7, 0 }, ANY, 7, true },
	{ "directed, unknown source", { 3, 7, 0 }, ANY, 7, false },
	{ "address 0 is an address", { 0, 7, 0 }, 1, 7, false },
	{ "ignored bit differs", { 3, 7, 1 }, 3, 6, true },
	{ "ignored bit, another differs", { 3, 7, 1 }, 3, 5, false },
	{ "all bits ignored", { 3, 7, ALL }, 3, ~7ULL, true },
	{ "all bits ignored, other address", { 3, 0, ALL }, 2, 0, false },
	{ "top bit counts", { ANY, 1ULL << 63, 0 }, 0, 0, false },
	{ "top bit ignored", { ANY, 1ULL << 63, 1ULL << 63 }, 0, 0, true },
	{ "bit 32 counts", { ANY, 1ULL << 32, 0 }, 0, 0, false },
};

UNIT_CASE("predicates", NULL, NULL);

UNIT_ROUNDS(receive_matches_table, 0, ARRAY_SIZE(takes_cases))
{
	ck_assert_msg(duo_want_matches(&takes_cases[_i].want,
				       takes_cases[_i].addr,
				       takes_cases[_i].tag) ==
		      takes_cases[_i].takes, "%s", takes_cases[_i].name);
}

static const struct {
	const char *name;
	struct duo_want a, b;
	bool overlap;
} overlap_cases[] = {
	{ "equal", { 3, 7, 0 }, { 3, 7, 0 }, true },
	{ "other source", { 3, 7, 0 }, { 4, 7, 0 }, false },
	{ "any source and directed", { ANY, 7, 0 }, { 4, 7, 0 }, true },
	{ "any source twice", { ANY, 7, 0 }, { ANY, 7, 0 }, true },
	{ "other tag", { ANY, 7, 0 }, { ANY, 6, 0 }, false },
	{ "first ignores the bit", { ANY, 7, 1 }, { ANY, 6, 0 }, true },
	{ "second ignores the bit", { ANY, 7, 0 }, { ANY, 6, 1 }, true },
	{ "both ignore, bits apart", { ANY, 3, 1 }, { ANY, 0, 2 }, true },
	{ "one bit that neither ignores", { ANY, 7, 1 }, { ANY, 0, 2 }, false },
	{ "all ignored, sources apart", { 1, 7, ALL }, { 2, 7, ALL }, false },
};

UNIT_ROUNDS(overlap_matches_table, 0, ARRAY_SIZE(overlap_cases))
{
	const char *name = overlap_cases[_i].name;
	const struct duo_want *a = &overlap_cases[_i].a;
	const struct duo_want *b = &overlap_cases[_i].b;

	ck_assert_msg(duo_want_overlap(a, b) == overlap_cases[_i].overlap,
		      "%s", name);
	ck_assert_msg(duo_want_overlap(b, a) == overlap_cases[_i].overlap,
		      "%s, exchanged", name);
}

/*
 * With tags and masks of 3 bits, two receives overlap if, and only if, some
 * message matches both.
 */
UNIT_TEST(overlap_is_exact)
{
	unsigned code, tag;

	for (code = 0; code < 1 << 12; code++) {
		struct duo_want a = { ANY, code & 7, code >> 3 & 7 };
		struct duo_want b = { 1, code >> 6 & 7, code >> 9 & 7 };
		bool common = false;

		for (tag = 0; tag < 8; tag++)
			common |= duo_want_matches(&a, 1, tag) &&
				  duo_want_matches(&b, 1, tag);
		ck_assert_msg(duo_want_overlap(&a, &b) == common,
			      "tags %" PRIx64 "/%" PRIx64 " %" PRIx64 "/%"
			      PRIx64, a.tag, a.ignore, b.tag, b.ignore);
	}
}

static struct duo_match match;
static struct duo_rx_pool pool;
static struct duo_ranges ranges;

static void setup(void)
{
	duo_rx_pool_init(&pool, NULL);
	pool.known = &ranges;
	duo_match_init(&match, DUO_TAGGED);
}

static void teardown(void)
{
	duo_match_fini(&match);
	duo_rx_pool_fini(&pool);
	ck_assert_uint_eq(ranges.count, 0);
	duo_ranges_fini(&ranges);
}

static struct duo_rx *rx_make(fi_addr_t addr, uint64_t tag, uint64_t ignore)
{
	struct duo_rx *rx = duo_rx_alloc(&pool);

	ck_assert_ptr_nonnull(rx);
	rx->addr = addr;
	rx->tag = tag;
	rx->ignore = ignore;
	return rx;
}

static struct duo_rx *post(fi_addr_t addr, uint64_t tag, uint64_t ignore)
{
	struct duo_rx *rx = rx_make(addr, tag, ignore);

	duo_match_post(&match, rx);
	return rx;
}

UNIT_CASE("queues", setup, teardown);

/*
 * A sub-receive takes the place of another receive in the queue. If _i < 2,
 * that receive is matched, otherwise still posted. A lookup must find the
 * sub-receive at this place. If _i is even, the queue has no index, otherwise
 * it has one.
 */
UNIT_ROUNDS(replacement_is_found_in_place, 0, 4)
{
	int i, count = _i % 2 ? 3 * DUO_MATCH_LINEAR : 3;
	struct duo_rx *rx[3 * DUO_MATCH_LINEAR], *piece;

	post(2, 7, 0);	/* no search ends at the head of the queue */
	for (i = 0; i < count; i++)
		rx[i] = post(i % 3 ? 1 : ANY, 7, 0);
	ck_assert_ptr_eq(duo_match_posted(&match, 1, 7), rx[0]);
	ck_assert_int_eq(match.by_want.on, _i % 2);
	for (i = 0; i < count; i++) {
		piece = rx_make(rx[i]->addr, 7, 0);
		if (_i / 2) {
			duo_match_post_before(&match, rx[i], piece);
			duo_match_unpost(&match, rx[i]);
		} else {
			duo_match_unpost(&match, rx[i]);
			piece->seq = rx[i]->seq;
			duo_match_repost(&match, piece);
		}
		rx[i] = piece;
	}
	ck_assert_uint_eq(match.posted_count, 1 + count);
	for (i = 0; i < count; i++) {
		ck_assert_ptr_eq(duo_match_posted(&match, 1, 7), rx[i]);
		duo_match_unpost(&match, rx[i]);
	}
	ck_assert_ptr_null(duo_match_posted(&match, 1, 7));
}

UNIT_TEST(receive_is_found_by_context)
{
	struct duo_rx *first = post(1, 1, 0), *second = post(2, 2, 0);
	int a, b, c;

	first->context = &a;
	second->context = &b;
	ck_assert_ptr_eq(duo_match_context(&match, &b), second);
	ck_assert_ptr_eq(duo_match_context(&match, &a), first);
	ck_assert_ptr_null(duo_match_context(&match, &c));
}

#define MODEL_MAX 5000	/* number of steps of a run */

/* With few tags the queues are short; with many they need an index. */
static unsigned model_tags;

static uint64_t random_ignore(uint64_t *seed)
{
	switch (unit_random(seed) % 8) {
	case 0:
		return ALL;	/* too many bits for match.mask: wild */
	case 1:
		return unit_random(seed) % 8;
	case 2:
		return 1ULL << 60;
	default:
		return 0;
	}
}

struct model {
	struct duo_rx *rx[MODEL_MAX];
	size_t count;
};

static void model_drop(struct model *model, size_t i)
{
	model->count--;
	memmove(&model->rx[i], &model->rx[i + 1],
		(model->count - i) * sizeof(model->rx[0]));
}

/* True if a message matches; written independently of the predicates. */
static bool model_fits(fi_addr_t want_addr, uint64_t want_tag, uint64_t ignore,
		       fi_addr_t addr, uint64_t tag)
{
	int bit;

	for (bit = 0; bit < 64; bit++) {
		if (!(ignore >> bit & 1) &&
		    (want_tag >> bit & 1) != (tag >> bit & 1))
			return false;
	}
	return want_addr == ANY || want_addr == addr;
}

static void random_message(struct model *posted, struct model *unexp,
			   uint64_t *seed)
{
	struct duo_rx *rx = rx_make(unit_random(seed) % 3,
				    unit_random(seed) % model_tags, 0);
	struct duo_rx *found = duo_match_posted(&match, rx->addr,
						rx->tag);
	size_t i;

	for (i = 0; i < posted->count; i++) {
		if (model_fits(posted->rx[i]->addr,
			       posted->rx[i]->tag, posted->rx[i]->ignore,
			       rx->addr, rx->tag))
			break;
	}
	ck_assert_ptr_eq(found, i < posted->count ? posted->rx[i] : NULL);
	if (found) {
		duo_match_unpost(&match, found);
		model_drop(posted, i);
		duo_rx_release(&pool, found);
		rx->state = DUO_RX_LOCAL;
		duo_rx_release(&pool, rx);
		return;
	}
	rx->state = DUO_RX_ARRIVING;
	duo_match_queue(&match, rx);
	unexp->rx[unexp->count++] = rx;
}

static void random_receive(struct model *posted, struct model *unexp,
			   uint64_t *seed)
{
	struct duo_want want = {
		.addr = unit_random(seed) % 4,
		.tag = unit_random(seed) % model_tags,
		.ignore = random_ignore(seed),
	};
	struct duo_rx *found;
	size_t i;

	if (want.addr == 3)
		want.addr = ANY;
	found = duo_match_unexp(&match, &want);
	for (i = 0; i < unexp->count; i++) {
		if (model_fits(want.addr, want.tag, want.ignore,
			       unexp->rx[i]->addr,
			       unexp->rx[i]->tag))
			break;
	}
	ck_assert_ptr_eq(found, i < unexp->count ? unexp->rx[i] : NULL);
	if (found) {
		duo_match_unqueue(&match, found);
		model_drop(unexp, i);
		duo_rx_release(&pool, found);
		return;
	}
	posted->rx[posted->count++] = post(want.addr, want.tag, want.ignore);
}

UNIT_ROUNDS(random_against_model, 0, 20)
{
	struct model posted = { .count = 0 }, unexp = { .count = 0 };
	uint64_t seed = _i + 1;
	size_t longest = 0;
	int step;

	model_tags = _i % 2 ? 1000 : 8;
	for (step = 0; step < MODEL_MAX; step++) {
		/* alternates between many receives and many messages */
		bool receive = unit_random(&seed) % 10 <
			       (step / 600 % 2 ? 2 : 8);

		if ((receive && posted.count < MODEL_MAX) ||
		    unexp.count == MODEL_MAX)
			random_receive(&posted, &unexp, &seed);
		else
			random_message(&posted, &unexp, &seed);
		ck_assert_uint_eq(match.posted_count, posted.count);
		ck_assert_uint_eq(match.unexp_count, unexp.count);
		ck_assert_uint_eq(pool.live, posted.count + unexp.count);
		if (posted.count > longest)
			longest = posted.count;
	}
	if (_i % 2)
		ck_assert_uint_gt(longest, 4 * DUO_MATCH_LINEAR);
	ck_assert(!(_i % 2) || (match.by_want.on && match.by_tag.on));
}

/* Untagged receives ignore the tag; the index finds them by source. */
UNIT_TEST(index_finds_untagged_by_source)
{
	struct duo_rx *rx[100];
	int i;

	duo_match_init(&match, DUO_MSG);
	for (i = 0; i < 100; i++)
		rx[i] = post(i == 50 ? ANY : (fi_addr_t) i, 0, ALL);
	ck_assert(!match.by_want.on);
	ck_assert_ptr_eq(duo_match_posted(&match, 20, 0), rx[20]);
	ck_assert(match.by_want.on && TAILQ_EMPTY(&match.wild));
	ck_assert_ptr_eq(duo_match_posted(&match, 99, 0), rx[50]);
	duo_match_unpost(&match, rx[50]);
	ck_assert_ptr_eq(duo_match_posted(&match, 99, 0), rx[99]);
	ck_assert_ptr_null(duo_match_posted(&match, 100, 0));
}

UNIT_CASE("pool", setup, teardown);

UNIT_TEST(pool_recognizes_own_entries)
{
	struct duo_rx *rx = rx_make(0, 0, 0);
	int other;

	ck_assert(duo_ranges_have(&ranges, rx));
	ck_assert(duo_ranges_have(&ranges, rx + DUO_RX_FIRST - 1));
	ck_assert(!duo_ranges_have(&ranges, rx + DUO_RX_FIRST));
	ck_assert(!duo_ranges_have(&ranges, (char *) rx - 1));
	ck_assert(!duo_ranges_have(&ranges, &other));
	ck_assert(!duo_ranges_have(&ranges, NULL));
	ck_assert_ptr_eq(duo_rx_of_peer(&rx->peer), rx);
	ck_assert_ptr_eq(&rx->core_ctx, rx);
}

/* The pool grows by ranges. Entries of all ranges are recognized and reused. */
UNIT_TEST(grown_pool_reuses_entries)
{
	struct duo_rx *rx, *first = duo_rx_alloc(&pool);
	uint32_t i;

	/*
	 * The loop has no assertion: each assertion writes a message to the
	 * parent process, which would make this long loop slow.
	 */
	for (i = 1; i < 7 * DUO_RX_FIRST; i++) {
		rx = duo_rx_alloc(&pool);
		if (!rx || !duo_ranges_have(&ranges, rx))
			break;
	}
	ck_assert_uint_eq(i, 7 * DUO_RX_FIRST);
	ck_assert_uint_eq(pool.ranges, 3);
	ck_assert_uint_eq(ranges.count, 3);
	ck_assert_uint_eq(pool.capacity, 7 * DUO_RX_FIRST);
	ck_assert_uint_eq(pool.live, pool.capacity);
	first[77].state = DUO_RX_LOCAL;
	duo_rx_release(&pool, &first[77]);
	ck_assert_ptr_eq(duo_rx_alloc(&pool), &first[77]);
	ck_assert_uint_eq(pool.ranges, 3);
}

UNIT_TEST(extension_is_released_with_entry)
{
	struct duo_rx *rx = rx_make(0, 0, 0);

	rx->iov.iov_len = 3;
	rx->count = 1;
	ck_assert_ptr_eq(duo_rx_iov(rx), &rx->iov);
	ck_assert_uint_eq(duo_rx_size(rx), 3);
	duo_rx_extend(&pool, rx, DUO_IOV_LIMIT)->size = 9;
	ck_assert_uint_eq(pool.live, 2);
	ck_assert_ptr_eq(duo_rx_iov(rx), rx->more->buffers.iov);
	ck_assert_ptr_eq(duo_rx_desc(rx), rx->more->buffers.desc);
	ck_assert_uint_eq(duo_rx_size(rx), 9);
	duo_match_post(&match, rx);
	duo_match_unpost(&match, rx);
	duo_rx_release(&pool, rx);
	ck_assert_uint_eq(pool.live, 0);
}

UNIT_TEST(pool_without_memory_reuses_entries)
{
	struct duo_rx *first = duo_rx_alloc(&pool);
	uint32_t i;

	pool.ranges = DUO_RX_RANGES;
	for (i = 1; i < DUO_RX_FIRST; i++)
		ck_assert_ptr_nonnull(duo_rx_alloc(&pool));
	ck_assert_ptr_null(duo_rx_alloc(&pool));
	ck_assert(!duo_rx_pool_reserve(&pool, 1));
	first->state = DUO_RX_LOCAL;
	duo_rx_release(&pool, first);
	ck_assert(duo_rx_pool_reserve(&pool, 1));
	ck_assert(!duo_rx_pool_reserve(&pool, 2));
	ck_assert_ptr_eq(duo_rx_alloc(&pool), first);
	pool.ranges = 1;
}

/*
 * duo_rx_pool_reserve() adds a range. The pool must still use the unused
 * entries of the range before.
 */
UNIT_TEST(reservation_keeps_unused_entries)
{
	uint32_t i;

	ck_assert_ptr_nonnull(duo_rx_alloc(&pool));
	ck_assert(duo_rx_pool_reserve(&pool, DUO_RX_FIRST));
	ck_assert_uint_eq(pool.ranges, 2);
	pool.ranges = DUO_RX_RANGES;
	for (i = 1; i < 3 * DUO_RX_FIRST; i++)
		ck_assert_ptr_nonnull(duo_rx_alloc(&pool));
	ck_assert_ptr_null(duo_rx_alloc(&pool));
	pool.ranges = 2;
}

UNIT_TEST(ranges_are_exact)
{
	static const uintptr_t bases[] = { 900, 100, 500, 300, 700 };
	uintptr_t base;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(bases); i++)
		ck_assert(!duo_ranges_add(&ranges, (void *) bases[i], 100));
	for (i = 0; i <= ARRAY_SIZE(bases); i++) {
		for (base = 0; base < 1200; base++) {
			for (k = i; k < ARRAY_SIZE(bases); k++)
				if (base - bases[k] < 100)
					break;
			ck_assert_int_eq(duo_ranges_have(&ranges,
							 (void *) base),
					 k < ARRAY_SIZE(bases));
		}
		if (i < ARRAY_SIZE(bases))
			duo_ranges_remove(&ranges, (void *) bases[i]);
	}
}
