/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * local/registry.h: publishing and finding records. registry_bad.c tests
 * malformed files, and registry_exited.c tests exited owners.
 */

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

static const char *dir;
static struct duo_publication pub = { .fd = -1 };
static char name[DUO_TRANSPORT_NAME_MAX];

UNIT_SETUP(setup, dir = unit_dir_make());

static void teardown(void)
{
	duo_registry_withdraw(&pub);
	unit_dir_remove();
}

static enum fi_duo_reason lookup(const char *addr)
{
	return unit_lookup(dir, addr, strlen(addr), name);
}

static void publish(const char *addr, struct duo_publication *as)
{
	unit_publish(dir, addr, strlen(addr), as);
}

UNIT_CASE("registry", setup, teardown);

UNIT_TEST(published_record_is_found)
{
	ck_assert_int_eq(lookup("a"), FI_DUO_NOT_REGISTERED);
	publish("a", &pub);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
	ck_assert_str_eq(name, pub.peer_name);
	ck_assert_int_eq(lookup("b"), FI_DUO_NOT_REGISTERED);
	ck_assert_int_eq(lookup("a\n"), FI_DUO_NOT_REGISTERED);
	ck_assert_int_eq(unit_dir_count(), 1);
}

/*
 * A reserved record must not be found, because its endpoint is not ready for
 * messages yet.
 */
UNIT_TEST(reserved_record_is_not_found)
{
	ck_assert_int_eq(unit_reserve(dir, "a", 1, &pub), 0);
	ck_assert_int_eq(lookup("a"), FI_DUO_NOT_REGISTERED);
	ck_assert_uint_eq(unit_sweep(dir), 1);
	ck_assert_int_eq(duo_registry_ready(&pub), 0);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
}

/* A signal may end fallocate() on a tmpfs (EINTR). */
UNIT_TEST(signals_do_not_prevent_record)
{
	unit_reject(SYS_fallocate, SECCOMP_RET_ERRNO | EINTR);
	publish("a", &pub);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
}

UNIT_TEST(withdrawn_record_is_not_found)
{
	publish("a", &pub);
	duo_registry_withdraw(&pub);
	ck_assert_int_eq(lookup("a"), FI_DUO_NOT_REGISTERED);
	ck_assert_int_eq(unit_dir_count(), 0);
	ck_assert_int_eq(pub.fd, -1);
	duo_registry_withdraw(&pub);
	publish("a", &pub);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
}

UNIT_TEST(reserved_record_can_be_withdrawn)
{
	ck_assert_int_eq(unit_reserve(dir, "a", 1, &pub), 0);
	duo_registry_withdraw(&pub);
	ck_assert_int_eq(unit_dir_count(), 0);
}

/*
 * The second publication of an address fails. The first record must not change.
 */
UNIT_TEST(second_publication_of_address_fails)
{
	struct duo_publication second = { .fd = -1 };

	publish("a", &pub);
	ck_assert_int_eq(unit_reserve(dir, "a", 1, &second),
			 -FI_EADDRINUSE);
	ck_assert_int_eq(second.fd, -1);
	duo_registry_withdraw(&second);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
	ck_assert_str_eq(name, pub.peer_name);
}

UNIT_TEST(publication_of_reserved_address_fails)
{
	struct duo_publication second = { .fd = -1 };

	ck_assert_int_eq(unit_reserve(dir, "a", 1, &pub), 0);
	ck_assert_int_eq(unit_reserve(dir, "a", 1, &second),
			 -FI_EADDRINUSE);
	ck_assert_int_eq(second.fd, -1);
	ck_assert_int_eq(duo_registry_ready(&pub), 0);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
}

UNIT_TEST(addresses_have_different_names)
{
	struct duo_publication second = { .fd = -1 };

	publish("a", &pub);
	publish("b", &second);
	ck_assert_str_ne(pub.peer_name, second.peer_name);
	ck_assert_uint_eq(unit_sweep(dir), 2);
	ck_assert_int_eq(lookup("b"), FI_DUO_OK);
	ck_assert_str_eq(name, second.peer_name);
	duo_registry_withdraw(&second);
	ck_assert_uint_eq(unit_sweep(dir), 1);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
}

/*
 * An IP address with a port exists once in each network namespace. So the
 * record of such an address contains the namespace, and only lookups from this
 * namespace find the record.
 */
UNIT_TEST(address_is_unique_per_network_namespace)
{
	struct duo_publication everywhere = { .fd = -1 };

	ck_assert_int_eq(duo_shm_publish(&pub), 0);
	ck_assert_int_eq(duo_registry_reserve(dir, "a", 1, true, &pub), 0);
	ck_assert_int_eq(duo_registry_ready(&pub), 0);
	ck_assert_uint_ne(pub.net_ns, 0);
	ck_assert_int_eq(lookup("a"), FI_DUO_NOT_REGISTERED);
	publish("a", &everywhere);
	ck_assert_uint_eq(everywhere.net_ns, 0);
	ck_assert_int_eq(lookup("a"), FI_DUO_OK);
	ck_assert_str_eq(name, everywhere.peer_name);
	ck_assert_int_eq(duo_registry_lookup("a", 1, &pub, name),
			 FI_DUO_OK);
	ck_assert_str_eq(name, pub.peer_name);
	duo_registry_withdraw(&everywhere);
}

