/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "near_fixture.h"

static struct fixture_attr over_near = {
	.near = true, .cntr_flags = FI_SEND,
};

struct rig rig;
fi_addr_t peer;
char large[LARGE], got[LARGE];

static int rig_arrived(void *ctx, struct near_peer *source,
		       struct near_msg *msg)
{
	rig.msg = *msg;
	rig.arrived++;
	if (msg->flags & NEAR_DEVICE)
		return rig.fetch(source, msg);
	if (!msg->payload)
		return near_recv(rig.port, source, &msg->rndv,
				 &(struct iovec) { got, LARGE }, 1, msg->len,
				 &rig);
	memset(rig.payload, 0, sizeof(rig.payload));
	memcpy(rig.payload, msg->payload,
	       msg->len < sizeof(rig.payload) ? msg->len : 63);
	return 0;
}

static void rig_received(void *ctx, void *cookie, int err)
{
	rig.received++;
	rig.err = err;
}

static void rig_sent(void *ctx, void *cookie, int err)
{
	rig.sent++;
	rig.err = err;
}

static int rig_unload(void *ctx, void *cookie, const void *from, void *host,
		      size_t len)
{
	return rig.unload(from, host, len);
}

static void rig_peer(void *ctx, struct near_peer *other)
{
}

const struct near_sink rig_sink = {
	.arrived = rig_arrived,
	.received = rig_received,
	.sent = rig_sent,
	.unload = rig_unload,
	.peer_up = rig_peer,
	.peer_down = rig_peer,
	.peer_release = rig_peer,
};

void rig_publish(enum duo_transport_kind kind, const struct near_addr *addr)
{
	uint64_t core_addr = PEER;

	rig.pub.peer = kind;
	memcpy(rig.pub.peer_name, addr, sizeof(*addr));
	ck_assert_int_eq(duo_registry_reserve(duo_params.registry_dir,
					      &core_addr, sizeof(core_addr),
					      false, &rig.pub), 0);
	ck_assert_int_eq(duo_registry_ready(&rig.pub), 0);
}

void rig_publish_port(void)
{
	struct near_addr addr;

	near_address(rig.port, &addr);
	rig_publish(DUO_TRANSPORT_NEAR, &addr);
}

struct near_port *rig_open_port(struct near_peer **us)
{
	const struct near_attr attr = { .sink = &rig_sink,
					.memory = NEAR_MEMORY };
	struct near_port *port;
	struct near_addr ours;

	ck_assert_int_eq(near_open(&port, &attr), 0);
	near_address(fixture_ep()->near->port, &ours);
	ck_assert_int_eq(near_peer_get(port, &ours, us), 0);
	return port;
}

static void rig_open(void)
{
	memset(&rig, 0, sizeof(rig));
	rig.pub.fd = -1;
	rig.port = rig_open_port(&rig.us);
}

void near_open_as(const struct fixture_attr *attr)
{
	fixture_start(attr);
	ck_assert_ptr_nonnull(fixture_ep()->near);
	rig_open();
}

void near_setup_alone(void)
{
	near_open_as(&over_near);
}

void near_publish(void)
{
	rig_publish_port();
	peer = peer_insert(PEER);
}

void near_setup(void)
{
	near_setup_alone();
	near_publish();
}

void near_setup_unlocked(void)
{
	over_near.threading = FI_THREAD_DOMAIN;
	near_setup();
	/* reads of the CQ take the fast path only if this value is above 1 */
	duo_params.core_poll_interval = 64;
	ck_assert(!fixture_ep()->group->lock.on);
}

void near_setup_two_cqs(void)
{
	over_near.two_cqs = true;
	near_setup_unlocked();
}

void near_setup_onesided(void)
{
	over_near.core = "efa";
	over_near.onesided = true;
	near_setup();
}

void near_setup_device(void)
{
	over_near.device = true;
	near_setup_alone();
	fake_device_open(LARGE);
	near_publish();
}

void near_setup_ordered(void)
{
	over_near.order = FI_ORDER_WAS | FI_ORDER_SAW;
	near_setup_onesided();
}

void rig_end(void)
{
	if (rig.port)
		near_close(rig.port);
	rig.port = NULL;
	duo_registry_withdraw(&rig.pub);
}

void rig_again(void)
{
	rig_open();
	rig_publish_port();
}

void near_teardown(void)
{
	rig_end();
	fixture_close();
}

/* Polls both sides until the CQ has an entry, at most 100,000 times. */
static ssize_t both(struct fi_cq_tagged_entry *entry, fi_addr_t *src)
{
	ssize_t ret = -FI_EAGAIN;
	int i;

	for (i = 0; i < 100000 && ret == -FI_EAGAIN; i++) {
		near_poll(rig.port, &rig_sink);
		ret = fi_cq_readfrom(fx.cq, entry, 1, src);
	}
	return ret;
}

struct fi_cq_tagged_entry both_entry(void *context)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;

	ck_assert_int_eq(both(&entry, &src), 1);
	ck_assert_ptr_eq(entry.op_context, context);
	if (entry.flags & FI_RECV)
		ck_assert_uint_eq(src, peer);
	return entry;
}

struct fi_cq_err_entry both_error(void *context, int err)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;

	ck_assert_int_eq(both(&entry, NULL), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(fx.cq, &error, 0), 1);
	ck_assert_ptr_eq(error.op_context, context);
	ck_assert_int_eq(error.err, err);
	return error;
}

void rig_send(const char *text)
{
	const struct near_msg msg = {
		.payload = text, .len = strlen(text), .tag = TAG,
		.flags = NEAR_TAGGED,
	};

	ck_assert_int_eq(near_send(rig.port, rig.us, &msg), 0);
}

void rig_send_len(unsigned int flags, size_t len)
{
	const struct near_msg msg = {
		.len = len, .tag = TAG, .flags = flags,
	};
	const struct iovec iov = { large, len };
	const struct near_large how = { .iov = &iov, .count = 1,
					.cookie = &rig };

	ck_assert_int_eq(near_send_large(rig.port, rig.us, &msg, &how), 0);
}

void poll_both(int count)
{
	while (count--) {
		near_poll(rig.port, &rig_sink);
		poll_cq(1);
	}
}

void until_sent(void)
{
	while (!rig.sent)
		poll_both(1);
}

void post_large(void *context)
{
	ck_assert_int_eq(fi_trecv(fx.ep, got, LARGE, NULL, peer, TAG, 0,
				  context), 0);
}

void post_multi(void *context, void *buf, size_t len, void *desc,
		fi_addr_t src)
{
	const struct iovec iov = { buf, len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = src,
		.context = context,
	};

	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_MULTI_RECV), 0);
}

struct fi_cq_err_entry until_reset(void *context)
{
	while (fi_cq_read(fx.cq, NULL, 0) == -FI_EAGAIN)
		;
	return expect_error(context, FI_ECONNRESET);
}
