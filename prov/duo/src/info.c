/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Translation between our fi_info and the core's, and the limits of both
 * paths together. Pure: calls no provider.
 */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "duo.h"

#define DUO_CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE | \
		  FI_DIRECTED_RECV | FI_MULTI_RECV | FI_LOCAL_COMM | \
		  FI_REMOTE_COMM)
#define DUO_TX_CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_LOCAL_COMM | \
		     FI_REMOTE_COMM)
#define DUO_RX_CAPS (FI_MSG | FI_TAGGED | FI_RECV | FI_SOURCE | \
		     FI_DIRECTED_RECV | FI_MULTI_RECV | FI_LOCAL_COMM | \
		     FI_REMOTE_COMM)
#define DUO_OURS (FI_LOCAL_COMM | FI_MULTI_RECV) /* never asked of the core */
#define DUO_ORDER FI_ORDER_SAS
#define DUO_CQ_DATA_SIZE 8	/* shm's, bytes */
#define DUO_SUFFIX ";" DUO_NAME

static size_t duo_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * "tcp;ofi_rxm;ofi_duo" -> "tcp;ofi_rxm", to be freed. NULL: the name does
 * not end in ofi_duo, names no core, or memory is short.
 */
char *duo_core_name(const char *prov_name)
{
	size_t len, tail = strlen(DUO_SUFFIX);

	if (!prov_name)
		return NULL;
	len = strlen(prov_name);
	if (len <= tail || strcasecmp(prov_name + len - tail, DUO_SUFFIX))
		return NULL;
	return strndup(prov_name, len - tail);
}

/*
 * EFA places messages straight into posted receives if neither order nor
 * tags are asked for, and then cannot cancel a receive; we must be able to.
 */
void duo_info_ask_order(struct fi_info *core)
{
	if (!core->fabric_attr || !core->fabric_attr->prov_name ||
	    strcasecmp(core->fabric_attr->prov_name, "efa"))
		return;
	if (core->tx_attr)
		core->tx_attr->msg_order |= FI_ORDER_SAS;
	if (core->rx_attr)
		core->rx_attr->msg_order |= FI_ORDER_SAS;
}

/*
 * The core's info of one of ours. EFA uses its own shm path only if it is
 * asked for local communication, so it is not asked. Multi-receive buffers
 * are ours alone: the core sees single receives.
 */
struct fi_info *duo_info_to_core(const struct fi_info *info)
{
	struct fi_info *core = fi_dupinfo(info);
	char *name;

	if (!core)
		return NULL;
	if (core->fabric_attr && core->fabric_attr->prov_name) {
		name = duo_core_name(core->fabric_attr->prov_name);
		if (name) {
			free(core->fabric_attr->prov_name);
			core->fabric_attr->prov_name = name;
		}
	}
	if (core->caps)
		core->caps |= FI_REMOTE_COMM;
	core->caps &= ~DUO_OURS;
	core->mode &= ~FI_MSG_PREFIX;	/* shm knows no prefix */
	if (core->tx_attr)
		core->tx_attr->caps &= ~FI_LOCAL_COMM;
	if (core->rx_attr) {
		core->rx_attr->caps &= ~DUO_OURS;
		core->rx_attr->op_flags &= ~FI_MULTI_RECV;
	}
	if (core->domain_attr) {
		core->domain_attr->caps &= ~FI_LOCAL_COMM;
		core->domain_attr->av_type = FI_AV_TABLE;	/* see av.c */
	}
	duo_info_ask_order(core);
	return core;
}

/* EFA's other fabric has no tags and cannot cancel a receive. */
static bool duo_info_direct(const struct fi_info *info)
{
	return info->fabric_attr->name &&
	       !strcasecmp(info->fabric_attr->name, "efa-direct");
}

/*
 * Reduces a core's info to what both paths do. -FI_ENODATA: nothing usable
 * is left.
 */
