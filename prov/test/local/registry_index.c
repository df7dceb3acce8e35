/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The index of the registry's directory. A lookup finds each record that
 * exists, after any changes of the directory.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

#define SETTLE_US 60000
#define MANY 16	/* smallest number of lookups for which the index is read */
#define PEERS 300

static struct duo_registry_index index_of_names;
static const struct duo_registry_index *names;
static struct duo_publication pub[PEERS];
static const char *dir;
static int registry;	/* locked, so that the empty directory is not removed */

static void setup(void)
{
	dir = unit_dir_make();
	registry = duo_registry_lock(dir, DUO_REGISTRY_SHARED);
	ck_assert_int_ge(registry, 0);
}

static void teardown(void)
{
	uint64_t i;

	for (i = 0; i < PEERS; i++) {
		if (pub[i].path[0])
			duo_registry_withdraw(&pub[i]);
	}
	duo_registry_unlock(registry);
	unit_dir_remove();
}

static void publish(uint64_t addr)
{
	unit_publish(dir, &addr, sizeof(addr), &pub[addr]);
}

static bool has(uint64_t addr)
{
	return duo_registry_index_has(names, duo_registry_hash(&addr,
							       sizeof(addr)));
}

static bool update(size_t lookups)
{
	names = duo_registry_index_read(&index_of_names, registry, lookups);
	return names;
}

static void make_file(const char *name)
{
	int fd = openat(registry, name, O_CREAT | O_WRONLY, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

UNIT_CASE("index", setup, teardown);

UNIT_TEST(many_lookups_use_index)
{
	publish(1);
	ck_assert(update(MANY));
	ck_assert(has(1));
	ck_assert(!has(2));
	publish(2);
	ck_assert(update(MANY));
	ck_assert(has(1));
	ck_assert(has(2));
	duo_registry_withdraw(&pub[1]);
	ck_assert(update(MANY));
	ck_assert(!has(1));
}

UNIT_TEST(empty_directory_has_empty_index)
{
	ck_assert(update(MANY));
	ck_assert(!has(1));
}

UNIT_TEST(index_has_many_records)
{
	uint64_t i;

	for (i = 0; i < PEERS; i++)
		publish(i);
	ck_assert(update(MANY));
	for (i = 0; i < PEERS; i++)
		ck_assert_msg(has(i), "record %lu", (unsigned long) i);
	ck_assert(!has(PEERS));
}

/* For few lookups the index is not read: each lookup opens its record. */
UNIT_TEST(few_lookups_open_records)
{
	ck_assert(!update(MANY - 1));
	ck_assert(has(1));
}

UNIT_TEST(other_names_are_not_indexed)
{
	uint64_t i;

	make_file("0123456789abcdef.new");
	make_file("0123456789abcde");
	make_file("0123456789abcdef0");
	make_file("0123456789ABCDEF");
	make_file("other");
	ck_assert(update(MANY));
	for (i = 0; i < DUO_INDEX_BITS; i++)
		ck_assert(!duo_registry_index_has(names, i));
}

UNIT_TEST(missing_directory_has_no_index)
{
	close(registry);
	ck_assert(!update(MANY));
	ck_assert(has(1));
}

/* Inserts 2 * MANY addresses in one call. */
static void insert_many(uint64_t first)
{
	uint64_t peer[2 * MANY];
	fi_addr_t addr[2 * MANY];
	int i;

	for (i = 0; i < 2 * MANY; i++)
		peer[i] = first + i;
	ck_assert_int_eq(fi_av_insert(fx.av, peer, 2 * MANY, addr, 0, NULL),
			 2 * MANY);
}

UNIT_CASE("av", fixture_setup, fixture_close);

UNIT_TEST(record_between_inserts_is_found)
{
	insert_many(1);
	peer_publish(100);
	insert_many(100);
	ck_assert_int_eq(fake.shm.inserted, 1);
	usleep(SETTLE_US);
	insert_many(150);
	peer_publish(200);
	insert_many(200);
	ck_assert_int_eq(fake.shm.inserted, 2);
	usleep(SETTLE_US);
	insert_many(250);
	peer_publish(300);
	peer_insert(300);
	ck_assert_int_eq(fake.shm.inserted, 3);
}

UNIT_TEST(record_after_insert_is_found_by_send)
{
	fi_addr_t addr;
	char context;

	usleep(SETTLE_US);
	insert_many(1);
	addr = peer_insert(100);
	peer_publish(100);
	ck_assert_int_eq(send_x(fx.ep, addr, &context), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
}

UNIT_TEST(ended_peer_is_not_local)
{
	insert_many(1);
	peer_publish(100);
	insert_many(100);
	ck_assert_uint_ne(fixture_ep()->map->addr_of_index[0], FI_ADDR_UNSPEC);
	peer_withdraw();
	insert_many(100);
	ck_assert_uint_eq(fixture_ep()->map->addr_of_index[0], FI_ADDR_UNSPEC);
}
