/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Messages in device memory, over near. A load or store of the fake device
 * memory raises a signal, so ofi_duo must copy it by the device library.
 * Sends over the core must pass the core's descriptors.
 */

#include <errno.h>
#include <sys/syscall.h>

#include "device/device.h"
#include "near/link/port.h"
#include "near_fixture.h"

#define DEVICE 3		/* index of the GPU */
#define NEXT 32			/* offset of a second buffer in device memory */
#define REMOTE 2		/* core address of a peer on another host */

static struct fid_mr *mr;
static int context;

static int device_reg(enum fi_hmem_iface iface, struct fid_mr **region)
{
	const struct iovec iov = { fake.device.base, LARGE };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_SEND | FI_RECV,
		.iface = iface,
		.device.cuda = DEVICE,
		.requested_key = 1,
	};

	return fi_mr_regattr(fx.domain, &attr, FI_HMEM_DEVICE_ONLY, region);
}

static void setup(void)
{
	near_setup_device();
	ck_assert_int_eq(device_reg(FI_HMEM_CUDA, &mr), 0);
	remote = peer_insert(REMOTE);
}

static void teardown(void)
{
	if (mr)
		ck_assert_int_eq(fi_close(&mr->fid), 0);
	mr = NULL;
	near_teardown();
	fake_device_close();
}

static void expect_local(uint64_t tx, uint64_t rx)
{
	const struct fi_duo_stats stats = stats_now();

	ck_assert_uint_eq(stats.path[FI_DUO_LOCAL].tx_msgs, tx);
	ck_assert_uint_eq(stats.path[FI_DUO_LOCAL].rx_msgs, rx);
	ck_assert_uint_eq(stats.path[FI_DUO_CORE].tx_msgs, 0);
	ck_assert_uint_eq(stats.path[FI_DUO_CORE].rx_msgs, 0);
}

UNIT_CASE("device", setup, teardown);

UNIT_TEST(region_is_registered_with_device)
{
	const struct duo_mr *ours = duo_container_of(mr, struct duo_mr,
						     mr_fid);
	const struct fake_obj *core = fake_obj_of(&ours->core->fid);

	ck_assert_ptr_eq(fi_mr_desc(mr), ours->core->mem_desc);
	ck_assert_int_eq(core->iface, FI_HMEM_CUDA);
	ck_assert_uint_eq(core->device, DEVICE);
	ck_assert_int_eq(fake.device.open, 1);
	ck_assert_ptr_eq(fixture_ep()->domain->peer, &duo_transport_near);
}

static bool is_device(void *desc)
{
	return duo_device_handles(fixture_ep()->domain, &desc, 1, NULL);
}

/*
 * fi_mr_enable() may change a region's descriptor. ofi_duo must then recognize
 * only the new one as that of device memory.
 */
UNIT_TEST(changed_descriptor_is_used)
{
	void *before = fi_mr_desc(mr), *second;
	struct fid_mr *other;

	ck_assert_int_eq(device_reg(FI_HMEM_CUDA, &other), 0);
	second = fi_mr_desc(other);
	ck_assert(is_device(second) && is_device(before));
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert(!is_device(second) && is_device(before));
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	ck_assert_ptr_ne(fi_mr_desc(mr), before);
	ck_assert(!is_device(before) && is_device(fi_mr_desc(mr)));
	ck_assert(!is_device(NULL) && !is_device(&context));
}

/* If the device library rejects a region, ofi_duo closes the core's region. */
UNIT_TEST(failed_registration_leaves_no_region)
{
	int live = fake.path[FI_DUO_CORE].live;
	struct fid_mr *other = NULL;

	fake.device.fails = true;
	ck_assert_int_eq(device_reg(FI_HMEM_CUDA, &other), -FI_ENODEV);
	ck_assert_int_eq(device_reg(FI_HMEM_ZE, &other), -FI_ENOSYS);
	ck_assert_ptr_null(other);
	ck_assert_int_eq(fake.path[FI_DUO_CORE].live, live);
	fake.device.fails = false;
}

/* _i of the loops below: the variant of the send */
enum how { ONE, SEVERAL, MESSAGE, DELIVERED, INJECTED, HOWS };

