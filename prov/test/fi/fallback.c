/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint that cannot use shared memory uses the core: for all peers, or
 * for one. path() of struct fi_ops_duo returns the reason.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_ext.h>

#include "fixture.h"
#include "near/logged.h"

static const struct fixture_attr plain, without_shm = { .no_shm = true };
static fi_addr_t addr;
static struct slot slot;

/* Asserts one warning, with this text as cause or remedy. */
static void expect_warning(const char *text)
{
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, "the core tcp carries all messages"),
		      "%s", logged);
	ck_assert_msg(strstr(logged, text), "no \"%s\": %s", text, logged);
}

/* Opens the endpoint, and asserts that it has no local side. */
static void start_without_local(void)
{
	ck_assert_int_eq(fixture_try(&plain), 0);
	ck_assert_ptr_null(fixture_ep()->path_ep[FI_DUO_LOCAL]);
}

static void send_one(fi_addr_t to)
{
	char context;

	ck_assert_int_eq(send_x(fx.ep, to, &context), 0);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
}

static void expect_core_works(void)
{
	send_one(addr);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	post_recv(&slot, addr, TAG);
	fake_core_arrive(DUO_TAGGED, addr, TAG, "far");
	expect_recv(&slot, "far", addr);
}

UNIT_CASE("fallback", NULL, fixture_close);

