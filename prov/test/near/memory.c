/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Shared memory that ports allocate and free, and limits of resources */

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "near/rma/table.h"
#include "unit.h"

/* Sanitizers need much address space, so there are fewer ports. */
#define MANY (SANITIZED ? 100 : 1000)
#define FEW 40
#define FDS_EACH 8 /* descriptors of a port and its connection, at both ends */

static uint8_t buf[60000];

UNIT_CASE("memory", NULL, rig_close_all);

UNIT_TEST(smallest_budget_suffices)
{
	struct rig *a = rig_open(true), *b = rig_open_with(true, 1);
	struct near_peer *to_b = rig_peer(a, b);
	static uint8_t got[sizeof(buf)];
	size_t idle = rig_taken(b);

	rig_fill(buf, sizeof(buf), 3);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 700), 0);
	ck_assert_int_eq(rig_send_large(a, to_b, 2, buf, sizeof(buf), buf), 0);
	rig_until(b, NULL, 2);
	ck_assert_uint_eq(b->event[0].sum, rig_sum(buf, 700));
	rig_take(b, 1, got, sizeof(got));
	rig_until(b, a, 3);
	ck_assert_mem_eq(got, buf, sizeof(buf));
	ck_assert_uint_le(rig_taken(b), idle + near_page_size());
}

/* If seccomp denies memfd_create() (EPERM), near_open() returns -ENOSYS. */
UNIT_TEST(denied_memfd_fails_open)
{
	const struct near_sink sink = { 0 };
	const struct near_attr attr = { .sink = &sink, .memory = NEAR_MEMORY };
	struct near_port *port;

	unit_reject(SYS_memfd_create, SECCOMP_RET_ERRNO | EPERM);
	ck_assert_int_eq(near_open(&port, &attr), -ENOSYS);
}

UNIT_TEST(thousand_ports_communicate)
{
	static struct rig *other[MANY];
	struct rlimit files;
	struct rig *us;
	uint32_t i;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max < MANY * FDS_EACH) {
		fprintf(stderr, "SKIP: near thousand (%u open files wanted)\n",
			MANY * FDS_EACH);
		return;
	}
	us = rig_open(false);
	for (i = 0; i < MANY; i++) {
		other[i] = rig_open(false);
		ck_assert_int_eq(rig_send(other[i], rig_peer(other[i], us), i,
					  &i, sizeof(i)), 0);
	}
	rig_until(us, NULL, MANY);
	for (i = 0; i < MANY; i++) {
		ck_assert_mem_eq(us->event[i].payload, &i, sizeof(i));
		ck_assert_int_eq(rig_send(us, us->event[i].peer, i, buf, 100),
				 0);
		rig_until(other[i], NULL, 1);
	}
	/* a page for each sender, and the ring budget for the first ones */
	ck_assert_uint_le(rig_taken(us),
			  near_memory(0, MANY) + NEAR_MEMORY);
	for (i = 0; i < MANY; i++)
		rig_close(other[i]);
	rig_until(us, NULL, 2 * MANY);
	ck_assert_uint_eq(rig_rx_rings(us), 0);
}

static int open_again(void)
{
	struct near_attr attr = { .memory = NEAR_MEMORY };
	struct near_port *port;

	return near_open(&port, &attr);
}

/* An access to memory that is not allocated would raise SIGBUS. */
UNIT_TEST(missing_memory_fails_send)
{
	struct rig *a, *b;
	struct near_peer *to_b = rig_pair(&a, &b, false);
	int i;

	unit_reject(SYS_fallocate, SECCOMP_RET_ERRNO | ENOSPC);
	for (i = 0; i < 10; i++)
		ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	ck_assert_int_eq(a->warnings, 1);
	ck_assert_uint_eq(b->port->segment->claim[0].state, NEAR_CLAIM_FREE);
	ck_assert_int_eq(open_again(), -ENOMEM);
}

/* The sender has allocated the ring's memory, but cannot map the ring. */
UNIT_TEST(unmapped_ring_takes_no_memory)
{
	struct rig *a, *b;
	struct near_peer *to_b = rig_pair(&a, &b, false);
	struct near_place place;

	near_place(b->port->budget.growing, 0,
		   b->port->segment->adv & NEAR_ADV_TIER, &place);
	unit_reject_if(SYS_mmap, 1, (uint32_t)place.span,
		       SECCOMP_RET_ERRNO | ENOMEM);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	ck_assert_int_eq(a->warnings, 1);
	ck_assert_uint_eq(b->port->segment->claim[0].state, NEAR_CLAIM_FREE);
	ck_assert_uint_eq(rig_taken(b), b->idle);
}

/* Lets no larger ring be allocated (0), or mapped (1). */
static void reject_growth(const struct rig *rig, int what)
{
	struct near_place place;
	uint32_t tier = near_tier_least();

	if (!what)
		unit_reject(SYS_fallocate, SECCOMP_RET_ERRNO | ENOSPC);
	while (what && near_place(rig->port->budget.growing, 0, ++tier, &place))
		unit_reject_if(SYS_mprotect, 1, (uint32_t)place.size,
			       SECCOMP_RET_ERRNO | ENOMEM);
}

UNIT_LOOP(missing_memory_keeps_ring_size, 0, 2)
{
	struct rig *a = rig_open(false), *b;
	struct near_peer *to_b;
	uint32_t sent;
	size_t before;

	b = rig_open_with(false, 63 * near_page_size());
	to_b = rig_peer(a, b);
	ck_assert_int_eq(rig_send(a, to_b, 0, buf, 8), 0);
	rig_until(b, NULL, 1);
	before = rig_taken(b);
	reject_growth(b, _i);
	for (sent = 1; sent < 1000;) {
		while (!rig_send(a, to_b, sent, buf, 900))
			sent++;
		rig_until(b, NULL, sent);
		rig_poll(b, 1);
	}
	ck_assert_uint_ge(to_b->resize.count, 1);
	ck_assert_uint_eq(to_b->resize.tier, near_tier_least());
	ck_assert_uint_eq(b->event[999].msg.tag, 999);
	ck_assert_uint_eq(rig_taken(b), before);
}

