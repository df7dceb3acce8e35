/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory: each path gets a descriptor of its own, and nobody but the
 * providers ever looks at the memory, which a fault would show.
 */

#include <rdma/fi_errno.h>

#include "fixture.h"
#include "peer/shm/device.h"

#define SIZE 4096
#define DEVICE 3		/* number of the GPU */
#define NEXT 32			/* offset of a second buffer */

static struct fid_mr *mr;
static fi_addr_t local, remote;
static const char *name;
static int context;

static int device_reg(struct fid_mr **region)
{
	const struct iovec iov = { fake.device.base, SIZE };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_SEND | FI_RECV,
		.iface = FI_HMEM_CUDA,
		.device.cuda = DEVICE,
		.requested_key = 1,
	};

	return fi_mr_regattr(fx.domain, &attr, FI_HMEM_DEVICE_ONLY, region);
}

/* near carries the others' messages, but cannot those of a device. */
static void setup(void)
{
	static const struct fixture_attr attr = { .device = true,
						  .near = true };

	fixture_open(&attr);
	ck_assert_int_eq(fixture_try(&attr), 0);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	fake_device_open(SIZE);
	ck_assert_int_eq(device_reg(&mr), 0);
	peer_publish(3);
	name = peer_publish(1);
	remote = peer_insert(2);
	local = peer_insert(1);
}

static void teardown(void)
{
	if (mr)
		ck_assert_int_eq(fi_close(&mr->fid), 0);
	mr = NULL;
	fake_device_close();
	fixture_close();
}

START_TEST(registered_with_both)
{
	const struct duo_mr *ours = duo_container_of(mr, struct duo_mr,
						     mr_fid);
	const struct fake_obj *core = fake_obj_of(&ours->core->fid);
	const struct fake_obj *shm = fake_obj_of(&ours->shm->fid);

	ck_assert_ptr_eq(fi_mr_desc(mr), ours->core->mem_desc);
	ck_assert_int_eq(core->iface, FI_HMEM_CUDA);
	ck_assert_int_eq(shm->iface, FI_HMEM_CUDA);
	ck_assert_uint_eq(core->device, DEVICE);
	ck_assert_uint_eq(shm->device, DEVICE);
	ck_assert_ptr_eq(fixture_ep()->domain->peer, &duo_peer_shm);
}
END_TEST

/* Keys of the application may repeat or be the core's; shm's are ours. */
START_TEST(several_regions)
{
	struct fid_mr *other;
	void *desc;

	ck_assert_int_eq(device_reg(&other), 0);
	desc = duo_device_desc(fixture_ep()->domain, fi_mr_desc(other));
	ck_assert_ptr_nonnull(desc);
	ck_assert_ptr_ne(desc, duo_device_desc(fixture_ep()->domain,
					       fi_mr_desc(mr)));
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert_ptr_nonnull(duo_device_desc(fixture_ep()->domain,
					      fi_mr_desc(mr)));
}
END_TEST

START_TEST(shm_refuses)
{
	struct fid_mr *other = NULL;
	int live = fake.path[FI_DUO_CORE].live;

	fake.path[FI_DUO_LOCAL].fail_at = fake.path[FI_DUO_LOCAL].calls + 1;
	ck_assert_int_eq(device_reg(&other), -FAKE_ERROR);
	ck_assert_ptr_null(other);
	ck_assert_int_eq(fake.path[FI_DUO_CORE].live, live);
}
END_TEST

/* The core may choose another descriptor when a region is enabled. */
START_TEST(enabled_later)
{
	void *shm = duo_device_desc(fixture_ep()->domain, fi_mr_desc(mr));
	void *before = fi_mr_desc(mr);

	ck_assert_int_eq(fi_mr_enable(mr), 0);
	ck_assert_ptr_ne(fi_mr_desc(mr), before);
	ck_assert_ptr_eq(duo_device_desc(fixture_ep()->domain,
					 fi_mr_desc(mr)), shm);
	ck_assert_ptr_null(duo_device_desc(fixture_ep()->domain, before));
}
END_TEST

/* One buffer, several, and a message; to each path. */
static ssize_t send_how(int how, fi_addr_t to)
{
	void *desc[] = { fi_mr_desc(mr), NULL };
	const struct iovec iov[] = {
		{ fake.device.base, 3 }, { "host", 5 },
	};
	const struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = 2, .addr = to,
		.tag = TAG, .context = &context,
	};

	switch (how) {
	case 0:
		return fi_tsend(fx.ep, fake.device.base, 8, desc[0], to, TAG,
				&context);
	case 1:
		return fi_tsendv(fx.ep, iov, desc, 2, to, TAG, &context);
	default:
		return fi_tsendmsg(fx.ep, &msg, 0);
	}
}

START_TEST(sent)
{
	static const enum fi_duo_path path[] = { FI_DUO_CORE, FI_DUO_LOCAL };
	int i;

	for (i = 0; i < 2; i++) {
		strcpy(fake.device.shadow, "device!");
		if (_i)
			strcpy(fake.device.shadow, "dev");
		ck_assert_int_eq(send_how(_i, i ? local : remote), 0);
		ck_assert_int_eq(fake.tx[path[i]].count, 1);
		ck_assert_str_eq(fake.tx[path[i]].payload,
				 _i ? "devhost" : "device!");
		ck_assert_uint_eq(expect_entry(&context,
					       FI_ADDR_NOTAVAIL).flags &
				  FI_SEND, FI_SEND);
	}
}
END_TEST

static void post_device(size_t at, fi_addr_t src)
{
	ck_assert_int_eq(fi_trecv(fx.ep, fake.device.base + at, 16,
				  fi_mr_desc(mr), src, TAG, 0, &context), 0);
}

