/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 1 sleeps on the CQ's file descriptor if fi_trywait permits; rank 0 sends
 * at intervals. wake: ns from the send until rank 1 has read the message.
 * wake.idle: wakeups of rank 1, per second, while rank 0 sends nothing.
 */

#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>

#include "bench.h"

#define BN_WAKES 200
#define BN_QUIET_US 2000
#define BN_IDLE_MS 2000

static uint64_t bn_samples[BN_WAKES];
static unsigned int bn_wakes;

/* Sleeps until bn.rx is rx, but not longer than ms milliseconds. */
static void bn_sleep_until(uint64_t rx, int ms)
{
	struct pollfd fd = { .events = POLLIN };
	struct fid *fid = &bn.cq->fid;
	uint64_t end = bn_now() + ms * 1000000ULL, now;
	int ret;

	BN_OK(fi_control(fid, FI_GETWAIT, &fd.fd));
	for (now = bn_now(); bn.rx < rx && now < end; now = bn_now()) {
		ret = fi_trywait(bn.fabric, &fid, 1);
		if (ret && ret != -FI_EAGAIN)
			BN_DIE("fi_trywait: %s", fi_strerror(-ret));
		if (!ret) {
			poll(&fd, 1, (int) ((end - now) / 1000000) + 1);
			bn_wakes++;
		}
		bn_poll();
	}
}

static void bn_wake_0(void)
{
	uint64_t now, tx;
	int i;

	for (i = 0; i < BN_WAKES; i++) {
		usleep(BN_QUIET_US);
		now = bn_now();
		memcpy(bn.sbuf, &now, sizeof(now));
		tx = bn.tx;
		bn_send(bn.peer[1], sizeof(now), BN_TAG);
		bn_wait(tx + 1, bn.rx);
	}
}

static void bn_wake_1(void)
{
	uint64_t sent;
	int i;

	for (i = 0; i < BN_WAKES; i++) {
		bn_recv(bn.peer[0], sizeof(sent), BN_TAG);
		bn_sleep_until(bn.rx + 1, 10000);
		memcpy(&sent, bn.rbuf, sizeof(sent));
		bn_samples[i] = bn_now() - sent;
	}
}

void bn_wake(void)
{
	struct rusage before, after;

	if (!bn.rank) {
		bn_wake_0();
	} else if (bn.rank == 1) {
		bn_wake_1();
		bn_print_ns(bn_samples, BN_WAKES, 1, "wake");
	}
	bn_sync_still();
	if (bn.rank == 1) {
		bn_recv(bn.peer[0], 8, BN_TAG_FREE);
		bn_sleep_until(bn.rx + 1, 20);
		bn_wakes = 0;
		getrusage(RUSAGE_SELF, &before);
		bn_sleep_until(bn.rx + 1, BN_IDLE_MS);
		getrusage(RUSAGE_SELF, &after);
		bn_print((bn_wakes - 1) * 1000.0 / BN_IDLE_MS, "wake.idle");
		bn_print((after.ru_nvcsw - before.ru_nvcsw) * 1000.0 /
			 BN_IDLE_MS, "wake.switches");
	}
	bn_sync_sleeping();
	if (!bn.rank)
		bn_send(bn.peer[1], 8, BN_TAG_FREE);
	bn_sync();
}
