/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The region table, its copy that peers map, and the arithmetic of atomics */

#include <complex.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "near/rma/ops.h"
#include "unit.h"

static struct near_table *table;
static struct near_table_view *view;

static void setup(void)
{
	ck_assert_int_eq(near_table_open(&table, true), 0);
	ck_assert_int_eq(near_table_view_open(&view, dup(table->fd),
					      table->shared->nonce), 0);
}

static void teardown(void)
{
	near_table_view_close(view);
	near_table_close(table);
}

static int add(uint64_t key)
{
	const struct near_region_entry entry = {
		.key = key, .len = key + 1, .memory = ~key, .access = 3,
	};

	return near_table_add(table, &entry);
}

/*
 * Asserts that the table and its copy both have the key (there), or that
 * neither of them has it (!there).
 */
static void expect(uint64_t key, bool there)
{
	const struct near_region_entry *own = near_table_find(table, key);
	struct near_region_entry seen;
	int ret = near_table_view_find(view, key, &seen);

	ck_assert_int_eq(ret, there ? 0 : -EKEYREJECTED);
	ck_assert_int_eq(!!own, there);
	if (!there)
		return;
	ck_assert_uint_eq(own->memory, ~key);
	ck_assert_uint_eq(seen.memory, ~key);
	ck_assert_uint_eq(seen.len, key + 1);
}

UNIT_CASE("table", setup, teardown);

/* The table grows as well. */
UNIT_TEST(locked_process_allocates_used_table)
{
	struct near_table *locked;
	struct stat st;
	uint64_t key;

	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		rig_skip("locked", "mlockall() failed");
		return;
	}
	ck_assert_int_eq(near_table_open(&locked, true), 0);
	for (key = 0; key < 1000; key++)
		ck_assert_int_eq(near_table_add(locked,
				 &(struct near_region_entry) { .key = key }),
				 0);
	ck_assert_int_eq(fstat(locked->fd, &st), 0);
	ck_assert_int_le(st.st_blocks * 512, 1 << 18);
	near_table_close(locked);
}

/*
 * Keys with the distance steps[_i] are added, and every third is removed. The
 * table and its copy must have the same keys.
 */
UNIT_LOOP(table_and_copy_agree, 0, 3)
{
	static const uint64_t steps[] = { 1, 1ull << 32, 0x9e3779b97f4a7c15u };
	uint64_t step = steps[_i], i;

	for (i = 0; i < 3000; i++)
		ck_assert_int_eq(add(i * step), 0);
	ck_assert_int_eq(add(5 * step), -ENOKEY);
	for (i = 0; i < 3000; i += 3)
		near_table_remove(table, i * step);
	near_table_remove(table, 3000 * step);
	for (i = 0; i < 3010; i++)
		expect(i * step, i < 3000 && i % 3);
	ck_assert_int_eq(add(0), 0);
	expect(0, true);
}

/* Maps the copy writable, to change it like a faulty owner. */
static uint8_t *shared(void)
{
	uint8_t *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			    table->fd, 0);

	ck_assert_ptr_ne(map, MAP_FAILED);
	return map;
}

UNIT_TEST(changed_copy_is_not_trusted)
{
	struct near_region_entry seen;
	uint8_t *map = shared();
	uint32_t bits;

	ck_assert_int_eq(add(7), 0);
	for (bits = 0; bits < 40; bits++) {
		memcpy(map + 4, &bits, sizeof(bits));
		map[16] += 2;	/* invalidates the cached entry */
		near_table_view_find(view, 7, &seen);
	}
	bits = UINT32_MAX;
	memcpy(map + 4, &bits, sizeof(bits));
	map[16] += 2;
	ck_assert_int_eq(near_table_view_find(view, 7, &seen), -EAGAIN);
	/*
	 * first, no entry has the key; second, the table's generation stays odd
	 */
	bits = 5;
	memset(map + 64, 0xff, 4096 - 64);
	memcpy(map + 4, &bits, sizeof(bits));
	ck_assert_int_eq(near_table_view_find(view, 7, &seen), -EKEYREJECTED);
	map[16] |= 1;
	ck_assert_int_eq(near_table_view_find(view, 7, &seen), -EAGAIN);
	/* the owner does not read the copy */
	ck_assert_uint_eq(near_table_find(table, 7)->memory, ~7ull);
	ck_assert_int_eq(add(8), 0);
	munmap(map, 4096);
}