UNIT_TEST(missing_shm_provider_uses_core)
{
	fixture_start(&without_shm);
	ck_assert_ptr_null(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	peer_publish(1);
	addr = peer_insert(1);
	expect_path(fx.ep, addr, FI_DUO_CORE, FI_DUO_LOCAL_OFF);
	expect_core_works();
	/*
	 * the core gets wildcard receives at once, as there is no local
	 * transport
	 */
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	poll_cq(1);
	ck_assert_uint_eq(fake_core_posted(), 1);
}

/* A live process has published the same core address. */
UNIT_TEST(published_address_uses_core)
{
	fixture_open(&plain);
	peer_publish(fake.core.own_addr);
	start_without_local();
	expect_warning("A live process has this address");
	addr = peer_insert(1);
	expect_core_works();
}

/* A failed process with the same core address has left its record. */
UNIT_TEST(record_of_dead_process_is_replaced)
{
	pid_t child;

	fixture_open(&plain);
	/* this opens the registry, so that no sweep is due in fi_enable() */
	close(duo_registry_open(duo_params.registry_dir, NULL));
	child = fork();
	if (!child) {
		peer_publish(fake.core.own_addr);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_int_eq(unit_dir_count(), 1);
	ck_assert_int_eq(fixture_try(&plain), 0);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	ck_assert_int_eq(logged_lines, 0);
	ck_assert_int_eq(unit_dir_count(), 1);
}

/*
 * There is already a file with the name of this endpoint's record, but the file
 * is not a record. The warning must have the file's name.
 */
UNIT_TEST(foreign_file_uses_core)
{
	char path[DUO_PATH_MAX], name[DUO_PATH_MAX], text[2 * DUO_PATH_MAX];

	fixture_start(&plain);
	strcpy(name, strrchr(fixture_ep()->publication.path, '/'));
	fixture_close();
	fixture_open(&plain);
	close(duo_registry_open(duo_params.registry_dir, path));
	snprintf(text, sizeof(text), "%s%s", path, name);
	close(open(text, O_CREAT | O_WRONLY, 0600));
	start_without_local();
	expect_warning(text);
	expect_warning("remove it");
	unlink(text);
}

UNIT_TEST(missing_registry_uses_core)
{
	fixture_open(&plain);
	duo_params.registry_dir = "/nonexistent/ofi_duo";
	start_without_local();
	expect_warning("FI_OFI_DUO_REGISTRY_DIR");
	addr = peer_insert(1);
	expect_core_works();
}

/*
 * A stopped process holds the registry's lock. So ofi_duo cannot count the
 * endpoints over shm, and must not use shm. If _i is 1, the local transport is
 * near, which needs no count and must work.
 */
UNIT_LOOP(locked_registry_uses_core_without_near, 0, 2)
{
	const struct fixture_attr attr = { .near = _i };
	int lock;

	fixture_open(&attr);
	lock = duo_registry_lock(duo_params.registry_dir,
				 DUO_REGISTRY_EXCLUSIVE);
	ck_assert_int_ge(lock, 0);
	ck_assert_int_eq(fixture_try(&attr), 0);
	ck_assert_int_eq(!fixture_ep()->path_ep[FI_DUO_LOCAL], !_i);
	ck_assert_int_eq(logged_lines, !_i);
	if (!_i) {
		expect_warning("continue or end it");
		addr = peer_insert(1);
		expect_core_works();
	}
	duo_registry_unlock(lock);
}

static uint64_t shm_compat_id(void)
{
	struct duo_publication pub;

	ck_assert_int_eq(duo_shm_publish(&pub), 0);
	return pub.compat_id;
}

/* Counts one more endpoint of shm; returns the number of all counted ones. */
static int count_endpoint(int dir)
{
	return duo_registry_count_ep(dir, shm_compat_id());
}

/*
 * ofi_duo permits DUO_SHM_ENDPOINTS endpoints over shm, because an AV of shm
 * has only 256 entries. If _i is 0, DUO_SHM_ENDPOINTS endpoints exist already,
 * and the new endpoint must use the core. If _i is 1, one endpoint less exists,
 * and the new endpoint must use shm. Endpoints that have ended still count as
 * long as the shared memory of any endpoint (its region) exists.
 */
UNIT_LOOP(endpoint_beyond_shm_limit_uses_core, 0, 2)
{
	int i, dir, count = DUO_SHM_ENDPOINTS - _i;

	fixture_open(&plain);
	peer_publish(1);
	dir = duo_registry_lock(duo_params.registry_dir, DUO_REGISTRY_SHARED);
	ck_assert_int_ge(dir, 0);
	for (i = 1; i <= count; i++)
		ck_assert_int_eq(count_endpoint(dir), i);
	duo_registry_unlock(dir);
	ck_assert_int_eq(fixture_try(&plain), 0);
	ck_assert_int_eq(!fixture_ep()->path_ep[FI_DUO_LOCAL], !_i);
	if (!_i)
		expect_warning("250 endpoints over shm");
	else
		ck_assert_int_eq(logged_lines, 0);
}

/*
 * When the last endpoint ends, ofi_duo removes the registry's directory, and
 * with it the count.
 */
UNIT_TEST(last_endpoint_resets_shm_count)
{
	int dir;

	fixture_start(&plain);
	fixture_close();
	fixture_open(&plain);
	dir = duo_registry_open(duo_params.registry_dir, NULL);
	ck_assert_int_eq(count_endpoint(dir), 1);
	ck_assert_int_eq(count_endpoint(dir), 2);
	/* a sweep that finds no region of shm does this */
	duo_registry_reset_count(dir, shm_compat_id());
	ck_assert_int_eq(count_endpoint(dir), 1);
	close(dir);
}

UNIT_TEST(peer_beyond_shm_limit_uses_core)
{
	fixture_start(&plain);
	fake.shm.full = true;
	peer_publish(1);
	addr = peer_insert(1);
	expect_core_works();
	expect_path(fx.ep, addr, FI_DUO_CORE, FI_DUO_NO_PEER_SLOT);
}

/* The peer's process runs, but its shared memory (region) was removed. */
UNIT_TEST(peer_without_region_uses_core)
{
	const char *name;

	fixture_start(&plain);
	name = peer_publish(1);
	ck_assert_int_eq(shm_unlink(name), 0);
	addr = peer_insert(1);
	expect_core_works();
	expect_path(fx.ep, addr, FI_DUO_CORE, FI_DUO_NOT_MAPPED);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_ptr_nonnull(strstr(logged, name));
	ck_assert_ptr_nonnull(strstr(logged, "No such file"));
	ck_assert_ptr_nonnull(strstr(logged, "the core tcp carries"));
}

/*
 * Limits this process to "left" more bytes of address space. Returns the
 * earlier limit.
 */
static rlim_t limit_space(size_t left)
{
	size_t pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(statm);
	ck_assert_int_eq(fscanf(statm, "%zu", &pages), 1);
	fclose(statm);
	return unit_limit(RLIMIT_AS, pages * sysconf(_SC_PAGESIZE) + left);
}

/* shm reserves address space for the shared memory of all possible peers. */
UNIT_TEST(missing_address_space_uses_core)
{
	fixture_open(&plain);
	limit_space((size_t) 1 << 30);
	unit_check_space();
	start_without_local();
	expect_warning("ulimit -v");
	addr = peer_insert(1);
	expect_core_works();
}

/*
 * fi_enable() has no address space for the routes (8 MiB). The core's endpoint
 * must not be enabled yet: the next fi_enable() enables it, and tcp permits
 * this only once.
 */
UNIT_TEST(missing_space_for_routes_leaves_core_disabled)
{
	rlim_t unlimited;
	struct fid_ep *ep;
	int calls;

	fixture_start(&plain);
	ep = fixture_another(&plain, FI_TRANSMIT | FI_RECV);
	calls = fake.path[FI_DUO_CORE].calls;
	unlimited = limit_space((size_t) 4 << 20);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOMEM);
	unit_limit(RLIMIT_AS, unlimited);
	ck_assert_int_eq(fake.path[FI_DUO_CORE].calls, calls);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_ptr_nonnull(duo_ep_of(ep)->path_ep[FI_DUO_LOCAL]);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
}

UNIT_TEST(path_reports_reason_of_peer)
{
	fi_addr_t unknown;

	fixture_start(&plain);
	peer_publish(1);
	local = peer_insert(1);
	unknown = peer_insert(2);
	expect_path(fx.ep, local, FI_DUO_LOCAL, FI_DUO_OK);
	expect_path(fx.ep, unknown, FI_DUO_CORE, FI_DUO_UNDECIDED);
	send_one(unknown);
	expect_path(fx.ep, unknown, FI_DUO_CORE, FI_DUO_NOT_REGISTERED);
	peer_publish(2);	/* published after the first send */
	send_one(unknown);
	expect_path(fx.ep, unknown, FI_DUO_CORE, FI_DUO_NOT_REGISTERED);
}

UNIT_TEST(invalid_path_calls_fail)
{
	enum fi_duo_reason reason;
	enum fi_duo_path path;
	struct fi_ops_duo *ops;
	int i;

	fixture_start(&plain);
	ck_assert_int_eq(fi_open_ops(&fx.ep->fid, "other", 0, (void **) &ops,
				     NULL), -FI_ENOSYS);
	ops = ops_of(fx.ep);
	ck_assert_int_eq(ops->path(fx.ep, 0, &path, &reason), -FI_EINVAL);
	ck_assert_int_eq(ops->path(fx.ep, FI_ADDR_UNSPEC, &path, &reason),
			 -FI_EINVAL);
	addr = peer_insert(1);
	ck_assert_int_eq(ops->path(fx.ep, addr, NULL, &reason), -FI_EINVAL);
	ck_assert_int_eq(ops->stats(fx.ep, NULL, 0), -FI_EINVAL);
	for (i = -1; i <= FI_DUO_REASON_COUNT; i++)
		ck_assert_ptr_nonnull(ops->reason_str(i));
}

/* The caller's struct fi_duo_stats may be shorter or longer. */
UNIT_TEST(statistics_fit_size_of_caller)
{
	struct fi_duo_stats stats[2];
	struct fi_ops_duo *ops;

	fixture_start(&plain);
	ops = ops_of(fx.ep);
	memset(stats, 0xa5, sizeof(stats));
	ck_assert_int_eq(ops->stats(fx.ep, stats, 8), 0);
	ck_assert_uint_eq(stats[0].path[0].tx_msgs, 0);
	ck_assert_uint_eq(stats[0].path[0].tx_bytes, 0xa5a5a5a5a5a5a5a5);
	ck_assert_int_eq(ops->stats(fx.ep, stats, sizeof(stats)), 0);
	ck_assert_uint_eq(stats[0].core_polls, 0);
	ck_assert_uint_eq(stats[1].path[0].tx_msgs, 0xa5a5a5a5a5a5a5a5);
}

UNIT_TEST(shm_of_core_is_disabled)
{
	fixture_start(&plain);
	ck_assert(fake.core.shm_off);
}

/* Cores other than efa may need the prefix themselves. */
UNIT_TEST(msg_prefix_of_other_cores_is_rejected)
{
	struct fi_info *info = fi_allocinfo();
	struct fid_ep *ep;

	fixture_start(&plain);
	info->ep_attr->type = FI_EP_RDM;
	info->mode = FI_MSG_PREFIX;
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &ep, NULL), -FI_EINVAL);
	fi_freeinfo(info);
}

