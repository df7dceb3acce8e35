/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer of libfabric's shm that cannot map our region: shm says -FI_EAGAIN
 * for ever. The peer notes it in its file, and what goes to it takes the core.
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "fixture.h"

#define ENOUGH (DUO_SHM_TRIES + 10)	/* sends */
#define OTHER 2000			/* the core address of the other one */

static fi_addr_t addr;
static int context;

static void setup(void)
{
	fixture_setup();
}

static ssize_t try_send(fi_addr_t to)
{
	return fi_tsend(fx.ep, "x", 1, NULL, to, TAG, &context);
}

/* Until one is taken, or so many are not. */
static ssize_t send_often(fi_addr_t to)
{
	ssize_t ret;
	int i = 0;

	do
		ret = try_send(to);
	while (ret == -FI_EAGAIN && ++i < ENOUGH);
	return ret;
}

/* What the peer published last writes when it cannot map our region. */
static void peer_refuses(void)
{
	const struct duo_publication peer = {
		.fd = peer_file(), .places = DUO_SHM_PLACES,
	};

	duo_registry_refuse(&peer, fixture_ep()->publication.peer_name);
}

START_TEST(the_core_takes_over)
{
	fi_addr_t again;

	peer_publish(1);
	addr = peer_insert(1);
	again = peer_insert(1);
	fake.shm.tx_eagain = true;
	ck_assert_int_eq(try_send(addr), -FI_EAGAIN);
	peer_refuses();
	ck_assert_int_eq(send_often(addr), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	expect_path(fx.ep, addr, FI_DUO_CORE, FI_DUO_NOT_MAPPED);
	/* and keeps it: the path is settled */
	fake.shm.tx_eagain = false;
	ck_assert_int_eq(try_send(addr), 0);
	ck_assert_int_eq(try_send(again), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 3);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
}
END_TEST

/* Not one that only has not looked yet. */
START_TEST(a_slow_peer_is_waited_for)
{
	int i;

	peer_publish(1);
	addr = peer_insert(1);
	fake.shm.tx_eagain = true;
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(send_often(addr), -FI_EAGAIN);
	fake.shm.tx_eagain = false;
	ck_assert_int_eq(try_send(addr), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
	expect_path(fx.ep, addr, FI_DUO_LOCAL, FI_DUO_REGISTERED);
}
END_TEST

/* The receiver relies on it: messages to one address take one path. */
START_TEST(not_after_a_message)
{
	peer_publish(1);
	addr = peer_insert(1);
	ck_assert_int_eq(try_send(addr), 0);
	fake.shm.tx_eagain = true;
	peer_refuses();
	ck_assert_int_eq(send_often(addr), -FI_EAGAIN);
	ck_assert_int_eq(send_often(peer_insert(1)), -FI_EAGAIN);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
}
END_TEST

/* Another peer that refuses us is no matter, nor is one without a file. */
START_TEST(each_for_itself)
{
	fi_addr_t gone;

	peer_publish(1);
	peer_publish(2);
	addr = peer_insert(1);
	peer_insert(2);
	peer_refuses();
	peer_publish(3);
	gone = peer_insert(3);
	peer_withdraw();
	fake.shm.tx_eagain = true;
	ck_assert_int_eq(send_often(addr), -FI_EAGAIN);
	ck_assert_int_eq(send_often(gone), -FI_EAGAIN);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
}
END_TEST

struct other {
	struct fid_av *av;
	struct fid_ep *ep;
};

/* Another endpoint, with an AV of its own. */
static void other_open(struct other *other)
{
	static const struct fixture_attr plain;
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fi_info *info = fixture_info(&plain);

	fake.core.own_addr = OTHER;
	ck_assert_int_eq(fi_av_open(fx.domain, &attr, &other->av, NULL), 0);
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &other->ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(other->ep, &other->av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(other->ep, &fx.cq->fid,
				    FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_enable(other->ep), 0);
	fi_freeinfo(info);
}

/* Both sides, without the test's help. */
START_TEST(the_receiver_says_so)
{
	const char *name = fixture_ep()->publication.peer_name;
	uint64_t own_addr = fake.core.own_addr;
	struct other other;
	fi_addr_t back;

	other_open(&other);
	addr = peer_insert(OTHER);
	expect_path(fx.ep, addr, FI_DUO_LOCAL, FI_DUO_REGISTERED);
	fake.shm.tx_eagain = true;
	ck_assert_int_eq(send_often(addr), -FI_EAGAIN);
	ck_assert_int_eq(shm_unlink(name), 0);
	ck_assert_int_eq(fi_av_insert(other.av, &own_addr, 1, &back, 0, NULL),
			 1);
	ck_assert_int_eq(send_often(addr), 0);
	expect_path(fx.ep, addr, FI_DUO_CORE, FI_DUO_NOT_MAPPED);
	ck_assert_int_eq(fi_close(&other.ep->fid), 0);
	ck_assert_int_eq(fi_close(&other.av->fid), 0);
}
END_TEST

static atomic_int sender_tid;
static ssize_t sender_ret;

static void *sender_run(void *arg)
{
	atomic_store(&sender_tid, syscall(SYS_gettid));
	sender_ret = try_send(addr);
	return NULL;
}

/* The third word of its stat, behind its name in parentheses. */
static bool sender_sleeps(void)
{
	char path[64], text[512] = "";
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
		 atomic_load(&sender_tid));
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	ck_assert_uint_gt(len, 0);
	return !strncmp(strrchr(text, ')'), ") S", 3);
}

/* It has chosen shm and waits for the lock; meanwhile the core takes over. */
START_TEST(another_thread_is_sending)
{
	struct duo_lock *lock = &fixture_ep()->domain->lock;
	pthread_t sender;

	peer_publish(1);
	addr = peer_insert(1);
	duo_lock(lock);
	ck_assert_int_eq(pthread_create(&sender, NULL, sender_run, NULL), 0);
	while (!atomic_load(&sender_tid) || !sender_sleeps())
		sched_yield();
	duo_map_refuse(fixture_ep(), 0);
	duo_unlock(lock);
	ck_assert_int_eq(pthread_join(sender, NULL), 0);
	ck_assert_int_eq(sender_ret, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("refused");
	TCase *tcase = unit_case(suite, "refused", setup, fixture_close);

	tcase_add_test(tcase, the_core_takes_over);
	tcase_add_test(tcase, a_slow_peer_is_waited_for);
	tcase_add_test(tcase, not_after_a_message);
	tcase_add_test(tcase, each_for_itself);
	tcase_add_test(tcase, the_receiver_says_so);
	tcase_add_test(tcase, another_thread_is_sending);
	return unit_run(suite);
}