/* The entry found last stays valid until the table changes. */
UNIT_TEST(cached_entry_is_valid_until_change)
{
	struct near_region_entry seen;

	ck_assert_ptr_null(near_table_view_known(view, 0));
	ck_assert_int_eq(add(7), 0);
	ck_assert_ptr_null(near_table_view_known(view, 7));
	ck_assert_int_eq(near_table_view_find(view, 7, &seen), 0);
	ck_assert_uint_eq(near_table_view_known(view, 7)->memory, ~7ull);
	ck_assert_ptr_null(near_table_view_known(view, 8));
	ck_assert_int_eq(add(8), 0);
	ck_assert_ptr_null(near_table_view_known(view, 7));
	ck_assert_int_eq(near_table_view_find(view, 7, &seen), 0);
	near_table_remove(table, 7);
	ck_assert_ptr_null(near_table_view_known(view, 7));
	ck_assert_int_eq(near_table_view_find(view, 7, &seen), -EKEYREJECTED);
}

UNIT_TEST(other_file_is_rejected)
{
	struct near_table_view *other = NULL;
	int pair[2];

	ck_assert_int_eq(pipe(pair), 0);
	ck_assert_int_ne(near_table_view_open(&other, pair[0], 1), 0);
	ck_assert_int_eq(near_table_view_open(&other,
					      dup(table->fd),
					      table->shared->nonce + 1),
			 -ENOENT);
	ck_assert_ptr_null(other);
}

#define APPLY(op, type, ctype, old, operand, compare, want) do {	\
	ctype target_ = (ctype)(old), from_ = (ctype)(operand);		\
	ctype with_ = (ctype)(compare), was_ = 0;			\
									\
	ck_assert(near_atomic_valid(op, type));				\
	ck_assert_uint_eq(near_type_size(type), sizeof(ctype));		\
	near_atomic_apply(op, type, &target_, &from_, &with_, &was_, 1); \
	ck_assert_msg(target_ == (ctype)(want), #op " of " #type);	\
	ck_assert_msg(was_ == (ctype)(old), #op " of " #type " fetches"); \
} while (0)

#define APPLY_ALL(type, ctype) do {					\
	APPLY(NEAR_SUM, type, ctype, 3, 4, 0, 7);			\
	APPLY(NEAR_PROD, type, ctype, 3, 4, 0, 12);			\
	APPLY(NEAR_LOR, type, ctype, 0, 4, 0, 1);			\
	APPLY(NEAR_LAND, type, ctype, 3, 0, 0, 0);			\
	APPLY(NEAR_LAND, type, ctype, 3, 9, 0, 1);			\
	APPLY(NEAR_LXOR, type, ctype, 3, 9, 0, 0);			\
	APPLY(NEAR_LXOR, type, ctype, 0, 9, 0, 1);			\
	APPLY(NEAR_ATOMIC_READ, type, ctype, 3, 9, 0, 3);		\
	APPLY(NEAR_ATOMIC_WRITE, type, ctype, 3, 9, 0, 9);		\
	APPLY(NEAR_CSWAP, type, ctype, 3, 9, 3, 9);			\
	APPLY(NEAR_CSWAP, type, ctype, 3, 9, 4, 3);			\
	APPLY(NEAR_CSWAP_NE, type, ctype, 3, 9, 4, 9);			\
	APPLY(NEAR_CSWAP_NE, type, ctype, 3, 9, 3, 3);			\
} while (0)

