/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_getinfo() of near: hints beyond the limits of near get no info, but a log
 * message.
 */

#include <stdio.h>

#include "base/hints.h"
#include "logged.h"
#include "side.h"

static struct fi_info *hints;
static struct fi_info *info;

static void info_setup(void)
{
	side_module();
	hints = fi_allocinfo();
	hints->fabric_attr->prov_name = strdup(NEAR_NAME);
	info = NULL;
	logged_level = FI_LOG_INFO;
	logged_lines = 0;
}

static void info_teardown(void)
{
	fi_freeinfo(hints);
	fi_freeinfo(info);
}

/* Frees the previous info, and gets a new one. */
static int info_get(const char *node)
{
	fi_freeinfo(info);
	info = NULL;
	return duo_getinfo(FI_VERSION(1, 17), node, NULL, 0, hints, &info);
}

static void info_rejected(const char *node, const char *words)
{
	logged_lines = 0;
	ck_assert_int_eq(info_get(node), -FI_ENODATA);
	ck_assert_ptr_null(info);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, words), "%s: %s", words, logged);
}

enum info_part {
	INFO_EP,
	INFO_DOMAIN,
	INFO_TX,
	INFO_RX,
};

/* Limits of 64-bit fields: the largest accepted value of a hint */
static const struct info_limit {
	const char *name;
	enum info_part part;
	size_t at;
	uint64_t most;
} info_limits[] = {
#define INFO_LIMIT(part, attr, field, most) \
	{ #attr "->" #field, part, offsetof(struct fi_##attr, field), most }
	INFO_LIMIT(INFO_EP, ep_attr, max_msg_size, SIZE_MAX / 2),
	INFO_LIMIT(INFO_EP, ep_attr, max_order_raw_size, SIZE_MAX / 2),
	INFO_LIMIT(INFO_EP, ep_attr, max_order_war_size, SIZE_MAX / 2),
	INFO_LIMIT(INFO_EP, ep_attr, max_order_waw_size, SIZE_MAX / 2),
	INFO_LIMIT(INFO_EP, ep_attr, tx_ctx_cnt, 1),
	INFO_LIMIT(INFO_EP, ep_attr, rx_ctx_cnt, 1),
	INFO_LIMIT(INFO_DOMAIN, domain_attr, cq_data_size, 8),
	INFO_LIMIT(INFO_DOMAIN, domain_attr, mr_key_size, 8),
	INFO_LIMIT(INFO_DOMAIN, domain_attr, mr_iov_limit, 1),
	INFO_LIMIT(INFO_DOMAIN, domain_attr, mr_cnt, 1 << 17),
	INFO_LIMIT(INFO_DOMAIN, domain_attr, max_ep_stx_ctx, 0),
	INFO_LIMIT(INFO_DOMAIN, domain_attr, max_ep_srx_ctx, 0),
	INFO_LIMIT(INFO_DOMAIN, domain_attr, max_err_data, 0),
	INFO_LIMIT(INFO_TX, tx_attr, comp_order, 0),
	INFO_LIMIT(INFO_TX, tx_attr, inject_size, NEAR_INJECT),
	INFO_LIMIT(INFO_TX, tx_attr, size, NEAR_TX_SIZE),
	INFO_LIMIT(INFO_TX, tx_attr, iov_limit, NEAR_IOV_MAX),
	INFO_LIMIT(INFO_TX, tx_attr, rma_iov_limit, 1),
	INFO_LIMIT(INFO_RX, rx_attr, comp_order, 0),
	INFO_LIMIT(INFO_RX, rx_attr, size, NEAR_TX_SIZE),
	INFO_LIMIT(INFO_RX, rx_attr, iov_limit, NEAR_IOV_MAX),
};

static uint64_t *info_field(const struct fi_info *of,
			    const struct info_limit *limit)
{
	void *attr[] = {
		[INFO_EP] = of->ep_attr,
		[INFO_DOMAIN] = of->domain_attr,
		[INFO_TX] = of->tx_attr,
		[INFO_RX] = of->rx_attr,
	};

	return (uint64_t *)((char *)attr[limit->part] + limit->at);
}

UNIT_CASE("info", info_setup, info_teardown);

UNIT_ROUNDS(hints_within_limits_get_info, 0, ARRAY_SIZE(info_limits))
{
	const struct info_limit *limit = &info_limits[_i];

	*info_field(hints, limit) = limit->most;
	ck_assert_msg(!info_get(NULL), "%s", limit->name);
	ck_assert_uint_ge(*info_field(info, limit), limit->most);
	ck_assert_int_eq(logged_lines, 0);
}

UNIT_ROUNDS(hints_beyond_limits_get_none, 0, ARRAY_SIZE(info_limits))
{
	const struct info_limit *limit = &info_limits[_i];

	*info_field(hints, limit) = limit->most + 1;
	info_rejected(NULL, limit->name);
}

UNIT_TEST(info_kinds)
{
	hints->caps = FI_MSG | FI_HMEM;
	info_rejected(NULL, "caps");
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_DGRAM;
	info_rejected(NULL, "type");
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	info_rejected(NULL, "data_progress");
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->name = strdup("eth0");
	info_rejected(NULL, "eth0");
}

UNIT_TEST(info_node)
{
	info_rejected("127.0.0.1", "127.0.0.1");
}

/*
 * Orders between messages and RMA are costly. So an info must have only those
 * orders that the hints request.
 */
UNIT_TEST(info_has_requested_orders_only)
{
	hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
	ck_assert_int_eq(info_get(NULL), 0);
	ck_assert_uint_eq(info->tx_attr->msg_order & DUO_ORDER_MIXED,
			  FI_ORDER_SAW);
	ck_assert_uint_eq(info->rx_attr->msg_order & DUO_ORDER_MIXED,
			  FI_ORDER_SAW);
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->caps = FI_MSG | FI_RMA | FI_FENCE;
	ck_assert_int_eq(info_get(NULL), 0);
	ck_assert_uint_eq(info->tx_attr->msg_order & DUO_ORDER_MIXED, 0);
}

UNIT_TEST(hints_for_others_log_nothing)
{
	strcpy(hints->fabric_attr->prov_name, "far");
	hints->domain_attr->mr_iov_limit = 7;
	ck_assert_int_eq(info_get(NULL), -FI_ENODATA);
	ck_assert_int_eq(logged_lines, 0);
}

static const struct info_mode {
	int asked;
	int given;
	bool virt_addrs;
	bool prov_keys;
} info_modes[] = {
	{ 0, 0, false, false },
	{ DUO_MR_BASIC, DUO_MR_BASIC, true, true },
	{ DUO_MR_SCALABLE, DUO_MR_SCALABLE, false, false },
	{ FI_MR_VIRT_ADDR | FI_MR_LOCAL, FI_MR_VIRT_ADDR, true, false },
	{ FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED,
	  FI_MR_VIRT_ADDR | FI_MR_PROV_KEY, true, true },
};

UNIT_ROUNDS(domain_has_mr_mode_of_info, 0, ARRAY_SIZE(info_modes))
{
	const struct info_mode *mode = &info_modes[_i];
	struct fid_fabric *fabric = side_fabric();
	char bytes[8];
	struct fid_domain *opened;
	struct fid_mr *mr, *again;

	hints->domain_attr->mr_mode = mode->asked;
	ck_assert(!info_get(NULL));
	ck_assert_int_eq(info->domain_attr->mr_mode, mode->given);
	ck_assert(!fi_domain(fabric, info, &opened, NULL));
	ck_assert(duo_domain_of(opened)->virt_addrs == mode->virt_addrs);
	ck_assert(!fi_mr_reg(opened, bytes, sizeof(bytes), FI_REMOTE_READ, 0,
			     77, 0, &mr, NULL));
	ck_assert_int_eq(fi_mr_key(mr) != 77, mode->prov_keys);
	if (!mode->prov_keys)
		ck_assert_int_eq(fi_mr_reg(opened, bytes, sizeof(bytes),
					   FI_REMOTE_READ, 0, 77, 0, &again,
					   NULL), -FI_ENOKEY);
	ck_assert(!fi_close(&mr->fid));
	ck_assert(!fi_close(&opened->fid));
	ck_assert(!fi_close(&fabric->fid));
}

static const struct info_opened {
	enum fi_threading threading;
	int mr_mode;
	bool ok;
} info_opened[] = {
	{ FI_THREAD_DOMAIN, FI_MR_VIRT_ADDR, true },
	{ FI_THREAD_UNSPEC, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY, true },
	{ FI_THREAD_SAFE, FI_MR_VIRT_ADDR, false },
	{ FI_THREAD_DOMAIN, FI_MR_PROV_KEY, false },
};

/*
 * near needs the descriptors of buffers in device memory. So FI_HMEM must
 * require FI_MR_HMEM.
 */
UNIT_TEST(hmem_requires_descriptors)
{
	ck_assert(!info_get(NULL));
	ck_assert(!(info->caps & FI_HMEM));
	hints->caps = FI_MSG | FI_RMA | FI_HMEM;
	info_rejected(NULL, "FI_HMEM without FI_MR_HMEM");
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_LOCAL;
	ck_assert(!info_get(NULL));
	ck_assert(info->caps & FI_HMEM && info->tx_attr->caps & FI_HMEM &&
		  info->rx_attr->caps & FI_HMEM);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_HMEM);
}

