/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Opens and enables an endpoint once for each call into the core or shm, and
 * makes this call fail. Either the error is returned, or the endpoint works
 * with the core alone. No object may stay open or half initialized.
 */

#include <unistd.h>

#include "fixture.h"

static const struct fixture_attr plain;
/*
 * objects of shm that are open without an endpoint: domain, CQ, and the
 * fixture's fabric
 */
#define SHM_BASE 3

/* Returns the number of calls into a path that a test can make fail. */
static int calls_of(enum fi_duo_path path)
{
	int calls;

	fixture_start(&plain);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	calls = fake.path[path].calls;
	fixture_close();
	ck_assert_int_ge(calls, 7);
	return calls;
}

static void expect_core_alone(int n)
{
	fi_addr_t addr;
	struct slot slot;
	int context;

	ck_assert_msg(!fixture_ep()->path_ep[FI_DUO_LOCAL], "call %d", n);
	ck_assert_msg(!fixture_ep()->shm, "call %d: shm", n);
	ck_assert_int_eq(unit_dir_count(), 0);
	peer_publish(1);
	addr = peer_insert(1);
	ck_assert_int_eq(send_x(fx.ep, addr, &context), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	poll_cq(1);
	ck_assert_int_eq(fake.core.posts, 1);
	fake_core_arrive(DUO_TAGGED, addr, TAG, "far");
	expect_recv(&slot, "far", addr);
}

/* Makes call n fail. Returns true if all objects were opened anyway. */
static bool sweep_step(enum fi_duo_path path, int n)
{
	int ret;

	fixture_open(&plain);
	fake.path[path].fail_at = n;
	ret = fixture_try(&plain);
	ck_assert_msg(ret == 0 || ret == -FAKE_ERROR, "call %d: %d", n, ret);
	ck_assert_msg(fake.path[path].calls >= n, "call %d was not made", n);
	if (!ret) {
		ck_assert_int_le(fake.path[FI_DUO_LOCAL].live, SHM_BASE);
		expect_core_alone(n);
	}
	fixture_close();	/* asserts that no object stays open */
	return !ret;
}

UNIT_CASE("sweep", NULL, NULL);

UNIT_TEST(failed_core_call_leaves_no_object)
{
	int n, calls = calls_of(FI_DUO_CORE), survived = 0;

	for (n = 1; n <= calls; n++)
		survived += sweep_step(FI_DUO_CORE, n);
	/*
	 * only a failure of fi_getname is no error: an endpoint without an
	 * address works, but is not published
	 */
	ck_assert_int_eq(survived, 1);
}

UNIT_TEST(failed_shm_call_uses_core)
{
	int n, calls = calls_of(FI_DUO_LOCAL), survived = 0;

	for (n = 1; n <= calls; n++)
		survived += sweep_step(FI_DUO_LOCAL, n);
	/* only a failure to open the CQ is an error */
	ck_assert_int_eq(survived, calls - 1);
}

UNIT_LOOP(failed_counter_call_leaves_no_object, 0, FI_DUO_PATH_COUNT)
{
	static const struct fixture_attr counts = {
		.no_cqs = true, .cntr_flags = FI_SEND | FI_RECV,
	};
	int n, failed = 0;

	fixture_start(&counts);
	n = fake.path[_i].calls;
	fixture_close();
	for (; n > 0; n--) {
		fixture_open(&counts);
		fake.path[_i].fail_at = n;
		failed += fixture_try(&counts) == -FAKE_ERROR;
		ck_assert_int_ge(fake.path[_i].calls, n);
		fixture_close();
	}
	ck_assert_int_ge(failed, 3);	/* both CQs and the counter */
}

UNIT_CASE("arguments", NULL, NULL);

UNIT_TEST(invalid_arguments_fail)
{
	struct fi_av_attr av_attr = { .type = 99 };
	struct fi_cq_attr cq_attr = { .format = 99 };
	struct fi_info info = { .caps = 0 };
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;

	fixture_setup();
	ck_assert_int_eq(duo_domain_open(&fx.fabric.fabric_fid, NULL, &domain,
					 NULL), -FI_EINVAL);
	ck_assert_int_eq(duo_domain_open(&fx.fabric.fabric_fid, &info, &domain,
					 NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_open(fx.domain, NULL, &av, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_open(fx.domain, &av_attr, &av, NULL),
			 -FI_EINVAL);
	av_attr = (struct fi_av_attr) { .flags = FI_EVENT };
	ck_assert_int_eq(fi_av_open(fx.domain, &av_attr, &av, NULL),
			 -FI_ENOSYS);
	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &cq, NULL),
			 -FI_EINVAL);
	cq_attr = (struct fi_cq_attr) { .wait_obj = FI_WAIT_MUTEX_COND };
	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &cq, NULL),
			 -FI_ENOSYS);
	ck_assert_int_eq(fi_endpoint(fx.domain, &info, &ep, NULL),
			 -FI_EINVAL);
	fixture_close();
}