#define APPLY_ORDERED(type, ctype) do {					\
	APPLY_ALL(type, ctype);						\
	APPLY(NEAR_MIN, type, ctype, 3, 2, 0, 2);			\
	APPLY(NEAR_MIN, type, ctype, 3, 4, 0, 3);			\
	APPLY(NEAR_MAX, type, ctype, 3, 2, 0, 3);			\
	APPLY(NEAR_MAX, type, ctype, 3, 4, 0, 4);			\
	APPLY(NEAR_CSWAP_LE, type, ctype, 3, 9, 3, 9);			\
	APPLY(NEAR_CSWAP_LE, type, ctype, 3, 9, 4, 3);			\
	APPLY(NEAR_CSWAP_LT, type, ctype, 3, 9, 3, 3);			\
	APPLY(NEAR_CSWAP_LT, type, ctype, 3, 9, 2, 9);			\
	APPLY(NEAR_CSWAP_GE, type, ctype, 3, 9, 3, 9);			\
	APPLY(NEAR_CSWAP_GE, type, ctype, 3, 9, 2, 3);			\
	APPLY(NEAR_CSWAP_GT, type, ctype, 3, 9, 3, 3);			\
	APPLY(NEAR_CSWAP_GT, type, ctype, 3, 9, 4, 9);			\
} while (0)

#define APPLY_INT(type, ctype) do {					\
	APPLY_ORDERED(type, ctype);					\
	APPLY(NEAR_BOR, type, ctype, 5, 3, 0, 7);			\
	APPLY(NEAR_BAND, type, ctype, 5, 3, 0, 1);			\
	APPLY(NEAR_BXOR, type, ctype, 5, 3, 0, 6);			\
	APPLY(NEAR_MSWAP, type, ctype, 0x55, 0x2a, 0x0f, 0x5a);		\
} while (0)

UNIT_CASE("atomics", NULL, NULL);

UNIT_TEST(atomics_compute_result)
{
	APPLY_INT(NEAR_INT8, int8_t);
	APPLY_INT(NEAR_UINT8, uint8_t);
	APPLY_INT(NEAR_INT16, int16_t);
	APPLY_INT(NEAR_UINT16, uint16_t);
	APPLY_INT(NEAR_INT32, int32_t);
	APPLY_INT(NEAR_UINT32, uint32_t);
	APPLY_INT(NEAR_INT64, int64_t);
	APPLY_INT(NEAR_UINT64, uint64_t);
	APPLY_ORDERED(NEAR_FLOAT, float);
	APPLY_ORDERED(NEAR_DOUBLE, double);
	APPLY_ALL(NEAR_FLOAT_COMPLEX, float complex);
	/* signs and overflow */
	APPLY(NEAR_MIN, NEAR_INT8, int8_t, -3, 2, 0, -3);
	APPLY(NEAR_MIN, NEAR_UINT8, uint8_t, -3, 2, 0, 2);
	APPLY(NEAR_SUM, NEAR_INT64, int64_t, INT64_MAX, 1, 0, INT64_MIN);
	APPLY(NEAR_PROD, NEAR_UINT16, uint16_t, 65535, 65535, 0, 1);
	APPLY(NEAR_SUM, NEAR_DOUBLE, double, 0.5, 0.25, 0, 0.75);
	APPLY(NEAR_PROD, NEAR_FLOAT_COMPLEX, float complex, 1 + 2 * I,
	      3 + 4 * I, 0, -5 + 10 * I);
}

/* An addition to NaN ends, although NaN never compares equal to itself. */
UNIT_TEST(addition_to_nan_ends)
{
	double target = NAN, one = 1;

	near_atomic_apply(NEAR_SUM, NEAR_DOUBLE, &target, &one, NULL, NULL, 1);
	ck_assert(isnan(target));
}

UNIT_TEST(invalid_operation_is_rejected)
{
	ck_assert(!near_atomic_valid(NEAR_BOR, NEAR_FLOAT));
	ck_assert(!near_atomic_valid(NEAR_MIN, NEAR_FLOAT_COMPLEX));
	ck_assert(!near_atomic_valid(NEAR_OP_COUNT, NEAR_INT8));
	ck_assert(!near_atomic_valid(NEAR_SUM, NEAR_TYPES));
	ck_assert(!near_atomic_valid(UINT32_MAX, UINT32_MAX));
	ck_assert_uint_eq(near_type_size(NEAR_TYPES), 0);
}
