/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_getinfo: what we offer, and whether it is what was asked for. */

#include <stdlib.h>
#include <string.h>

#include "api/near_fi.h"
#include "fi/onesided.h"

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
	(NEAR_ORDER_MIXED | FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | \
	 FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | \
	 FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define NEAR_TX_OPS \
	(FI_COMPLETION | FI_INJECT | FI_FENCE | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define NEAR_RX_OPS (FI_COMPLETION | FI_MULTI_RECV)
#define NEAR_CQ_DATA 8

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
static bool near_wanted(const struct fi_info *hints)
{
	const char *name = hints && hints->fabric_attr ?
			   hints->fabric_attr->prov_name : NULL;

	return near_named(name) || (!name && near_named(getenv("FI_PROVIDER")));
}

static bool near_tx_fits(const struct fi_tx_attr *attr)
{
	return !attr || (!(attr->caps & ~(NEAR_TX_CAPS | NEAR_DOMAIN_CAPS)) &&
			 !(attr->op_flags & ~NEAR_TX_OPS) &&
			 !(attr->msg_order & ~(uint64_t)NEAR_ORDER) &&
			 attr->inject_size <= NEAR_INJECT &&
			 attr->size <= NEAR_TX_SIZE &&
			 attr->iov_limit <= NEAR_IOV_MAX &&
			 attr->rma_iov_limit <= 1);
}

static bool near_rx_fits(const struct fi_rx_attr *attr)
{
	return !attr || (!(attr->caps & ~(NEAR_RX_CAPS | NEAR_DOMAIN_CAPS)) &&
			 !(attr->op_flags & ~(uint64_t)NEAR_RX_OPS) &&
			 !(attr->msg_order & ~(uint64_t)NEAR_ORDER) &&
			 attr->size <= NEAR_TX_SIZE &&
			 attr->iov_limit <= NEAR_IOV_MAX);
}

static bool near_ep_fits(const struct fi_ep_attr *attr)
{
	return !attr || ((attr->type == FI_EP_UNSPEC ||
			  attr->type == FI_EP_RDM) &&
			 attr->protocol == FI_PROTO_UNSPEC &&
			 attr->tx_ctx_cnt <= 1 && attr->rx_ctx_cnt <= 1 &&
			 !attr->auth_key_size);
}

static bool near_domain_fits(const struct fi_domain_attr *attr)
{
	return !attr || ((!attr->name || !strcmp(attr->name, NEAR_NAME)) &&
			 attr->control_progress != FI_PROGRESS_AUTO &&
			 attr->data_progress != FI_PROGRESS_AUTO &&
			 attr->cq_data_size <= NEAR_CQ_DATA &&
			 !(attr->caps & ~(uint64_t)NEAR_DOMAIN_CAPS) &&
			 !attr->auth_key_size);
}

static bool near_fits(const struct fi_info *hints)
{
	return !hints || (!(hints->caps & ~NEAR_CAPS) &&
			  hints->addr_format == FI_FORMAT_UNSPEC &&
			  (!hints->fabric_attr || !hints->fabric_attr->name ||
			   !strcmp(hints->fabric_attr->name, NEAR_NAME)) &&
			  near_ep_fits(hints->ep_attr) &&
			  near_domain_fits(hints->domain_attr) &&
			  near_tx_fits(hints->tx_attr) &&
			  near_rx_fits(hints->rx_attr));
}

/* What keeps reads and writes behind messages costs: not who asks for less. */
static uint64_t near_info_order(const struct fi_info *hints)
{
	uint64_t asked = 0;

	if (hints && hints->tx_attr)
		asked |= hints->tx_attr->msg_order;
	if (hints && hints->rx_attr)
		asked |= hints->rx_attr->msg_order;
	return asked ? (NEAR_ORDER & ~(uint64_t)NEAR_ORDER_MIXED) |
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
	attr->mr_key_size = sizeof(uint64_t);
	attr->cq_cnt = attr->ep_cnt = 1024;
	attr->tx_ctx_cnt = attr->rx_ctx_cnt = 1024;
	attr->max_ep_tx_ctx = attr->max_ep_rx_ctx = 1;
	attr->mr_cnt = 1 << 17;
	attr->mr_iov_limit = 1;
	attr->caps = NEAR_DOMAIN_CAPS;
}

/* What was asked for within what is offered is what is given. */
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
	if (!hints->domain_attr)
		return;
	if (hints->domain_attr->threading != FI_THREAD_UNSPEC)
		info->domain_attr->threading = hints->domain_attr->threading;
	if (hints->domain_attr->av_type != FI_AV_UNSPEC)
		info->domain_attr->av_type = hints->domain_attr->av_type;
	/* where either will do our keys: they are never in use */
	info->domain_attr->mr_mode = hints->domain_attr->mr_mode &
				     (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
}

int near_getinfo(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info_out)
{
	struct fi_info *info;

	if (!near_wanted(hints) || !near_fits(hints) ||
	    (node && !(flags & FI_SOURCE)))
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	info->caps = NEAR_CAPS;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol_version = 1;
	info->ep_attr->max_msg_size = SIZE_MAX / 2;
	info->ep_attr->max_order_raw_size = SIZE_MAX / 2;
	info->ep_attr->max_order_war_size = SIZE_MAX / 2;
	info->ep_attr->max_order_waw_size = SIZE_MAX / 2;
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
	*info_out = info;
	return 0;
}