UNIT_TEST(missing_memory_fails_registration)
{
	struct near_region_entry entry = { .access = NEAR_MAY_READ };
	struct near_table *table, *other;
	int ret;

	ck_assert_int_eq(near_table_open(&table, true), 0);
	unit_reject(SYS_fallocate, SECCOMP_RET_ERRNO | ENOSPC);
	do {
		entry.key++;
		ret = near_table_add(table, &entry);
	} while (!ret && entry.key < 1000);
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert_uint_gt(entry.key, 10);
	ck_assert_ptr_null(near_table_find(table, entry.key));
	ck_assert_ptr_nonnull(near_table_find(table, entry.key - 1));
	ck_assert_int_eq(near_table_open(&other, true), -ENOMEM);
	near_table_close(table);
}

/*
 * Limits of file descriptors and of address space. The test sets them to 0, and
 * later raises them.
 */
static const struct {
	int resource;
	int again;	/* error of a second near_open(); 0: any */
} limits[] = {
	{ RLIMIT_NOFILE, 0 }, { RLIMIT_AS, -ENOMEM },
};

UNIT_LOOP(exhausted_limit_fails_until_raised, 0, SANITIZED ? 1 : 2)
{
	struct rig *a, *b;
	struct near_peer *to_b = rig_pair(&a, &b, false);
	rlim_t limit = unit_limit(limits[_i].resource, 0);
	int ret;

	if (limits[_i].resource == RLIMIT_AS)
		unit_check_space();
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	ret = open_again();
	ck_assert(limits[_i].again ? ret == limits[_i].again : ret < 0);
	unit_limit(limits[_i].resource, limit);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), 0);
	rig_until(b, NULL, 1);
}

static int lowest_free(void)
{
	int fd = dup(STDIN_FILENO);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return fd;
}

UNIT_TEST(few_descriptors_reach_all_peers)
{
	struct rig *us = rig_open(false), *other[FEW];
	rlim_t limit;
	int i, watched = 0;

	for (i = 0; i < FEW; i++) {
		other[i] = rig_open(false);
		ck_assert_int_ge(near_wait_fd(other[i]->port), 0);
		ck_assert_int_eq(near_arm(other[i]->port), 0);
	}
	limit = (rlim_t)lowest_free() + 16 + FEW / 4;
	unit_limit(RLIMIT_NOFILE, limit);
	for (i = 0; i < FEW; i++) {
		struct near_peer *peer = rig_peer(us, other[i]);
		struct pollfd fd = {
			.fd = near_wait_fd(other[i]->port), .events = POLLIN,
		};

		ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), 0);
		ck_assert_int_eq(poll(&fd, 1, 1000), 1);
		watched += peer->pidfd >= 0;
		ck_assert(peer->pidfd >= 0 || peer->by_start);
	}
	ck_assert_int_gt(watched, 0);
	ck_assert_int_lt(watched, FEW);
	ck_assert_uint_le((rlim_t)lowest_free() + 16, limit);
	ck_assert_int_eq(us->warnings, 0);
	for (i = 0; i < FEW; i++) {
		rig_until(other[i], NULL, 1);
		rig_close(other[i]);
	}
}

/* Exceeding the limit would raise SIGXFSZ. */
UNIT_TEST(file_size_limit_is_checked)
{
	struct near_table *table;

	unit_limit(RLIMIT_FSIZE, 1 << 20);
	ck_assert_int_eq(open_again(), -EFBIG);
	ck_assert_int_eq(near_table_open(&table, true), -EFBIG);
}

/* mlockall() is called before the rings are mapped (_i is 0), or after (1). */
UNIT_LOOP(locked_process_allocates_used_memory, 0, 2)
{
	struct rig *us, *other[2];
	struct near_peer *to_us;
	struct near_place first;
	size_t idle;
	int i;

	if (!_i && mlockall(MCL_CURRENT | MCL_FUTURE)) {
		rig_skip("locked", "mlockall() failed");
		return;
	}
	us = rig_open(false);
	idle = rig_taken(us);
	ck_assert_uint_le(idle, 4 * near_page_size());
	for (i = 0; i < 2; i++) {
		other[i] = rig_open(false);
		to_us = rig_peer(other[i], us);
		ck_assert_int_eq(rig_send(other[i], to_us, 1, buf, 8), 0);
		rig_until(us, NULL, i + 1);
	}
	to_us = rig_peer(other[0], us);
	for (i = 0; i < 100 && !to_us->resize.count; i++) {
		rig_overfill(other[0], to_us, 2);
		us->count = 0;
		rig_poll(us, 100);
	}
	ck_assert_uint_eq(to_us->resize.count, 1);
	rig_pages(us);
	if (_i && mlockall(MCL_CURRENT | MCL_FUTURE))
		rig_skip("locked", "mlockall() failed");
	/*
	 * mlockall() (_i is 1) may allocate all pages that precede the first
	 * ring in the segment
	 */
	near_place(1, 0, NEAR_TIERS - 1, &first);
	ck_assert_uint_le(rig_taken(us) - idle,
			  (us->port->budget.extra + us->port->budget.rings) *
					  near_page_size() +
				  (_i ? first.offset : 0));
}
