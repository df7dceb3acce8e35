/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <poll.h>

#include "wait_fixture.h"

static struct fid_cq *peer_cq;
struct fid_ep *peer;
fi_addr_t local, far;

static void open_peer(const struct fixture_attr *attr)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_info *info = fixture_info(attr);

	fake.core.own_addr++;
	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &peer_cq, NULL), 0);
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &peer, NULL), 0);
	fi_freeinfo(info);
	ck_assert_int_eq(fi_ep_bind(peer, &fx.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(peer, &peer_cq->fid,
				    FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_enable(peer), 0);
}

void wait_open(const struct fixture_attr *attr)
{
	fixture_open(attr);
	ck_assert_int_eq(fixture_try(attr), 0);
	open_peer(attr);
	local = peer_insert(1000);
	far = peer_insert(2);
	ck_assert_uint_eq(peer_insert(1001), far + 1);
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
	ck_assert_int_eq(fi_tinject(peer, text, strlen(text), local, TAG), 0);
	return NULL;
}
