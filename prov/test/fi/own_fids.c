/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi/opened.c: fids of fabrics and domains in hints and infos. Applications get
 * only those of ofi_duo, the core only its own. fi_getinfo() and fi_fabric() of
 * this program act as the core's.
 */

#include <stdio.h>
#include <rdma/fi_errno.h>

#include "fake.h"
#include "near/logged.h"

/* MR modes of the fake core */
#define MODES (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY)
#define CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV)
#define ONESIDED (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | \
		  FI_REMOTE_WRITE)

/* The fids in the infos that the fake core returns. */
enum answer { ANSWER_NULL, ANSWER_OWN, ANSWER_HINTED };

static struct {
	enum answer answer;
	const char *fabric, *domain;	/* names in the returned infos */
	/* capabilities in the infos besides those of the hints */
	uint64_t caps;
	int asked; /* number of the core's fi_getinfo calls */
	struct fid_fabric *hinted_fabric;
	struct fid_domain *hinted_domain;
	int hinted_modes;		/* MR modes in the hints */
} core;

static struct fid_fabric foreign_fabric;
static struct fid_domain foreign_domain;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fi_info *hints, *info;

int fi_getinfo(uint32_t version, const char *node, const char *service,
	       uint64_t flags, const struct fi_info *asked,
	       struct fi_info **out)
{
	struct fi_info *is;

	core.asked++;
	core.hinted_fabric = asked->fabric_attr->fabric;
	core.hinted_domain = asked->domain_attr->domain;
	core.hinted_modes = asked->domain_attr->mr_mode;
	is = fi_dupinfo(asked);
	ck_assert_ptr_nonnull(is);
	is->caps = (asked->caps ? asked->caps : CAPS) | core.caps;
	is->domain_attr->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	is->domain_attr->mr_mode &= MODES;
	free(is->fabric_attr->name);
	free(is->domain_attr->name);
	is->fabric_attr->name = strdup(core.fabric);
	is->domain_attr->name = strdup(core.domain);
	if (core.answer == ANSWER_NULL) {
		is->fabric_attr->fabric = NULL;
		is->domain_attr->domain = NULL;
	} else if (core.answer == ANSWER_OWN) {
		is->fabric_attr->fabric = fabric ? duo_fabric_of(fabric)
			->path_fabric[FI_DUO_CORE] : &foreign_fabric;
		is->domain_attr->domain = domain ? duo_domain_of(domain)
			->path_domain[FI_DUO_CORE] : &foreign_domain;
	}
	*out = is;
	return 0;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out,
	      void *context)
{
	ck_assert_ptr_null(attr->fabric);
	*out = fake_fabric_open(FI_DUO_CORE);
	return 0;
}

static bool no_memory;	/* strdup() fails */

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = no_memory ? NULL : malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

static int ask(void)
{
	fi_freeinfo(info);
	info = NULL;
	core.asked = logged_lines = 0;
	return duo_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
}

static void setup(void)
{
	fake_init();
	core.fabric = "efa";
	core.domain = "rdmap0-rdm";
	hints = fi_allocinfo();
	hints->fabric_attr->prov_name = strdup("efa;ofi_duo");
	hints->caps = CAPS;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	logged_level = FI_LOG_INFO;
}

static void open_both(void)
{
	ck_assert_int_eq(ask(), 0);
	/* libfabric does this for an application that opens an info */
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup("efa;ofi_duo");
	ck_assert_int_eq(duo_fabric_open(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
}

static void close_both(void)
{
	if (domain)
		ck_assert_int_eq(fi_close(&domain->fid), 0);
	if (fabric)
		ck_assert_int_eq(fi_close(&fabric->fid), 0);
	domain = NULL;
	fabric = NULL;
}

static void teardown(void)
{
	close_both();
	fi_freeinfo(hints);
	fi_freeinfo(info);
	ck_assert_int_eq(fake.path[FI_DUO_CORE].live, 0);
	fake_fini();
}

static void hint(struct fid_fabric *fabric_fid, struct fid_domain *domain_fid)
{
	hints->fabric_attr->fabric = fabric_fid;
	hints->domain_attr->domain = domain_fid;
}

static void expect_fids(struct fid_fabric *want_fabric,
			struct fid_domain *want_domain)
{
	ck_assert_ptr_eq(info->fabric_attr->fabric, want_fabric);
	ck_assert_ptr_eq(info->domain_attr->domain, want_domain);
}

UNIT_CASE("own fids", setup, teardown);

UNIT_TEST(info_has_no_fids_of_core)
{
	core.answer = ANSWER_OWN;
	ck_assert_int_eq(ask(), 0);
	expect_fids(NULL, NULL);
	open_both();
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, domain);
}

/*
 * fi_fabric(3): without fids in the hints, the info has the fids of the fabric
 * and domain that were opened first and are still open.
 */
UNIT_TEST(info_has_first_open_fids)
{
	struct fid_fabric *first_fabric;
	struct fid_domain *first_domain;

	open_both();
	first_fabric = fabric;
	first_domain = domain;
	open_both();
	ck_assert_ptr_ne(fabric, first_fabric);
	ck_assert_int_eq(ask(), 0);
	expect_fids(first_fabric, first_domain);
	hint(fabric, domain);
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, domain);
	close_both();
	fabric = first_fabric;
	domain = first_domain;
	close_both();
	hint(NULL, NULL);
	ck_assert_int_eq(ask(), 0);
	expect_fids(NULL, NULL);
}

