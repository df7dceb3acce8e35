/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi/entry_hook.c: the fabrics and domains that the hook replaces by ofi_duo's.
 * libfabric calls the hook with a fabric of the core, here the fake core.
 */

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "fake.h"
#include "fi/entry.h"
#include "info_fixture.h"
#include "near/logged.h"

static struct fi_provider *hook;
static struct fi_provider core = { .name = "efa" };
static struct fid_fabric *core_fabric, *fabric;
static struct fid_domain *domain;
static bool nested_is_ours;
static struct fi_ops_fabric nesting_ops, inner_ops;

/*
 * Loads the hook as libfabric does: libfabric has defined the parameter "hook"
 * before. Names in FI_HOOK are not case-sensitive.
 */
static void setup(void)
{
	struct fi_param *params;
	int count;

	setenv("FI_HOOK", "perf;Duo", 1);
	if (!fi_getparams(&params, &count))
		fi_freeparams(params);
	hook = fi_prov_ini();
	ck_assert_ptr_nonnull(hook);
	fake_init();
	info_setup();
	core_fabric = fake_fabric_open(FI_DUO_CORE);
	core_fabric->fid.context = NULL;
	core_fabric->api_version = FI_VERSION(1, 18);
}

static int install(void)
{
	struct fi_fabric_attr attr = { .fabric = core_fabric };

	fabric = core_fabric;
	return hook->fabric(&attr, &fabric, &core);
}

static void teardown(void)
{
	if (domain)
		ck_assert_int_eq(fi_close(&domain->fid), 0);
	domain = NULL;
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	ck_assert_int_eq(fake.path[FI_DUO_CORE].live, 0);
	info_teardown();
	fake_fini();
}

static bool is_ours(struct fid_domain *opened)
{
	return opened->fid.ops->ops_open != fake_ops_open;
}

UNIT_CASE("hook", setup, teardown);

UNIT_TEST(provider_has_no_getinfo)
{
	ck_assert_ptr_null(hook->getinfo);
	ck_assert_str_eq(hook->name, "ofi_hook_duo");
	ck_assert_int_eq(install(), 0);
	ck_assert_ptr_ne(fabric, core_fabric);
	ck_assert_int_eq(fabric->api_version, FI_VERSION(1, 18));
	ck_assert_str_eq(duo_fabric_of(fabric)->core_name, "efa");
}

/*
 * The hook must not replace these fabrics: that of shm, which efa opens for
 * itself; those of ofi_duo and near; and the core's fabric that ofi_duo has
 * opened ("<core>;ofi_duo"). It replaces none if local_on is false.
 */
UNIT_TEST(other_fabrics_are_not_replaced)
{
	core.name = "shm";
	ck_assert_int_eq(install(), -FI_ENODEV);
	core.name = "ofi_duo";
	ck_assert_int_eq(install(), -FI_ENODEV);
	core.name = "near";
	ck_assert_int_eq(install(), -FI_ENODEV);
	core.name = "efa";
	core_fabric->fid.context = DUO_WRAPPED;
	ck_assert_int_eq(install(), -FI_ENODEV);
	core_fabric->fid.context = NULL;
	duo_params.local_on = false;
	ck_assert_int_eq(install(), -FI_ENODEV);
	duo_params.local_on = true;
	ck_assert_ptr_eq(fabric, core_fabric);
}

/* fi_domain() passes a NULL info on to the hook, without a check. */
UNIT_TEST(domain_without_info_is_rejected)
{
	ck_assert_int_eq(install(), 0);
	ck_assert_int_eq(fi_domain(fabric, NULL, &domain, NULL), -FI_EINVAL);
}

static void with_direct(void)
{
	free(info->fabric_attr->name);
	info->fabric_attr->name = strdup("efa-direct");
}

static void with_prefix(void)
{
	info->mode |= FI_MSG_PREFIX;
	info->ep_attr->msg_prefix_size = 8;
}

static void of_core(const char *name)
{
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup(name);
}

static void with_needed_prefix(void)
{
	with_prefix();
	of_core("verbs");
}

#define CORE_CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE | \
		   FI_LOCAL_COMM | FI_REMOTE_COMM)
/* capabilities that cores list for each domain, but reject when used */
#define DOMAIN_CALLS (FI_AV_USER_ID | FI_SHARED_AV | FI_PEER)

/* no change: the value that info_of_core() stores */
#define UNCHANGED DUO_HINT_INFO(true, caps), CORE_CAPS

/*
 * Changes of the core's info: a field and its value, and a function. "why" is
 * the logged cause if the domain stays the core's; NULL: ofi_duo replaces the
 * domain.
 */
