/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_getinfo of the provider near: what it offers, and whether that will do. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fi/api.h"
#include "fi/opened.h"
#include "base/log.h"
#include "obj/domain.h"
#include "obj/fabric.h"
#include "peer/near/onesided.h"

#define NEAR_TX_CAPS \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | \
	 FI_WRITE | FI_FENCE)
#define NEAR_RX_CAPS \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | \
	 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | \
	 FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV)
#define NEAR_RMA_CAPS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define NEAR_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define NEAR_CAPS (NEAR_TX_CAPS | NEAR_RX_CAPS | NEAR_DOMAIN_CAPS)
#define NEAR_ORDER \
	(DUO_ORDER_MIXED | FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | \
	 FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | \
	 FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define NEAR_TX_OPS \
	(FI_COMPLETION | FI_INJECT | FI_FENCE | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define NEAR_RX_OPS (FI_COMPLETION | FI_MULTI_RECV)
#define NEAR_INJECT 4096	/* bytes */
#define NEAR_TX_SIZE 65536	/* operations in flight, each way: a hint */
#define NEAR_CQ_DATA 8
#define NEAR_KEY sizeof(uint64_t)
#define NEAR_REGIONS (1 << 17)
#define NEAR_MOST (SIZE_MAX / 2)
#define NEAR_PROTOCOL 1

/* Whether list, names separated by commas and semicolons, has our name. */
static bool near_named(const char *list)
{
	size_t len;

	for (; list && *list; list += len + !!list[len]) {
		len = strcspn(list, ",;");
		if (len == strlen(NEAR_NAME) &&
		    !strncasecmp(list, NEAR_NAME, len))
			return true;
	}
	return false;
}

/*
 * We claim FI_REMOTE_COMM, as what asks for it would not find us otherwise,
 * and reach one host only. So whoever wants us has to say so.
 */
static bool near_wanted(const struct fi_info *hints,
			const struct duo_opened *opened)
{
	const char *name = hints && hints->fabric_attr ?
			   hints->fabric_attr->prov_name : NULL;

	return near_named(name) ||
	       (!name && (near_named(getenv("FI_PROVIDER")) ||
			  (opened->fabric && !opened->foreign)));
}

/* What keeps us from being offered is said once, with FI_LOG_LEVEL=info. */
static bool near_most(const char *what, uint64_t asked, uint64_t most)
{
	if (asked <= most)
		return true;
	DUO_INFO(CORE, "not offered: the hints' %s is %" PRIu64 ", more than "
		 "%" PRIu64 "\n", what, asked, most);
	return false;
}

static bool near_among(const char *what, uint64_t asked, uint64_t offered)
{
	if (!(asked & ~offered))
		return true;
	DUO_INFO(CORE, "not offered: the hints' %s has 0x%" PRIx64 ", which "
		 "is not in 0x%" PRIx64 "\n", what, asked & ~offered, offered);
	return false;
}

static bool near_called(const char *what, const char *asked)
{
	if (!asked || !strcmp(asked, NEAR_NAME))
		return true;
	DUO_INFO(CORE, "not offered: the hints' %s is %s, not " NEAR_NAME
		 "\n", what, asked);
	return false;
}

static bool near_tx_fits(const struct fi_tx_attr *attr)
{
	return !attr ||
	       (near_among("tx_attr->caps", attr->caps,
			   NEAR_TX_CAPS | NEAR_DOMAIN_CAPS) &&
		near_among("tx_attr->op_flags", attr->op_flags, NEAR_TX_OPS) &&
		near_among("tx_attr->msg_order", attr->msg_order, NEAR_ORDER) &&
		near_among("tx_attr->comp_order", attr->comp_order, 0) &&
		near_most("tx_attr->inject_size", attr->inject_size,
			  NEAR_INJECT) &&
		near_most("tx_attr->size", attr->size, NEAR_TX_SIZE) &&
		near_most("tx_attr->iov_limit", attr->iov_limit,
			  NEAR_IOV_MAX) &&
		near_most("tx_attr->rma_iov_limit", attr->rma_iov_limit, 1));
}

static bool near_rx_fits(const struct fi_rx_attr *attr)
{
	return !attr ||
	       (near_among("rx_attr->caps", attr->caps,
			   NEAR_RX_CAPS | NEAR_DOMAIN_CAPS) &&
		near_among("rx_attr->op_flags", attr->op_flags, NEAR_RX_OPS) &&
		near_among("rx_attr->msg_order", attr->msg_order, NEAR_ORDER) &&
		near_among("rx_attr->comp_order", attr->comp_order, 0) &&
		near_most("rx_attr->size", attr->size, NEAR_TX_SIZE) &&
		near_most("rx_attr->iov_limit", attr->iov_limit,
			  NEAR_IOV_MAX));
}

static bool near_ep_type_fits(enum fi_ep_type type)
{
	if (type == FI_EP_UNSPEC || type == FI_EP_RDM)
		return true;
	DUO_INFO(CORE, "not offered: the hints' ep_attr->type is %d, not "
		 "FI_EP_RDM\n", type);
	return false;
}

static bool near_ep_fits(const struct fi_ep_attr *attr)
{
	return !attr ||
	       (near_ep_type_fits(attr->type) &&
		near_most("ep_attr->protocol", attr->protocol,
			  FI_PROTO_UNSPEC) &&
		near_most("ep_attr->protocol_version", attr->protocol_version,
			  NEAR_PROTOCOL) &&
		near_most("ep_attr->max_msg_size", attr->max_msg_size,
			  NEAR_MOST) &&
		near_most("ep_attr->max_order_raw_size",
			  attr->max_order_raw_size, NEAR_MOST) &&
		near_most("ep_attr->max_order_war_size",
			  attr->max_order_war_size, NEAR_MOST) &&
		near_most("ep_attr->max_order_waw_size",
			  attr->max_order_waw_size, NEAR_MOST) &&
		near_most("ep_attr->tx_ctx_cnt", attr->tx_ctx_cnt, 1) &&
		near_most("ep_attr->rx_ctx_cnt", attr->rx_ctx_cnt, 1) &&
		near_most("ep_attr->auth_key_size", attr->auth_key_size, 0));
}

static bool near_progress_fits(const char *what, enum fi_progress progress)
{
	if (progress != FI_PROGRESS_AUTO)
		return true;
	DUO_INFO(CORE, "not offered: the hints' %s is FI_PROGRESS_AUTO\n",
		 what);
	return false;
}

static bool near_domain_fits(const struct fi_domain_attr *attr)
{
	return !attr ||
	       (near_called("domain_attr->name", attr->name) &&
		near_progress_fits("domain_attr->control_progress",
				   attr->control_progress) &&
		near_progress_fits("domain_attr->data_progress",
				   attr->data_progress) &&
		near_most("domain_attr->cq_data_size", attr->cq_data_size,
			  NEAR_CQ_DATA) &&
		near_most("domain_attr->mr_key_size", attr->mr_key_size,
			  NEAR_KEY) &&
		near_most("domain_attr->mr_iov_limit", attr->mr_iov_limit, 1) &&
		near_most("domain_attr->mr_cnt", attr->mr_cnt, NEAR_REGIONS) &&
		near_most("domain_attr->max_ep_stx_ctx", attr->max_ep_stx_ctx,
			  0) &&
		near_most("domain_attr->max_ep_srx_ctx", attr->max_ep_srx_ctx,
			  0) &&
		near_most("domain_attr->max_err_data", attr->max_err_data, 0) &&
		near_among("domain_attr->caps", attr->caps, NEAR_DOMAIN_CAPS) &&
		near_most("domain_attr->auth_key_size", attr->auth_key_size,
			  0));
}

/*
 * Our keys where either will do: they are never in use. The two modes of before
 * libfabric 1.5 are no sets of bits: one stands for the other's opposite.
 */
static int near_info_mr(int asked)
{
	if (asked == DUO_MR_BASIC || asked == DUO_MR_SCALABLE)
		return asked;
	return asked & (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
}

/* Whether the fids in the hints are ours, and the domain does what they ask. */
static bool near_opened_fits(const struct fi_info *hints,
			     const struct duo_opened *opened)
{
	const struct fi_domain_attr *attr = hints->domain_attr;
	const struct duo_domain *domain = opened->domain;

	if (!duo_opened_ours(opened))
		return false;
	if (!domain ||
	    (!(domain->mr_mode & ~near_info_mr(attr->mr_mode)) &&
	     (domain->lock.on || attr->threading == FI_THREAD_UNSPEC ||
	      attr->threading == FI_THREAD_DOMAIN)))
		return true;
	DUO_INFO(CORE, "not offered: domain %p in the hints has mr_mode 0x%x "
		 "and is %s FI_THREAD_DOMAIN; the hints have mr_mode 0x%x and "
		 "threading %d\n", (const void *) domain, domain->mr_mode,
		 domain->lock.on ? "not" : "of", attr->mr_mode,
		 attr->threading);
	return false;
}

static bool near_fits(const struct fi_info *hints,
		      const struct duo_opened *opened)
{
	return !hints ||
	       (near_opened_fits(hints, opened) &&
		near_among("caps", hints->caps, NEAR_CAPS) &&
		near_most("addr_format", hints->addr_format,
			  FI_FORMAT_UNSPEC) &&
		(!hints->fabric_attr ||
		 near_called("fabric_attr->name", hints->fabric_attr->name)) &&
		near_ep_fits(hints->ep_attr) &&
		near_domain_fits(hints->domain_attr) &&
		near_tx_fits(hints->tx_attr) &&
		near_rx_fits(hints->rx_attr));
}

/* Nobody is found by a name, or by an address of another provider's. */
static bool near_place_fits(const char *node, uint64_t flags)
{
	if (!node || flags & FI_SOURCE)
		return true;
	DUO_INFO(CORE, "not offered: near finds nobody by the name %s; its "
		 "addresses are exchanged by other means\n", node);
	return false;
}

/* What keeps reads and writes behind messages costs: not who asks for less. */
static uint64_t near_info_order(const struct fi_info *hints)
{
	uint64_t asked = 0;

	if (hints && hints->tx_attr)
		asked |= hints->tx_attr->msg_order;
	if (hints && hints->rx_attr)
		asked |= hints->rx_attr->msg_order;
	return asked ? (NEAR_ORDER & ~(uint64_t)DUO_ORDER_MIXED) |
		       (asked & NEAR_ORDER) : NEAR_ORDER;
}

static void near_info_ctx(struct fi_info *info, const struct fi_info *hints)
{
	struct fi_tx_attr *tx = info->tx_attr;
	struct fi_rx_attr *rx = info->rx_attr;

	tx->caps = NEAR_TX_CAPS & info->caps;
	tx->msg_order = rx->msg_order = near_info_order(hints);
	tx->inject_size = NEAR_INJECT;
	tx->size = rx->size = NEAR_TX_SIZE;
	tx->iov_limit = rx->iov_limit = NEAR_IOV_MAX;
	tx->rma_iov_limit = 1;
	rx->caps = NEAR_RX_CAPS & info->caps;
}

static void near_info_domain(struct fi_domain_attr *attr)
{
	attr->threading = FI_THREAD_SAFE;
	attr->control_progress = attr->data_progress = FI_PROGRESS_MANUAL;
	attr->resource_mgmt = FI_RM_ENABLED;
	attr->av_type = FI_AV_TABLE;
	attr->cq_data_size = NEAR_CQ_DATA;
	attr->mr_key_size = NEAR_KEY;
	attr->cq_cnt = attr->ep_cnt = attr->cntr_cnt = 1024;
	attr->tx_ctx_cnt = attr->rx_ctx_cnt = 1024;
	attr->max_ep_tx_ctx = attr->max_ep_rx_ctx = 1;
	attr->mr_cnt = NEAR_REGIONS;
	attr->mr_iov_limit = 1;
	attr->caps = NEAR_DOMAIN_CAPS;
}

/*
 * What the hints name, and what that domain was opened with; or else open ones
 * that will do.
 */
static void near_info_opened(struct fi_info *info, const struct fi_info *hints,
			     const struct duo_opened *opened)
{
	struct fi_domain_attr *attr = info->domain_attr;

	if (!opened->fabric) {
		duo_opened_from_core(opened, hints, info);
		if (attr->domain && duo_container_of(attr->domain,
				struct duo_domain, domain_fid)->mr_mode !=
				attr->mr_mode)
			attr->domain = NULL;
		return;
	}
	info->fabric_attr->fabric = &opened->fabric->fabric_fid;
	if (!opened->domain)
		return;
	attr->domain = &opened->domain->domain_fid;
	attr->mr_mode = opened->domain->mr_mode;
	if (!opened->domain->lock.on)
		attr->threading = FI_THREAD_DOMAIN;
}

/* What was asked for within what is offered is what is given. */
static void near_info_echo_domain(struct fi_domain_attr *attr,
				  const struct fi_domain_attr *hints)
{
	if (hints->threading != FI_THREAD_UNSPEC)
		attr->threading = hints->threading;
	if (hints->av_type != FI_AV_UNSPEC)
		attr->av_type = hints->av_type;
	attr->mr_mode = near_info_mr(hints->mr_mode);
}

static void near_info_echo(struct fi_info *info, const struct fi_info *hints)
{
	if (hints->caps)
		info->caps = hints->caps | (NEAR_DOMAIN_CAPS & info->caps);
	if (info->caps & (FI_MSG | FI_TAGGED) &&
	    !(info->caps & (FI_SEND | FI_RECV)))
		info->caps |= FI_SEND | FI_RECV;
	if (info->caps & (FI_RMA | FI_ATOMIC) && !(info->caps & NEAR_RMA_CAPS))
		info->caps |= NEAR_RMA_CAPS;
	if (hints->tx_attr)
		info->tx_attr->op_flags = hints->tx_attr->op_flags;
	if (hints->rx_attr)
		info->rx_attr->op_flags = hints->rx_attr->op_flags;
	if (hints->domain_attr)
		near_info_echo_domain(info->domain_attr, hints->domain_attr);
}

int near_getinfo(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info_out)
{
	const struct duo_opened opened = duo_opened_hinted(hints);
	struct fi_info *info;

	if (!near_wanted(hints, &opened) || !near_place_fits(node, flags) ||
	    !near_fits(hints, &opened))
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	info->caps = NEAR_CAPS;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol_version = NEAR_PROTOCOL;
	info->ep_attr->max_msg_size = NEAR_MOST;
	info->ep_attr->max_order_raw_size = NEAR_MOST;
	info->ep_attr->max_order_war_size = NEAR_MOST;
	info->ep_attr->max_order_waw_size = NEAR_MOST;
	info->ep_attr->mem_tag_format = UINT64_MAX;
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
	near_info_domain(info->domain_attr);
	if (hints)
		near_info_echo(info, hints);
	near_info_ctx(info, hints);
	info->domain_attr->name = strdup(NEAR_NAME);
	info->fabric_attr->name = strdup(NEAR_NAME);
	if (!info->domain_attr->name || !info->fabric_attr->name) {
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	near_info_opened(info, hints, &opened);
	*info_out = info;
	return 0;
}