UNIT_LOOP(fids_in_hints_become_those_of_core, ANSWER_NULL, ANSWER_HINTED + 1)
{
	open_both();
	core.answer = _i;
	hint(fabric, domain);
	ck_assert_int_eq(ask(), 0);
	ck_assert_ptr_eq(core.hinted_fabric,
			 duo_fabric_of(fabric)->path_fabric[FI_DUO_CORE]);
	ck_assert_ptr_eq(core.hinted_domain,
			 duo_domain_of(domain)->path_domain[FI_DUO_CORE]);
	expect_fids(fabric, domain);
}

UNIT_LOOP(hints_with_one_fid_get_both, 0, 2)
{
	open_both();
	hint(_i ? NULL : fabric, _i ? domain : NULL);
	ck_assert_int_eq(ask(), 0);
	ck_assert_ptr_nonnull(core.hinted_fabric);
	ck_assert_int_eq(!!core.hinted_domain, _i);
	expect_fids(fabric, domain);
}

/*
 * The hints have a fid that is not one of ofi_duo's. The call must fail before
 * it calls the core or reads memory behind the fid. If _i & 1 is set, the
 * fabric has such a fid. If _i & 2 is set, the domain has such a fid.
 */
UNIT_LOOP(foreign_fids_in_hints_are_rejected, 1, 4)
{
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("tcp;ofi_duo");
	open_both();
	hint(_i & 1 ? (void *) 8 : NULL, _i & 2 ? (void *) 16 : NULL);
	ck_assert_int_eq(ask(), -FI_ENODATA);
	ck_assert_int_eq(core.asked, 0);
	ck_assert_msg(strstr(logged, "is not an open one") != NULL, "%s",
		      logged);
}

UNIT_TEST(closed_fids_in_hints_are_rejected)
{
	open_both();
	hint(fabric, domain);
	close_both();
	ck_assert_int_eq(ask(), -FI_ENODATA);
	ck_assert_int_eq(logged_lines, 1);
}

UNIT_TEST(domain_of_other_fabric_is_rejected)
{
	struct fid_fabric *other;

	open_both();
	hint(fabric, domain);
	ck_assert_int_eq(duo_fabric_open(info->fabric_attr, &other, NULL), 0);
	hints->fabric_attr->fabric = other;
	ck_assert_int_eq(ask(), -FI_ENODATA);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_int_eq(fi_close(&other->fid), 0);
}

UNIT_TEST(fabric_of_other_core_is_rejected)
{
	open_both();
	hint(fabric, domain);
	strcpy(hints->fabric_attr->prov_name, "tcp;ofi_duo");
	ck_assert_int_eq(ask(), -FI_ENODATA);
	ck_assert_int_eq(core.asked, 0);
}

UNIT_TEST(fabric_without_name_calls_its_core)
{
	unsetenv("FI_PROVIDER");
	duo_params.cores = (char *) "verbs";
	open_both();
	hint(fabric, domain);
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = NULL;
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, domain);
}

UNIT_TEST(info_of_other_device_gets_no_domain)
{
	open_both();
	core.domain = "rdmap1-rdm";
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, NULL);
	hint(fabric, domain);
	ck_assert_int_eq(ask(), -FI_ENODATA);
	hints->domain_attr->domain = NULL;
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, NULL);
	core.fabric = "efa2";
	ck_assert_int_eq(ask(), -FI_ENODATA);
	hints->fabric_attr->fabric = NULL;
	ck_assert_int_eq(ask(), 0);
	expect_fids(NULL, NULL);
}

