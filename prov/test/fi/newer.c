/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Different versions of libfabric:
 * - An application that was built for an older libfabric passes shorter structs
 *   than ofi_duo's.
 * - A newer libfabric calls functions that older ones lack. It does not check
 *   for NULL, so ofi_duo's tables must have these functions.
 */

#include <sys/mman.h>
#include <unistd.h>
#if __has_include(<rdma/fi_xpu.h>)	/* libfabric 2.7 */
#include <rdma/fi_xpu.h>
#endif

#include "fixture.h"

static char *pages;
static size_t page;

static void setup(void)
{
	page = sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(pages != MAP_FAILED);
	ck_assert_int_eq(mprotect(pages + page, page, PROT_NONE), 0);
	fixture_setup();
}

static void teardown(void)
{
	fixture_close();
	munmap(pages, 2 * page);
}

UNIT_CASE("newer", setup, teardown);

/*
 * fi_cq_open() and fi_cntr_open() must not read beyond attributes with the
 * length of libfabric 2.6.
 */
UNIT_TEST(short_attributes_are_not_overread)
{
	size_t cq_len = offsetof(struct fi_cq_attr, wait_set) +
			sizeof(struct fid_wait *);
	size_t cntr_len = offsetof(struct fi_cntr_attr, flags) +
			  sizeof(uint64_t);
	struct fi_cq_attr *cq_attr = (void *) (pages + page - cq_len);
	struct fi_cntr_attr *cntr_attr = (void *) (pages + page - cntr_len);
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	cq_attr->size = 16;
	ck_assert_int_eq(fi_cq_open(fx.domain, cq_attr, &cq, NULL), 0);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	memset(pages, 0, page);
	ck_assert_int_eq(fi_cntr_open(fx.domain, cntr_attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}

#if FI_MAJOR_VERSION >= 2
static const struct {
	uint32_t version;
	size_t len;	/* size of the application's struct fi_mr_attr */
} mr_cases[] = {
	{ FI_VERSION(1, 8), offsetof(struct fi_mr_attr, iface) },
	{ FI_VERSION(1, 17), offsetof(struct fi_mr_attr, hmem_data) },
	{ FI_VERSION(1, 20), offsetof(struct fi_mr_attr, page_size) },
	{ FI_VERSION(1, 22), offsetof(struct fi_mr_attr, base_mr) },
};

/*
 * fi_mr_regattr() must not read beyond the attributes of the application's API
 * version. Without FI_HMEM "iface" may be undefined, and must not be used.
 */
UNIT_LOOP(short_mr_attributes_are_not_overread, 0, ARRAY_SIZE(mr_cases))
{
	size_t len = mr_cases[_i].len;
	struct fi_mr_attr *attr = (void *) (pages + page - len);
	const struct fi_mr_attr whole = {
		.iov_count = 1, .access = FI_RECV, .requested_key = 42,
		.iface = 0x5a5a,
		.mr_iov = &(struct iovec) { pages, 8 },
	};
	struct fid_mr *mr;

	fx.fabric.fabric_fid.api_version = mr_cases[_i].version;
	memcpy(attr, &whole, len);
	ck_assert_int_eq(fi_mr_regattr(fx.domain, attr, 0, &mr), 0);
	ck_assert_ptr_null(fake.core.base_mr);
	ck_assert_int_eq(((struct fake_obj *) duo_container_of(mr, struct duo_mr,
			 mr_fid)->core)->iface, FI_HMEM_SYSTEM);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}
#endif

#ifdef FI_XPU
UNIT_TEST(no_xpu)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_xpu_ctx(fx.domain, NULL, NULL, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_ep_export_xpu(fx.ep, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_cq_export_xpu(fx.cq, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_cntr_export_xpu(cntr, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_av_lookup2(fx.av, 0, NULL, NULL, 0, NULL),
			 -FI_ENOSYS);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}
#endif
