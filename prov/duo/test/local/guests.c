/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * guests.h: the places of an endpoint over shm. One more than there are would
 * make shm write beyond its table.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/guests.h"
#include "record.h"
#include "unit.h"

static const char *dir;
static struct duo_publication pub;	/* the peer's */
static int own;				/* our file */

static void setup(void)
{
	dir = unit_dir_make();
	ck_assert_int_eq(unit_reserve(dir, "peer", 4, &pub), 0);
	ck_assert_int_eq(duo_registry_ready(&pub), 0);
	own = memfd_create("unit-self", MFD_CLOEXEC);
	ck_assert_int_ge(own, 0);
	ck_assert_int_eq(ftruncate(own, RECORD_FILE), 0);
}

static void teardown(void)
{
	close(own);
	duo_registry_withdraw(&pub);
	unit_dir_remove();
}

static struct duo_guests list(int fd)
{
	return (struct duo_guests) { fd, RECORD_GUEST, RECORD_GUESTS };
}

static enum duo_guest join(int fd, uint64_t name)
{
	const struct duo_guests guests = list(fd);

	return duo_guest_join(&guests, name);
}

static void leave(int fd, uint64_t name)
{
	const struct duo_guests guests = list(fd);

	duo_guest_leave(&guests, name);
}

static bool known(int fd, uint64_t name)
{
	const struct duo_guests guests = list(fd);

	return duo_guest_known(&guests, name);
}

static void refuse(int fd, uint64_t name)
{
	const struct duo_guests guests = list(fd);

	duo_guest_refuse(&guests, name);
}

static bool refused(int fd, uint64_t name)
{
	const struct duo_guests guests = list(fd);

	return duo_guest_refused(&guests, name);
}

static int count(int fd)
{
	uint64_t name[RECORD_GUESTS];
	int i, guests = 0;

	ck_assert_int_eq(pread(fd, name, sizeof(name), RECORD_GUEST),
			 sizeof(name));
	for (i = 0; i < RECORD_GUESTS; i++)
		guests += name[i] != 0;
	return guests;
}

static void fill(int fd)
{
	uint64_t name = 1000;

	while (count(fd) < RECORD_GUESTS)
		ck_assert_int_eq(join(fd, name++),
				 DUO_GUEST_NEW);
}

static enum fi_duo_reason lookup(void)
{
	struct duo_publication self = pub;
	char name[DUO_PEER_NAME_MAX];

	self.fd = own;
	strcpy(self.peer_name, "unit-self");
	return duo_registry_lookup("peer", 4, &self, name);
}

START_TEST(each_has_one_place)
{
	ck_assert_int_eq(join(own, 1), DUO_GUEST_NEW);
	ck_assert_int_eq(join(own, 2), DUO_GUEST_NEW);
	ck_assert_int_eq(join(own, 1), DUO_GUEST_KNOWN);
	ck_assert_int_eq(count(own), 2);
}
END_TEST

START_TEST(there_are_so_many)
{
	fill(own);
	ck_assert_int_eq(join(own, 1), DUO_GUEST_FULL);
	ck_assert_int_eq(join(own, 1000), DUO_GUEST_KNOWN);
	ck_assert_int_eq(count(own), RECORD_GUESTS);
}
END_TEST

START_TEST(a_place_is_given_back)
{
	fill(own);
	leave(own, 1);		/* has none */
	ck_assert_int_eq(count(own), RECORD_GUESTS);
	leave(own, 1001);
	ck_assert_int_eq(join(own, 1), DUO_GUEST_NEW);
	ck_assert_int_eq(join(own, 1001), DUO_GUEST_FULL);
	ck_assert_int_eq(join(own, 1000), DUO_GUEST_KNOWN);
	ck_assert_int_eq(join(own, 1000 + RECORD_GUESTS - 1),
			 DUO_GUEST_KNOWN);
}
END_TEST

/* A process that has stopped keeps nobody out, whatever it holds. */
START_TEST(lists_are_locked)
{
	int other = open(pub.path, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(flock(other, LOCK_EX), 0);
	ck_assert_int_eq(flock(own, LOCK_EX), 0);
	ck_assert_int_eq(lookup(), FI_DUO_REGISTERED);
	ck_assert_int_eq(count(pub.fd), 1);
	ck_assert_int_eq(count(own), 1);
	close(other);
}
END_TEST

/* All want the last places, and the same names from both sides. */
START_TEST(at_the_same_time)
{
	enum { CHILDREN = 4 };
	int i, status;
	uint64_t name;

	for (i = 0; i < CHILDREN; i++) {
		if (fork())
			continue;
		for (name = 1; name <= RECORD_GUESTS + 10; name++)
			join(pub.fd, name);
		_exit(0);
	}
	for (i = 0; i < CHILDREN; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert(WIFEXITED(status));
	}
	ck_assert_int_eq(count(pub.fd), RECORD_GUESTS);
	for (name = 1; name <= RECORD_GUESTS; name++)
		ck_assert_msg(known(pub.fd, name),
			      "%" PRIu64 " has no place: another has two",
			      name);
}
END_TEST

/* It keeps its place, and the others are as they were. */
START_TEST(one_is_refused)
{
	ck_assert_int_eq(join(own, 1), DUO_GUEST_NEW);
	ck_assert_int_eq(join(own, 2), DUO_GUEST_NEW);
	refuse(own, 2);
	refuse(own, 2);
	refuse(own, 3);		/* there is no such */
	ck_assert(refused(own, 2));
	ck_assert(!refused(own, 1));
	ck_assert(!refused(own, 3));
	ck_assert_int_eq(join(own, 2), DUO_GUEST_KNOWN);
	ck_assert(known(own, 2));
	ck_assert_int_eq(count(own), 2);
	leave(own, 2);
	ck_assert_int_eq(count(own), 1);
}
END_TEST

START_TEST(no_list)
{
	ck_assert_int_eq(ftruncate(own, RECORD_SIZE), 0);
	ck_assert_int_eq(join(own, 1), DUO_GUEST_FULL);
	ck_assert(!known(own, 1));
	leave(own, 1);
}
END_TEST

START_TEST(lookup_takes_a_place_in_both)
{
	ck_assert_int_eq(lookup(), FI_DUO_REGISTERED);
	ck_assert_int_eq(lookup(), FI_DUO_REGISTERED);
	ck_assert_int_eq(count(pub.fd), 1);
	ck_assert_int_eq(count(own), 1);
}
END_TEST

/* Who is full must not use up the places of all whom it looks up. */
START_TEST(lookup_takes_none_for_nothing)
{
	fill(own);
	ck_assert_int_eq(lookup(), FI_DUO_PEER_FULL);
	ck_assert_int_eq(count(pub.fd), 0);
}
END_TEST

START_TEST(lookup_when_the_peer_is_full)
{
	fill(pub.fd);
	ck_assert_int_eq(lookup(), FI_DUO_PEER_FULL);
	ck_assert_int_eq(count(own), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guests");
	TCase *tcase = unit_case(suite, "guests", setup, teardown);

	tcase_add_test(tcase, each_has_one_place);
	tcase_add_test(tcase, there_are_so_many);
	tcase_add_test(tcase, a_place_is_given_back);
	tcase_add_test(tcase, lists_are_locked);
	tcase_add_test(tcase, at_the_same_time);
	tcase_add_test(tcase, one_is_refused);
	tcase_add_test(tcase, no_list);
	tcase_add_test(tcase, lookup_takes_a_place_in_both);
	tcase_add_test(tcase, lookup_takes_none_for_nothing);
	tcase_add_test(tcase, lookup_when_the_peer_is_full);
	return unit_run(suite);
}