static const struct {
	const char *name;
	uint32_t addr_format;
	bool per_net;
} format_cases[] = {
	{ "FI_ADDR_EFA", FI_ADDR_EFA, false },
	{ "FI_ADDR_IB_UD", FI_ADDR_IB_UD, false },
	{ "FI_SOCKADDR_IB", FI_SOCKADDR_IB, false },
	{ "FI_SOCKADDR", FI_SOCKADDR, true },
	{ "FI_SOCKADDR_IN", FI_SOCKADDR_IN, true },
	{ "FI_SOCKADDR_IN6", FI_SOCKADDR_IN6, true },
	{ "FI_ADDR_STR", FI_ADDR_STR, true },
	{ "a provider's own", 0x80000001, true },
};

UNIT_CASE("endpoint", NULL, NULL);

UNIT_LOOP(formats_of_addresses, 0, ARRAY_SIZE(format_cases))
{
	const struct fixture_attr attr = {
		.addr_format = format_cases[_i].addr_format,
	};

	fixture_start(&attr);
	ck_assert_msg(!!fixture_ep()->publication.net_ns ==
		      format_cases[_i].per_net, "%s", format_cases[_i].name);
	fixture_close();
}

static const struct {
	const char *name;
	size_t len;
	int ret;
} length_cases[] = {
	{ "nothing", 0, 0 },
	{ "one byte", 1, 0 },
	{ "the longest", DUO_ADDR_MAX, 0 },
	{ "too long", DUO_ADDR_MAX + 1, -FI_ETOOSMALL },
};

UNIT_CASE("registry", setup, teardown);

UNIT_LOOP(address_lengths, 0, ARRAY_SIZE(length_cases))
{
	const char *what = length_cases[_i].name;
	char addr[DUO_ADDR_MAX + 1] = { 'a', 0, 'b' };
	size_t len = length_cases[_i].len;
	int ret = unit_reserve(dir, addr, len, &pub);

	ck_assert_msg(ret == length_cases[_i].ret, "%s: %d", what, ret);
	if (ret) {
		ck_assert_int_eq(unit_dir_count(), 0);
		return;
	}
	ck_assert_int_eq(duo_registry_ready(&pub), 0);
	ck_assert_msg(unit_lookup(dir, addr, len, name) ==
		      FI_DUO_OK, "%s", what);
	if (len)
		ck_assert_msg(unit_lookup(dir, addr, len - 1, name) ==
			      FI_DUO_NOT_REGISTERED, "%s", what);
}

UNIT_TEST(only_the_user_may_read)
{
	struct stat st;

	publish("a", &pub);
	ck_assert_int_eq(stat(pub.path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
}

/*
 * duo_registry_state() changes with the directory. It is 0 as long as the
 * directory might change without a new modification time.
 */
UNIT_TEST(state_changes)
{
	int registry = duo_registry_lock(dir, DUO_REGISTRY_SHARED);
	uint64_t empty, full;

	unit_dir_changed(registry, -100);
	ck_assert_uint_eq(duo_registry_state(registry), 0);
	unit_dir_changed(registry, 10);
	empty = duo_registry_state(registry);
	ck_assert_uint_ne(empty, 0);
	publish("a", &pub);
	ck_assert_uint_ne(duo_registry_state(registry), empty);
	unit_dir_changed(registry, 5);
	full = duo_registry_state(registry);
	ck_assert_uint_ne(full, 0);
	ck_assert_uint_ne(full, empty);
	ck_assert_uint_eq(duo_registry_state(registry), full);
	duo_registry_withdraw(&pub);
	ck_assert_uint_ne(duo_registry_state(registry), full);
	duo_registry_unlock(registry);
}

UNIT_TEST(no_directory)
{
	const char *none = "/nonexistent/ofi_duo";

	ck_assert_int_eq(duo_registry_open(none, NULL), -FI_ENOENT);
	ck_assert_int_eq(duo_registry_lock(none, DUO_REGISTRY_EXCLUSIVE),
			 -FI_ENOENT);
	duo_registry_tidy(none, duo_transports);
	ck_assert_uint_eq(duo_registry_sweep(-1, duo_transports), 0);
	ck_assert_uint_eq(duo_registry_state(-1), 0);
	ck_assert_int_eq(unit_reserve(none, "a", 1, &pub),
			 -FI_ENOENT);
	ck_assert_int_eq(pub.fd, -1);
}

UNIT_TEST(directory_name_too_long)
{
	char path[2 * DUO_PATH_MAX];

	memset(path, 'd', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	ck_assert_int_eq(unit_reserve(path, "a", 1, &pub),
			 -FI_ETOOSMALL);
	ck_assert_int_eq(duo_registry_open(path, NULL), -FI_ETOOSMALL);
}

/* The directory is removed between a record's reservation and completion. */
UNIT_TEST(completion_without_directory_fails)
{
	ck_assert_int_eq(unit_reserve(dir, "a", 1, &pub), 0);
	unit_dir_remove();
	ck_assert_int_eq(duo_registry_ready(&pub), -FI_ENOENT);
	duo_registry_withdraw(&pub);
	ck_assert_int_eq(pub.fd, -1);
}