static const struct {
	const char *name;
	struct duo_hint field;
	uint64_t value;
	void (*change)(void);
	const char *why;
} infos[] = {
	{ "all that near has", UNCHANGED, NULL, NULL },
	{ "larger injects", DUO_HINT_MAX(tx_attr, inject_size), 1 << 16, NULL,
	  NULL },
	{ "more in flight", DUO_HINT_MAX(tx_attr, size), 1 << 16, NULL, NULL },
	{ "calls of a domain", DUO_HINT_SET(domain_attr, caps),
	  FI_LOCAL_COMM | FI_REMOTE_COMM | DOMAIN_CALLS, NULL, NULL },
	{ "FI_MSG_PREFIX of efa", UNCHANGED, with_prefix, NULL },
	{ "FI_MSG_PREFIX of others", UNCHANGED, with_needed_prefix,
	  "the core verbs: mode has FI_MSG_PREFIX" },
	{ "connected endpoints", DUO_HINT_MAX(ep_attr, type), FI_EP_MSG, NULL,
	  "type is not FI_EP_RDM" },
	{ "datagrams", DUO_HINT_MAX(ep_attr, type), FI_EP_DGRAM, NULL,
	  "type is not FI_EP_RDM" },
	{ "efa-direct", UNCHANGED, with_direct, "efa-direct" },
	{ "FI_COLLECTIVE", DUO_HINT_INFO(true, caps), CORE_CAPS | FI_COLLECTIVE,
	  NULL, "the core efa: caps is 0x" },
	{ "more buffers to send", DUO_HINT_MAX(tx_attr, iov_limit),
	  DUO_IOV_LIMIT + 1, NULL,
	  "tx_attr->iov_limit is 0x5, ofi_duo supports 0x4" },
	{ "more buffers to receive", DUO_HINT_MAX(rx_attr, iov_limit),
	  DUO_IOV_LIMIT + 1, NULL, "rx_attr->iov_limit" },
	{ "two transmit contexts", DUO_HINT_MAX(ep_attr, tx_ctx_cnt), 2, NULL,
	  "ep_attr->tx_ctx_cnt" },
	{ "a shared receive context", DUO_HINT_MAX(ep_attr, rx_ctx_cnt),
	  FI_SHARED_CONTEXT, NULL, "ep_attr->rx_ctx_cnt" },
	{ "a capability of the domain", DUO_HINT_SET(domain_attr, caps),
	  FI_LOCAL_COMM | FI_REMOTE_COMM | 1ULL << 60, NULL,
	  "domain_attr->caps" },
};

static void info_of_core(void)
{
	info->caps = CORE_CAPS;
	info->tx_attr->caps = FI_MSG | FI_TAGGED | FI_SEND;
	info->rx_attr->caps = FI_MSG | FI_TAGGED | FI_RECV | FI_SOURCE;
	info->tx_attr->msg_order = info->rx_attr->msg_order = FI_ORDER_SAS;
	info->tx_attr->iov_limit = info->rx_attr->iov_limit = DUO_IOV_LIMIT;
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
	info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	info->domain_attr->cq_data_size = 8;
	info->domain_attr->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	info->fabric_attr->fabric = NULL;
	info->domain_attr->domain = NULL;
	info->mode = 0;
	of_core("efa");
}

UNIT_LOOP(domain_is_replaced_if_near_supports_it, 0, ARRAY_SIZE(infos))
{
	ck_assert_int_eq(install(), 0);
	info_of_core();
	info_set(info, &infos[_i].field, infos[_i].value);
	if (infos[_i].change)
		infos[_i].change();
	logged_level = FI_LOG_INFO;
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_msg(is_ours(domain) == !infos[_i].why, "%s", infos[_i].name);
	ck_assert_int_eq(logged_lines, !is_ours(domain));
	ck_assert_msg(!infos[_i].why || strstr(logged, infos[_i].why),
		      "\"%s\" in \"%s\"", infos[_i].why, logged);
}

/* The core may be able to copy device memory that near cannot copy. */
UNIT_TEST(uncopyable_device_memory_keeps_core_domain)
{
	ck_assert_int_eq(install(), 0);
	info_of_core();
	info->caps |= FI_HMEM;
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert(!is_ours(domain));
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, "Set FI_MR_HMEM"), "%s", logged);
}

/*
 * Takes the place of the core's fi_domain(). During the call it opens a fabric
 * and a domain of another provider, as a nested core does. The hook must not
 * replace this domain. Returns an error.
 */
static int nesting_domain(struct fid_fabric *fid, struct fi_info *from,
			  struct fid_domain **out, void *context)
{
	struct fi_fabric_attr attr = { .fabric = core_fabric };
	struct fid_fabric *inner = core_fabric;
	struct fid_domain *opened;