static const struct {
	const char *name;
	size_t at;	/* offset in fi_info of the pointer to the attributes */
} attr_cases[] = {
	{ "domain", offsetof(struct fi_info, domain_attr) },
	{ "endpoint", offsetof(struct fi_info, ep_attr) },
	{ "transmit", offsetof(struct fi_info, tx_attr) },
	{ "receive", offsetof(struct fi_info, rx_attr) },
};

UNIT_LOOP(endpoint_needs_all_attributes, 0, ARRAY_SIZE(attr_cases))
{
	static const struct fixture_attr rma = { .onesided = true };
	struct fi_info *info = fixture_info(&rma);
	void **at = (void **) ((char *) info + attr_cases[_i].at);
	void *attr = *at;
	struct fid_ep *ep;
	int ret;

	fixture_start(&rma);
	*at = NULL;
	ret = fi_endpoint(fx.domain, info, &ep, NULL);
	ck_assert_msg(ret == -FI_EINVAL, "%s: %d", attr_cases[_i].name, ret);
	*at = attr;
	fi_freeinfo(info);
	fixture_close();
}

static bool no_memory;	/* strndup() fails */

char *strndup(const char *text, size_t len)
{
	char *copy = no_memory ? NULL : calloc(1, len + 1);

	return copy ? memcpy(copy, text, strnlen(text, len)) : NULL;
}

static const struct {
	const char *prov_name, *name;
	bool no_memory;
	int ret;
} fabric_cases[] = {
	{ NULL, NULL, false, -FI_EINVAL },
	{ "tcp", NULL, false, -FI_EINVAL },
	{ ";ofi_duo", NULL, false, -FI_EINVAL },
	{ "efa", "efa-direct", false, -FI_EINVAL },
	{ "tcp;ofi_duo", NULL, true, -FI_ENOMEM },
	{ "efa;ofi_duo", "efa-direct", true, -FI_ENOMEM },
};

UNIT_LOOP(failed_fabric_returns_its_cause, 0, ARRAY_SIZE(fabric_cases))
{
	struct fi_fabric_attr attr = {
		.prov_name = (char *) fabric_cases[_i].prov_name,
		.name = (char *) fabric_cases[_i].name,
	};
	struct fid_fabric *fabric;
	int ret;

	no_memory = fabric_cases[_i].no_memory;
	ret = duo_fabric_open(&attr, &fabric, NULL);
	no_memory = false;
	ck_assert_int_eq(ret, fabric_cases[_i].ret);
}

static void *enable(void *ep_fid)
{
	return (void *) (intptr_t) fi_enable(ep_fid);
}

/* Opens the fixture's endpoint again, without fi_enable. */
static void open_anew(void)
{
	fixture_setup();
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = fixture_another(&plain, FI_TRANSMIT | FI_RECV);
}

/*
 * Calls fi_enable() once for each of its calls into the core, and makes this
 * call fail. The next fi_enable() must bind all objects that are not bound yet.
 */
UNIT_TEST(failed_bind_is_repeated)
{
	struct fake_obj *core;
	int n, failed = 0;

	for (n = 1; failed == n - 1; n++) {
		open_anew();
		core = fake_obj_of(&fixture_ep()->path_ep[FI_DUO_CORE]->fid);
		fake.path[FI_DUO_CORE].fail_at =
			fake.path[FI_DUO_CORE].calls + n;
		if (fi_enable(fx.ep)) {
			failed++;
			ck_assert_int_eq(fi_enable(fx.ep), 0);
		}
		ck_assert_ptr_nonnull(core->tx_cq);
		ck_assert_ptr_nonnull(core->rx_cq);
		fixture_close();
	}
	ck_assert_int_ge(failed, 3);	/* both CQs, and fi_enable */
}

/*
 * fi_enable() waits for the registry's lock. Meanwhile other threads must be
 * able to use the domain.
 */
UNIT_TEST(enable_waits_without_the_lock)
{
	struct duo_lock *lock;
	pthread_t thread;
	int registry, i;

	open_anew();
	registry = duo_registry_lock(duo_params.registry_dir,
				     DUO_REGISTRY_EXCLUSIVE);
	ck_assert_int_ge(registry, 0);
	thread = unit_thread(enable, fx.ep);
	lock = &duo_domain_of(fx.domain)->group.lock;
	for (i = 0; i < 20; i++) {
		usleep(5000);
		/*
		 * each change of the directory extends the wait for the
		 * registry's lock
		 */
		peer_publish(1);
		peer_withdraw();
		/* the thread may hold the lock before its wait */
		while (!duo_lock_try(lock))
			usleep(100);
		if (duo_lock_release(lock))
			duo_lock_wake(lock, 0);
	}
	duo_registry_unlock(registry);
	ck_assert_ptr_null(unit_thread_end(thread));
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	fixture_close();
}