/*
 * near copies the blocks of a message in any order. An endpoint that requires
 * an order uses the core. The option cannot be set after fi_enable.
 */
UNIT_TEST(ordered_blocks_use_core)
{
	struct fid_ep *ep;
	bool order = true;

	fixture_start(&plain);
	ep = fixture_another(&plain, FI_TRANSMIT | FI_RECV);
	ck_assert_int_eq(ep_set(ep,
				FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES,
				order), 0);
	ck_assert_int_eq(ep_set(ep, FI_OPT_SHARED_MEMORY_PERMITTED, order), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_ptr_null(duo_ep_of(ep)->path_ep[FI_DUO_LOCAL]);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	ck_assert_int_eq(ep_set(fx.ep,
				FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES,
				order), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
}

/* The application forbids shared memory before fi_enable. */
UNIT_TEST(forbidden_shm_uses_core)
{
	bool permitted = false;
	size_t len = sizeof(permitted);
	struct fid_ep *ep;

	fixture_start(&plain);
	ep = fixture_another(&plain, FI_TRANSMIT | FI_RECV);
	ck_assert_int_eq(ep_set(ep, FI_OPT_SHARED_MEMORY_PERMITTED, permitted),
			 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_ptr_null(duo_ep_of(ep)->path_ep[FI_DUO_LOCAL]);
	permitted = true;
	ck_assert_int_eq(ep_set(ep, FI_OPT_SHARED_MEMORY_PERMITTED, permitted),
			 -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_SHARED_MEMORY_PERMITTED, &permitted,
				   &len), 0);
	ck_assert(!permitted);
	/* the fixture's endpoint, on the same AV, still uses shm */
	peer_publish(1);
	addr = peer_insert(1);
	ck_assert_int_eq(send_x(ep, addr, NULL), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	ck_assert_int_eq(send_x(fx.ep, addr, NULL), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
}