/*
 * The hints have the fids of an open fabric and of an open domain, which has no
 * lock. An info is returned only if this domain suffices for the hints.
 */
UNIT_ROUNDS(open_fids_get_matching_info, 0, ARRAY_SIZE(info_opened))
{
	struct fid_fabric *fabric = side_fabric();
	struct fid_domain *opened;

	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	ck_assert(!info_get(NULL));
	ck_assert(!fi_domain(fabric, info, &opened, NULL));
	/* the fids identify the provider */
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = NULL;
	hints->fabric_attr->fabric = _i & 1 ? fabric : NULL;
	hints->domain_attr->domain = opened;
	hints->domain_attr->threading = info_opened[_i].threading;
	hints->domain_attr->mr_mode = info_opened[_i].mr_mode;
	if (info_opened[_i].ok) {
		ck_assert(!info_get(NULL));
		ck_assert_ptr_eq(info->fabric_attr->fabric, fabric);
		ck_assert_ptr_eq(info->domain_attr->domain, opened);
		ck_assert_int_eq(info->domain_attr->threading,
				 FI_THREAD_DOMAIN);
		ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
	} else {
		info_rejected(NULL, "domain");
	}
	ck_assert(!fi_close(&opened->fid));
	ck_assert(!fi_close(&fabric->fid));
	hints->fabric_attr->prov_name = strdup(NEAR_NAME);
	info_rejected(NULL, "is not an open one");
}