static const struct {
	enum fi_threading has, asked;
	bool ok;
	enum fi_threading given;
} thread_cases[] = {
	{ FI_THREAD_SAFE, FI_THREAD_SAFE, true, FI_THREAD_SAFE },
	{ FI_THREAD_SAFE, FI_THREAD_DOMAIN, true, FI_THREAD_DOMAIN },
	{ FI_THREAD_SAFE, FI_THREAD_COMPLETION, true, FI_THREAD_COMPLETION },
	{ FI_THREAD_SAFE, FI_THREAD_UNSPEC, true, FI_THREAD_SAFE },
	{ FI_THREAD_DOMAIN, FI_THREAD_DOMAIN, true, FI_THREAD_DOMAIN },
	{ FI_THREAD_DOMAIN, FI_THREAD_UNSPEC, true, FI_THREAD_DOMAIN },
	{ FI_THREAD_DOMAIN, FI_THREAD_SAFE, false, 0 },
	{ FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, false, 0 },
	{ FI_THREAD_COMPLETION, FI_THREAD_SAFE, false, 0 },
	{ FI_THREAD_COMPLETION, FI_THREAD_DOMAIN, true, FI_THREAD_DOMAIN },
	{ FI_THREAD_COMPLETION, FI_THREAD_COMPLETION, true,
	  FI_THREAD_COMPLETION },
};

/* A domain without a lock must not be returned for FI_THREAD_SAFE. */
UNIT_LOOP(unlocked_domain_is_not_shared, 0, ARRAY_SIZE(thread_cases))
{
	hints->domain_attr->threading = thread_cases[_i].has;
	open_both();
	hints->domain_attr->threading = thread_cases[_i].asked;
	hint(fabric, domain);
	ck_assert_int_eq(ask(), thread_cases[_i].ok ? 0 : -FI_ENODATA);
	if (thread_cases[_i].ok)
		ck_assert_int_eq(info->domain_attr->threading,
				 thread_cases[_i].given);
	hint(NULL, NULL);
	if (thread_cases[_i].asked == FI_THREAD_UNSPEC)
		return;	/* the core's info is returned instead */
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, thread_cases[_i].ok ? domain : NULL);
}

/*
 * The hints have the fid of the open domain, and capabilities that this domain
 * lacks. The info has this fid only if the core's info has the fid of the
 * core's domain: then the core has compared the capabilities. With FI_HMEM no
 * info is returned, because the local transport of the open domain does not
 * support device memory.
 */
UNIT_TEST(missing_capabilities_exclude_domain)
{
	open_both();
	hint(fabric, domain);
	hints->caps |= ONESIDED;
	ck_assert_int_eq(ask(), -FI_ENODATA);
	core.answer = ANSWER_HINTED;
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, domain);
	hints->caps |= FI_HMEM;
	ck_assert_int_eq(ask(), -FI_ENODATA);
	hints->caps = FI_TAGGED;
	core.answer = ANSWER_NULL;
	ck_assert_int_eq(ask(), 0);
	expect_fids(fabric, domain);
}

/*
 * The hints have the fid of the open domain, but lack mr_mode bits that this
 * domain requires.
 */
UNIT_TEST(missing_mr_modes_exclude_domain)
{
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_LOCAL;
	open_both();
	hint(fabric, domain);
	ck_assert_int_eq(ask(), 0);
	hints->domain_attr->mr_mode |= FI_MR_PROV_KEY;
	ck_assert_int_eq(ask(), 0);
	hints->domain_attr->mr_mode = FI_MR_LOCAL;
	ck_assert_int_eq(ask(), -FI_ENODATA);
}

static const struct {
	const char *name;
	uint64_t caps;
	int mr_mode, hinted, returned;
} modes[] = {
	{ "RMA", CAPS | ONESIDED, 0, DUO_MR_ANY, MODES & ~FI_MR_LOCAL },
	{ "all capabilities", 0, 0, DUO_MR_ANY, MODES & ~FI_MR_LOCAL },
	{ "messages", CAPS, 0, 0, 0 },
	{ "RMA with modes", CAPS | ONESIDED, FI_MR_VIRT_ADDR,
	  FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR },
};