int duo_info_restrict(struct fi_info *info)
{
	struct fi_domain_attr *domain = info->domain_attr;
	struct fi_tx_attr *tx = info->tx_attr;
	struct fi_rx_attr *rx = info->rx_attr;

	if (info->ep_attr->type != FI_EP_RDM ||
	    !(info->caps & (FI_MSG | FI_TAGGED)) ||
	    info->mode & FI_MSG_PREFIX ||
	    duo_info_direct(info))
		return -FI_ENODATA;

	info->caps = (info->caps & DUO_CAPS) | FI_LOCAL_COMM | FI_REMOTE_COMM;
	if (info->caps & FI_MSG)
		info->caps |= FI_MULTI_RECV;
	domain->caps = (domain->caps & FI_REMOTE_COMM) | FI_LOCAL_COMM;
	domain->cq_data_size = duo_min(domain->cq_data_size, DUO_CQ_DATA_SIZE);
	domain->data_progress = FI_PROGRESS_MANUAL;	/* shm's */
	domain->cntr_cnt = 0;
	domain->max_ep_stx_ctx = 0;
	domain->max_ep_srx_ctx = 0;
	if (domain->threading == FI_THREAD_UNSPEC)
		domain->threading = FI_THREAD_SAFE;

	tx->caps &= DUO_TX_CAPS;
	tx->msg_order &= DUO_ORDER;
	tx->comp_order = 0;
	tx->inject_size = duo_min(tx->inject_size, DUO_INJECT_SIZE);
	tx->iov_limit = duo_min(tx->iov_limit, DUO_IOV_LIMIT);
	tx->size = duo_min(tx->size, DUO_SHM_QUEUE);
	tx->rma_iov_limit = 0;
	rx->caps &= DUO_RX_CAPS;
	if (rx->caps & FI_MSG)
		rx->caps |= FI_MULTI_RECV;
	rx->msg_order &= DUO_ORDER;
	rx->comp_order = 0;
	rx->op_flags &= ~FI_MULTI_RECV;
	rx->iov_limit = duo_min(rx->iov_limit, DUO_IOV_LIMIT);
	info->ep_attr->max_order_raw_size = 0;
	info->ep_attr->max_order_war_size = 0;
	info->ep_attr->max_order_waw_size = 0;
	info->ep_attr->tx_ctx_cnt = duo_min(info->ep_attr->tx_ctx_cnt, 1);
	info->ep_attr->rx_ctx_cnt = duo_min(info->ep_attr->rx_ctx_cnt, 1);
	return 0;
}

/* Could an info of ours satisfy the hints at all? 0 or -FI_ENODATA. */
int duo_hints_supported(const struct fi_info *hints)
{
	if (!hints)
		return 0;
	if (hints->caps & ~DUO_CAPS)
		return -FI_ENODATA;
	if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC &&
	    hints->ep_attr->type != FI_EP_RDM)
		return -FI_ENODATA;
	if (hints->domain_attr &&
	    hints->domain_attr->data_progress == FI_PROGRESS_AUTO)
		return -FI_ENODATA;
	if (hints->tx_attr && (hints->tx_attr->caps & ~DUO_TX_CAPS ||
			       hints->tx_attr->msg_order & ~DUO_ORDER ||
			       hints->tx_attr->comp_order))
		return -FI_ENODATA;
	if (hints->rx_attr && (hints->rx_attr->caps & ~DUO_RX_CAPS ||
			       hints->rx_attr->msg_order & ~DUO_ORDER ||
			       hints->rx_attr->comp_order))
		return -FI_ENODATA;
	return 0;
}

/*
 * The core met the hints; is what we took away still enough? Both types of
 * AV are served, so the one that is asked for is the one to report.
 */
int duo_info_satisfies(struct fi_info *info, const struct fi_info *hints)
{
	if (!hints)
		return 0;
	if (hints->caps & ~info->caps)
		return -FI_ENODATA;
	if (hints->tx_attr &&
	    (hints->tx_attr->inject_size > info->tx_attr->inject_size ||
	     hints->tx_attr->iov_limit > info->tx_attr->iov_limit ||
	     hints->tx_attr->size > info->tx_attr->size ||
	     hints->tx_attr->rma_iov_limit > 0))
		return -FI_ENODATA;
	if (hints->rx_attr &&
	    (hints->rx_attr->iov_limit > info->rx_attr->iov_limit ||
	     hints->rx_attr->caps & FI_MULTI_RECV & ~info->caps))
		return -FI_ENODATA;
	if (hints->rx_attr)	/* the core was not asked for it */
		info->rx_attr->op_flags |= hints->rx_attr->op_flags &
					   FI_MULTI_RECV;
	if (hints->domain_attr &&
	    hints->domain_attr->av_type != FI_AV_UNSPEC)
		info->domain_attr->av_type = hints->domain_attr->av_type;
	if (hints->domain_attr &&
	    (hints->domain_attr->cq_data_size >
		     info->domain_attr->cq_data_size ||
	     hints->domain_attr->cntr_cnt > 0))
		return -FI_ENODATA;
	return 0;
}