static ssize_t send_how(enum how how, fi_addr_t to)
{
	static const uint64_t flags[HOWS] = {
		[MESSAGE] = FI_COMPLETION,
		[DELIVERED] = FI_COMPLETION | FI_DELIVERY_COMPLETE,
		[INJECTED] = FI_COMPLETION | FI_INJECT,
	};
	void *desc[] = { fi_mr_desc(mr), NULL };
	const struct iovec iov[] = {
		{ fake.device.base, 3 }, { "host", 5 },
	};
	const struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = 2, .addr = to,
		.tag = TAG, .context = &context,
	};

	if (how == ONE)
		return fi_tsend(fx.ep, fake.device.base, 8, desc[0], to, TAG,
				&context);
	if (how == SEVERAL)
		return fi_tsendv(fx.ep, iov, desc, 2, to, TAG, &context);
	return fi_tsendmsg(fx.ep, &msg, flags[how]);
}

UNIT_LOOP(device_buffer_is_sent, 0, HOWS)
{
	strcpy(fake.device.shadow, _i == ONE ? "device!" : "dev");
	ck_assert_int_eq(send_how(_i, peer), 0);
	/*
	 * the send must have copied the buffer: a copy that is still pending
	 * (possible only for DELIVERED) would now send zeros
	 */
	memset(fake.device.shadow, 0, 8);
	ck_assert_uint_eq(both_entry(&context).flags & FI_SEND, FI_SEND);
	near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(rig.arrived, 1);
	ck_assert_str_eq(_i == DELIVERED ? got : rig.payload,
			 _i == ONE ? "device!" : "devhost");
	ck_assert_int_eq(fake.device.copies, 1);
	expect_local(1, 0);
}