START_TEST(received_over_shm)
{
	if (_i)
		post_device(NEXT, FI_ADDR_UNSPEC);
	fake_shm_arrive(DUO_TAGGED, name, TAG, "by shm");
	if (!_i) {
		expect_nothing();	/* it comes before its receive */
		post_device(NEXT, FI_ADDR_UNSPEC);
	}
	expect_entry(&context, local);
	ck_assert_str_eq(fake.device.shadow + NEXT, "by shm");
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 1);
}
END_TEST

START_TEST(received_over_the_core)
{
	post_device(NEXT, remote);
	fake_core_arrive(DUO_TAGGED, remote, TAG, "by core");
	expect_entry(&context, remote);
	ck_assert_str_eq(fake.device.shadow + NEXT, "by core");
}
END_TEST

/* It was on the core, and shm's message comes first. */
START_TEST(taken_back_from_the_core)
{
	post_device(0, FI_ADDR_UNSPEC);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);
	fake_shm_arrive(DUO_TAGGED, name, TAG, "by shm");
	expect_entry(&context, local);
	ck_assert_str_eq(fake.device.shadow, "by shm");
	ck_assert_uint_eq(stats_now().arb_won, 1);
}
END_TEST

/* The rest of the buffer could only be written by the host. */
START_TEST(too_large)
{
	if (_i)
		post_device(0, FI_ADDR_UNSPEC);
	fake_shm_arrive(DUO_TAGGED, name, TAG, "more than sixteen bytes");
	if (!_i) {
		expect_nothing();
		post_device(0, FI_ADDR_UNSPEC);
	}
	ck_assert_uint_eq(expect_error(&context, FI_ETRUNC).olen,
			  strlen("more than sixteen bytes") - 16);
	ck_assert_str_eq(fake.device.shadow, "");
}
END_TEST

/* A host buffer after a device's, in the same entry of the pool. */
START_TEST(host_as_well)
{
	struct slot slot;

	post_device(0, FI_ADDR_UNSPEC);
	fake_shm_arrive(DUO_TAGGED, name, TAG, "device");
	expect_entry(&context, local);
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	fake_shm_arrive(DUO_TAGGED, name, TAG, "host");
	expect_recv(&slot, "host", local);
}
END_TEST

/* Switched off, excluded, or its domain cannot be opened. */
static int permit_cuda(bool permitted)
{
	return fi_setopt(&fx.ep->fid, FI_OPT_ENDPOINT,
			 FI_OPT_CUDA_API_PERMITTED, &permitted,
			 sizeof(permitted));
}

/*
 * NCCL and NVSHMEM forbid CUDA, whose calls might wait for their kernels. shm
 * cannot do without, a core that says it can carries everything.
 */
START_TEST(cuda_not_permitted)
{
	static const struct fixture_attr attr = { .device = true };
	struct fi_info *info = fixture_info(&attr);
	bool option = _i;

	fake.core.cuda_option = option;
	ck_assert_int_eq(permit_cuda(false), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &fx.ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &fx.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &fx.cq->fid,
				    FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(permit_cuda(false), option ? 0 : -FI_ENOPROTOOPT);
	ck_assert_int_eq(fi_enable(fx.ep), 0);
	ck_assert_int_eq(!fixture_ep()->path_ep[FI_DUO_LOCAL], option);
	fi_freeinfo(info);
}
END_TEST

START_TEST(without_shm)
{
	const struct fixture_attr attr = { .device = true,
					   .no_shm = _i < 2 };

	fixture_open(&attr);
	duo_params.use_shm = _i > 0;
	setenv("FI_PROVIDER", "^shm", 1);
	if (_i == 2)
		fake.path[FI_DUO_LOCAL].fail_at =
			fake.path[FI_DUO_LOCAL].calls + 1;
	ck_assert_int_eq(fixture_try(&attr), 0);
	unsetenv("FI_PROVIDER");
	fake_device_open(SIZE);
	ck_assert_int_eq(device_reg(&mr), 0);
	ck_assert_ptr_null(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	remote = peer_insert(2);
	strcpy(fake.device.shadow, "device!");
	ck_assert_int_eq(send_how(0, remote), 0);
	ck_assert_str_eq(fake.tx[FI_DUO_CORE].payload, "device!");
	duo_params.use_shm = 1;
}
END_TEST

/* near would read and write such memory by itself. */
START_TEST(rma_alone_is_the_cores)
{
	static const struct fixture_attr attr = {
		.device = true, .near = true,
		.no_caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_SOURCE |
			   FI_DIRECTED_RECV,
	};

	fixture_open(&attr);
	ck_assert_int_eq(fixture_try(&attr), 0);
	fake_device_open(SIZE);
	ck_assert_ptr_null(fixture_ep()->domain->peer);
	ck_assert_ptr_null(fixture_ep()->path_ep[FI_DUO_LOCAL]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device");
	TCase *tcase = unit_case(suite, "device", setup, teardown);

	tcase_add_test(tcase, registered_with_both);
	tcase_add_test(tcase, several_regions);
	tcase_add_test(tcase, shm_refuses);
	tcase_add_test(tcase, enabled_later);
	tcase_add_loop_test(tcase, sent, 0, 3);
	tcase_add_loop_test(tcase, received_over_shm, 0, 2);
	tcase_add_test(tcase, received_over_the_core);
	tcase_add_test(tcase, taken_back_from_the_core);
	tcase_add_loop_test(tcase, too_large, 0, 2);
	tcase_add_test(tcase, host_as_well);
	tcase_add_loop_test(tcase, cuda_not_permitted, 0, 2);
	tcase = unit_case(suite, "no shm", NULL, teardown);
	tcase_add_loop_test(tcase, without_shm, 0, 3);
	tcase_add_test(tcase, rma_alone_is_the_cores);
	return unit_run(suite);
}
