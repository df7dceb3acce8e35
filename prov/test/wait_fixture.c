/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <poll.h>

#include "wait_fixture.h"

static struct fid_cq *peer_cq;
struct fid_ep *peer;
fi_addr_t to_us;

static void open_peer(const struct fixture_attr *attr)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };

	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &peer_cq, NULL), 0);
	peer = fixture_another(attr, 0);
	ck_assert_int_eq(fi_ep_bind(peer, &peer_cq->fid,
				    FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_enable(peer), 0);
}

void wait_open(const struct fixture_attr *attr)
{
	fixture_start(attr);
	open_peer(attr);
	to_us = peer_insert(1000);
	remote = peer_insert(2);
	local = peer_insert(1001);
}

void wait_close(void)
{
	ck_assert_int_eq(fi_close(&peer->fid), 0);
	ck_assert_int_eq(fi_close(&peer_cq->fid), 0);
	fixture_close();
}

int trywait(struct fid *fid)
{
	return duo_trywait(&fx.fabric.fabric_fid, &fid, 1);
}

int woken(struct fid *fid, int ms)
{
	struct pollfd fd = { .events = POLLIN };

	ck_assert_int_eq(fi_control(fid, FI_GETWAIT, &fd.fd), 0);
	return poll(&fd, 1, ms);
}

void *say(void *text)
{
	ck_assert_int_eq(fi_tinject(peer, text, strlen(text), to_us, TAG), 0);
	return NULL;
}

struct slot slot[2];

struct fid *sleeper(void)
{
	return fx.cntr ? &fx.cntr->fid : &fx.cq->fid;
}

void fall_asleep(void)
{
	struct fi_cq_tagged_entry entry;
	int i, ret = -FI_EAGAIN;

	for (i = 0; ret == -FI_EAGAIN && i < 10000; i++) {
		if (fx.cntr)
			fi_cntr_read(fx.cntr);
		else
			ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1),
					 -FI_EAGAIN);
		ret = trywait(sleeper());
	}
	ck_assert_int_eq(ret, 0);
}

void local_message(void)
{
	post_recv(&slot[0], local, TAG);
	fall_asleep();
	say("local");
}

void far_message(void)
{
	post_recv(&slot[0], remote, TAG);
	fall_asleep();
	far("far");
}

void receive_posted(void)
{
	fall_asleep();
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(woken(sleeper(), LONG_MS), 1);
	fall_asleep();
	ck_assert_uint_eq(fake_core_posted(), 1);
	far("far");
}