UNIT_LOOP(core_send_gets_core_descriptor, 0, HOWS)
{
	strcpy(fake.device.shadow, _i == ONE ? "device!" : "dev");
	ck_assert_int_eq(send_how(_i, remote), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	ck_assert_str_eq(fake.tx[FI_DUO_CORE].payload,
			 _i == ONE ? "device!" : "devhost");
	ck_assert_int_eq(fake.device.copies, 0);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
}

UNIT_TEST(large_device_buffer_is_sent)
{
	memset(fake.device.shadow, 'L', LARGE);
	memset(got, 0, LARGE);
	ck_assert_int_eq(fi_tsend(fx.ep, fake.device.base, LARGE,
				  fi_mr_desc(mr), peer, TAG, &context), 0);
	both_entry(&context);
	ck_assert_mem_eq(got, fake.device.shadow, LARGE);
	ck_assert_uint_eq(stats_now().device_tx_msgs, 1);
	ck_assert_int_eq(fake.device.copies, 4);
	ck_assert_int_eq(rig.received, 1);
	expect_local(1, 0);
}

/*
 * The message is too large for ofi_duo's buffer on the stack, but fits in the
 * ring.
 */
UNIT_TEST(device_buffer_is_sent_through_ring)
{
	enum { LEN = 9000 };

	memset(fake.device.shadow, 'r', LEN);
	ck_assert_int_eq(fi_tinject(fx.ep, "ring", 4, peer, 0), 0);
	near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(fi_tsend(fx.ep, fake.device.base, LEN,
				  fi_mr_desc(mr), peer, TAG, &context), 0);
	both_entry(&context);
	ck_assert_int_eq(fake.device.copies, 1);
	expect_local(2, 0);
}

static void post_device(size_t at, size_t len, fi_addr_t src)
{
	ck_assert_int_eq(fi_trecv(fx.ep, fake.device.base + at, len,
				  fi_mr_desc(mr), src, TAG, 0, &context), 0);
}

/*
 * If bit 0 of _i is set, the receive is posted after the message arrived. If
 * bit 1 is set, the receive is directed.
 */
UNIT_LOOP(device_buffer_receives, 0, 4)
{
	bool late = _i & 1;
	fi_addr_t src = _i & 2 ? peer : FI_ADDR_UNSPEC;

	if (!late)
		post_device(NEXT, 16, src);
	rig_send("by near");
	if (late) {
		poll_cq(2);
		post_device(NEXT, 16, src);
	}
	ck_assert_uint_eq(both_entry(&context).len, 7);
	ck_assert_str_eq(fake.device.shadow + NEXT, "by near");
	ck_assert_int_eq(fake.device.copies, 1);
	ck_assert_uint_eq(stats_now().unexpected, late);
	expect_local(0, 1);
}

/*
 * If bit 0 of _i is set, the receive is posted after the message arrived. If
 * bit 1 is set, the receiver can read the sender's memory (immediate copy).
 */
UNIT_LOOP(device_buffer_receives_large, 0, 4)
{
	bool late = _i & 1;

	fixture_ep()->near->peer[0]->reads = _i & 2;
	memset(large, 'l', LARGE);
	if (!late)
		post_device(0, LARGE, peer);
	rig_send_large(NEAR_TAGGED);
	if (late) {
		poll_cq(2);
		post_device(0, LARGE, peer);
	}
	ck_assert_uint_eq(both_entry(&context).len, LARGE);
	ck_assert_mem_eq(fake.device.shadow, large, LARGE);
	ck_assert_int_eq(fake.device.copies, 4);
	ck_assert_uint_eq(stats_now().device_rx_msgs, 1);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	expect_local(0, 1);
}

UNIT_TEST(device_and_host_buffers_receive)
{
	char host[8] = "";
	void *desc[] = { fi_mr_desc(mr), NULL };
	const struct iovec iov[] = {
		{ fake.device.base, 3 }, { host, sizeof(host) },
	};

	ck_assert_int_eq(fi_trecvv(fx.ep, iov, desc, 2, peer, TAG, 0,
				   &context), 0);
	rig_send("devhost");
	both_entry(&context);
	ck_assert_str_eq(fake.device.shadow, "dev");
	ck_assert_str_eq(host, "host");
	expect_local(0, 1);
}

/*
 * The part of the message that fits in the receive's buffer is copied, and the
 * receive ends with FI_ETRUNC. If bit 0 of _i is set, the receive is posted
 * after the message arrived. If bit 1 is set, the message is large.
 */
UNIT_LOOP(truncated_message_fills_device_buffer, 0, 4)
{
	bool late = _i & 1;
	static char text[200];
	const size_t len = _i & 2 ? LARGE : sizeof(text) - 1;

	memset(text, 't', sizeof(text) - 1);
	memset(large, 't', LARGE);
	if (!late)
		post_device(0, 16, peer);
	if (_i & 2)
		rig_send_large(NEAR_TAGGED);
	else
		rig_send(text);
	if (late) {
		poll_cq(2);
		post_device(0, 16, peer);
	}
	ck_assert_uint_eq(both_error(&context, FI_ETRUNC).olen, len - 16);
	ck_assert_mem_eq(fake.device.shadow, text, 16);
	ck_assert_int_eq(fake.device.shadow[16], 0);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

UNIT_TEST(device_multi_receive_works)
{
	const struct near_msg parts[] = {
		{ .payload = "one", .len = 3 }, { .payload = "two", .len = 3 },
	};
	struct fi_cq_tagged_entry entry;
	int i;

	post_multi(&context, fake.device.base, 4096, fi_mr_desc(mr), peer);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(near_send(rig.port, rig.us, &parts[i]), 0);
		entry = both_entry(&context);
		ck_assert_ptr_eq(entry.buf, fake.device.base + 3 * i);
	}
	ck_assert_str_eq(fake.device.shadow, "onetwo");
	expect_local(0, 2);
}

UNIT_TEST(failed_copy_fails_operation)
{
	struct slot slot;

	fake.device.fails = true;
	ck_assert_int_eq(send_how(ONE, peer), -FI_EIO);
	ck_assert_int_eq(fi_tsend(fx.ep, fake.device.base, LARGE,
				  fi_mr_desc(mr), peer, TAG, &context),
			 -FI_EIO);
	post_device(0, 16, peer);
	rig_send("lost");
	both_error(&context, FI_EIO);
	post_device(0, LARGE, peer);
	rig_send_large(NEAR_TAGGED);
	both_error(&context, FI_EIO);
	post_recv(&slot, peer, TAG);
	rig_send("host");
	both_entry(&slot);
	ck_assert_str_eq(slot.buf, "host");
	expect_local(0, 1);
	fake.device.fails = false;
}

/* The bounce buffer of the domain cannot be allocated. */
UNIT_TEST(send_without_memory_can_be_repeated)
{
	unit_reject_if(SYS_mmap, 1, 256 << 10, SECCOMP_RET_ERRNO | ENOMEM);
	ck_assert_int_eq(send_how(ONE, peer), -FI_EAGAIN);
	ck_assert_int_eq(send_how(DELIVERED, peer), -FI_EAGAIN);
	expect_local(0, 0);
}

UNIT_TEST(core_receive_gets_core_descriptor)
{
	post_device(NEXT, 16, remote);
	fake_core_arrive(DUO_TAGGED, remote, TAG, "by core");
	expect_entry(&context, remote);
	ck_assert_str_eq(fake.device.shadow + NEXT, "by core");
}

UNIT_TEST(recalled_receive_gets_near_message)
{
	post_device(0, 16, FI_ADDR_UNSPEC);
	expect_posted(1);
	rig_send("by near");
	both_entry(&context);
	ck_assert_str_eq(fake.device.shadow, "by near");
	ck_assert_uint_eq(stats_now().recall_ok, 1);
}

UNIT_TEST(entry_is_reused_for_host_memory)
{
	struct slot slot;

	post_device(0, 16, FI_ADDR_UNSPEC);
	rig_send("device");
	both_entry(&context);
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	rig_send("host");
	both_entry(&slot);
	ck_assert_str_eq(slot.buf, "host");
	ck_assert_int_eq(fi_tsend(fx.ep, "host", 5, NULL, peer, TAG, &context),
			 0);
	both_entry(&context);
	ck_assert_int_eq(fake.device.copies, 1);
	expect_local(1, 2);
}

static int permit_cuda(bool permitted)
{
	return ep_set(fx.ep, FI_OPT_CUDA_API_PERMITTED, permitted);
}

static const struct fixture_attr over_near = { .device = true, .near = true };

static void plain_setup(void)
{
	fixture_start(&over_near);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
}

UNIT_CASE("permission", plain_setup, fixture_close);

/*
 * NCCL and NVSHMEM forbid calls of CUDA by FI_OPT_CUDA_API_PERMITTED, because
 * such a call may wait for their kernels. near must call CUDA. If the core
 * supports the option (_i is 1), the core carries all messages. Otherwise
 * ofi_duo rejects the option and uses near.
 */
UNIT_LOOP(forbidden_cuda_uses_core, 0, 2)
{
	bool option = _i;

	fake.core.cuda_option = option;
	ck_assert_int_eq(permit_cuda(false), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = fixture_another(&over_near, FI_TRANSMIT | FI_RECV);
	ck_assert_int_eq(permit_cuda(false), option ? 0 : -FI_ENOPROTOOPT);
	ck_assert_int_eq(fi_enable(fx.ep), 0);
	ck_assert_int_eq(!fixture_ep()->path_ep[FI_DUO_LOCAL], option);
}

static const struct duo_device_iface unsupported_iface = {
	.name = "other", .library = "libc.so.6",
};
static const struct duo_device_iface *const unsupported[] = {
	&unsupported_iface, NULL,
};

UNIT_CASE("without", NULL, NULL);

/*
 * The endpoint uses the core. _i is the reason:
 * - 0: the local transport is disabled
 * - 1: the local transport is shm
 * - 2: ofi_duo cannot copy by the device's library
 * - 3: mr_mode lacks FI_MR_HMEM
 */
UNIT_LOOP(unsupported_device_uses_core, 0, 4)
{
	const struct duo_device_iface *const *saved = duo_device_ifaces;
	const struct fixture_attr attr = {
		.device = true, .near = _i > 1, .no_shm = !_i,
	};
	struct fi_info *info = fixture_info(&attr);
	int kind = _i;

	if (kind == 2)
		duo_device_ifaces = unsupported;
	if (kind == 3)
		info->domain_attr->mr_mode &= ~FI_MR_HMEM;
	fixture_open(&attr);
	ck_assert_int_eq(duo_domain_open(&fx.fabric.fabric_fid, info,
					 &fx.domain, NULL), 0);
	ck_assert_ptr_null(duo_domain_of(fx.domain)->peer);
	duo_device_ifaces = saved;
	fi_freeinfo(info);
	fixture_close();
}

/*
 * near executes RMA of endpoints with message capabilities (_i is 0) and of
 * endpoints without them.
 */
UNIT_LOOP(device_rma_uses_near, 0, 2)
{
	const struct fixture_attr attr = {
		.device = true, .near = true, .onesided = true,
		.no_caps = _i ? FI_MSG | FI_TAGGED | FI_MULTI_RECV |
				FI_SOURCE | FI_DIRECTED_RECV : 0,
	};

	fixture_start(&attr);
	ck_assert_ptr_nonnull(fixture_ep()->domain->table);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	fixture_close();
}