UNIT_LOOP(hints_without_mr_modes_get_those_of_core, 0, ARRAY_SIZE(modes))
{
	hints->caps = modes[_i].caps;
	hints->domain_attr->mr_mode = modes[_i].mr_mode;
	ck_assert_int_eq(ask(), 0);
	ck_assert_msg(core.hinted_modes == modes[_i].hinted &&
		      info->domain_attr->mr_mode == modes[_i].returned,
		      "%s: 0x%x, 0x%x", modes[_i].name, core.hinted_modes,
		      info->domain_attr->mr_mode);
}

/*
 * The domain is opened for messages only. Later an endpoint with RMA is opened
 * in this domain. From then on, near must execute RMA: the domain must have a
 * region table with the regions that are registered afterwards.
 */
UNIT_TEST(message_domain_executes_rma)
{
	struct fid_mr *early, *mr;
	struct fid_ep *ep;
	char buf[64];

	open_both();
	ck_assert_ptr_null(duo_domain_of(domain)->table);
	ck_assert_int_eq(fi_mr_reg(domain, buf, sizeof(buf), FI_REMOTE_WRITE,
				   0, 1, 0, &early, NULL), 0);
	core.answer = ANSWER_HINTED;
	hint(fabric, domain);
	hints->caps |= ONESIDED;
	hints->ep_attr->type = FI_EP_RDM;
	ck_assert_int_eq(ask(), 0);
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	ck_assert_ptr_nonnull(duo_domain_of(domain)->table);
	ck_assert_int_eq(fi_mr_reg(domain, buf, sizeof(buf), FI_REMOTE_WRITE,
				   0, 2, 0, &mr, NULL), 0);
	ck_assert(duo_container_of(mr, struct duo_mr, mr_fid)->listed);
	ck_assert(!duo_container_of(early, struct duo_mr, mr_fid)->listed);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_int_eq(fi_close(&early->fid), 0);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
}

UNIT_TEST(other_endpoint_types_get_no_info)
{
	core.fabric = "efa-direct";
	core.answer = ANSWER_NULL;
	hints->ep_attr->type = FI_EP_DGRAM;
	ck_assert_int_eq(ask(), -FI_ENODATA);
	hints->ep_attr->type = FI_EP_RDM;
	ck_assert_int_eq(ask(), 0);
}

/* The fabric efa-direct is not wrapped: its info keeps the core's fids. */
UNIT_TEST(efa_direct_keeps_core_fids)
{
	core.fabric = "efa-direct";
	hint(&foreign_fabric, &foreign_domain);
	core.answer = ANSWER_HINTED;
	ck_assert_int_eq(ask(), 0);
	ck_assert_ptr_eq(core.hinted_fabric, &foreign_fabric);
	expect_fids(&foreign_fabric, &foreign_domain);
	hint(NULL, NULL);
	core.fabric = "efa";
	open_both();
	hint(fabric, domain);
	core.fabric = "efa-direct";
	ck_assert_int_eq(ask(), -FI_ENODATA);
	/* the core was called once, with the core's fid in the hints */
	ck_assert_int_eq(core.asked, 1);
	ck_assert_ptr_eq(core.hinted_fabric,
			 duo_fabric_of(fabric)->path_fabric[FI_DUO_CORE]);
}

/*
 * Asserts that the memory behind ofi_duo's fids contains the decoy, pointers
 * that are harmless for a provider that takes the fid for one of its own.
 */
static void expect_decoy(const struct duo_decoy *decoy)
{
	const void *const *at;
	int i, depth;

	for (i = 0; i < DUO_DECOY_WORDS; i++) {
		at = decoy->word[i];
		ck_assert_str_eq((const char *) at, "");
		for (depth = 0; depth < DUO_DECOY_WORDS; depth++)
			at = at[(i + depth) % DUO_DECOY_WORDS];
		ck_assert_str_eq((const char *) at, "");
	}
}

UNIT_TEST(fids_are_followed_by_decoys)
{
	open_both();
	ck_assert_ptr_eq(&duo_fabric_of(fabric)->decoy, fabric + 1);
	ck_assert_ptr_eq(&duo_domain_of(domain)->decoy, domain + 1);
	expect_decoy(&duo_fabric_of(fabric)->decoy);
	expect_decoy(&duo_domain_of(domain)->decoy);
}

/* Without shm's name in the hints, any provider might return an info. */
UNIT_TEST(shm_is_not_used_without_memory_for_its_name)
{
	struct duo_fabric over_shm = { .core_name = "efa" };
	int ret;

	no_memory = true;
	ret = duo_transport_shm.fabric_open(&over_shm);
	no_memory = false;
	ck_assert_int_ne(ret, 0);
	ck_assert_int_eq(core.asked, 0);
}