	core_fabric->ops = &inner_ops;
	ck_assert_int_eq(hook->fabric(&attr, &inner, &core), -FI_ENODEV);
	ck_assert_int_eq(fi_domain(fabric, from, &opened, NULL), 0);
	nested_is_ours = is_ours(opened);
	ck_assert_int_eq(fi_close(&opened->fid), 0);
	return -FI_ENOMEM;
}

UNIT_TEST(nested_domain_is_not_replaced)
{
	struct fi_ops_fabric *fake_ops_of = core_fabric->ops;
	struct fid_domain *opened;

	nesting_ops = inner_ops = *fake_ops_of;
	ck_assert_int_eq(install(), 0);
	info_of_core();
	nested_is_ours = true;
	nesting_ops.domain = nesting_domain;
	core_fabric->ops = &nesting_ops;
	ck_assert_int_eq(fi_domain(fabric, info, &opened, NULL), -FI_ENOMEM);
	core_fabric->ops = fake_ops_of;
	ck_assert(!nested_is_ours);
	/* the next domain is ofi_duo's */
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert(is_ours(domain));
}

/*
 * With FI_PROGRESS_AUTO the application need not poll, so a thread of ofi_duo
 * must poll.
 */
UNIT_TEST(auto_progress_starts_thread)
{
	ck_assert_int_eq(install(), 0);
	info_of_core();
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	info->domain_attr->threading = FI_THREAD_DOMAIN;
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert(is_ours(domain));
	ck_assert(duo_domain_of(domain)->progress.pid);
	ck_assert(duo_domain_of(domain)->group.lock.on);
}

static void open_auto(void)
{
	ck_assert_int_eq(install(), 0);
	info_of_core();
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
}

/*
 * Opens a domain while a seccomp filter rejects clone() for this thread.
 * LeakSanitizer's thread at exit is not affected.
 */
static void *open_without_threads(void *arg)
{
	(void) arg;
	unit_reject(SYS_clone, SECCOMP_RET_ERRNO | EAGAIN);
	unit_reject(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	open_auto();
	return NULL;
}

/*
 * If the thread for FI_PROGRESS_AUTO cannot be created, the hook does not
 * replace the core's domain.
 */
UNIT_TEST(failed_thread_keeps_core_domain)
{
	unit_thread_end(unit_thread(open_without_threads, NULL));
	ck_assert(!is_ours(domain));
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, "no thread for FI_PROGRESS_AUTO"), "%s",
		      logged);
}

static int refuse_close(struct fid *fid)
{
	return -FI_EBUSY;
}

UNIT_TEST(thread_survives_failed_close)
{
	static struct fi_ops refusing = { .close = refuse_close };
	struct fi_ops *ops;
	struct fid *core_domain;

	open_auto();
	core_domain = &duo_domain_of(domain)->path_domain[FI_DUO_CORE]->fid;
	ops = core_domain->ops;
	core_domain->ops = &refusing;
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	ck_assert(duo_domain_of(domain)->progress.pid);
	ck_assert(!atomic_load(&duo_domain_of(domain)->progress.stop));
	core_domain->ops = ops;
}

UNIT_TEST(manual_progress_starts_no_thread)
{
	ck_assert_int_eq(install(), 0);
	info_of_core();
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert(!duo_domain_of(domain)->progress.pid);
}

/*
 * The test is omitted with TSan, which forbids threads in a forked child, and
 * with ASan: if a process forks while another thread allocates, ASan's
 * allocator stays locked in the child, whose threads then do not start.
 */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static atomic_bool churned;

static void *churn(void *arg)
{
	struct fid_domain *opened;

	(void) arg;
	/*
	 * no ck_assert(), which takes a lock: a child that is forked while this
	 * thread holds the lock would wait for it forever
	 */
	while (!atomic_load(&churned)) {
		if (fi_domain(fabric, info, &opened, NULL) ||
		    fi_close(&opened->fid))
			ck_abort_msg("a domain cannot be opened and closed");
	}
	return NULL;
}

/*
 * A process forks while another thread closes a domain. The child can open
 * domains and close inherited ones.
 */
UNIT_TEST(forked_child_opens_and_closes)
{
	struct fid_domain *opened;
	pthread_t thread;
	int i, status;
	pid_t pid;

	open_auto();
	atomic_store(&churned, false);
	thread = unit_thread(churn, NULL);
	for (i = 0; i < 20; i++) {
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (!pid) {
			alarm(200);
			_exit(fi_domain(fabric, info, &opened, NULL) ||
			      fi_close(&opened->fid) ||
			      fi_close(&domain->fid));
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
	atomic_store(&churned, true);
	unit_thread_end(thread);
}
#endif
