/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_getinfo() of the core "none" (none.h). */

#include <string.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/hints.h"
#include "base/log.h"
#include "core/none.h"
#include "near/near.h"

#define DUO_NONE_TX_CAPS \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | \
	 FI_WRITE | FI_FENCE | FI_HMEM)
#define DUO_NONE_RX_CAPS \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | \
	 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | \
	 FI_DIRECTED_RECV | FI_SOURCE | FI_HMEM)
#define DUO_NONE_RMA_CAPS \
	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define DUO_NONE_TX_OPS \
	(FI_COMPLETION | FI_INJECT | FI_FENCE | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define DUO_NONE_INJECT 4096	/* longest injected message, bytes */
/* size of each transmit and receive context, as reported; not a limit */
#define DUO_NONE_QUEUE 65536
#define DUO_NONE_REGIONS (1 << 17)
/* number of objects of each kind, as reported; not a limit */
#define DUO_NONE_OBJECTS 1024
#define DUO_NONE_MOST (SIZE_MAX / 2)

/* Sets each field to the largest value that hints may request. */
static void duo_none_set_limits(struct fi_info *info)
{
	struct fi_domain_attr *domain = info->domain_attr;
	struct fi_ep_attr *ep = info->ep_attr;
	struct fi_tx_attr *tx = info->tx_attr;
	struct fi_rx_attr *rx = info->rx_attr;

	info->caps = DUO_NONE_TX_CAPS | DUO_NONE_RX_CAPS | FI_REMOTE_COMM;
	ep->type = FI_EP_RDM;
	ep->protocol_version = 1;
	ep->max_msg_size = ep->max_order_raw_size = DUO_NONE_MOST;
	ep->max_order_war_size = ep->max_order_waw_size = DUO_NONE_MOST;
	ep->mem_tag_format = UINT64_MAX;
	ep->tx_ctx_cnt = ep->rx_ctx_cnt = 1;
	domain->threading = FI_THREAD_SAFE;
	domain->control_progress = FI_PROGRESS_MANUAL;
	domain->data_progress = FI_PROGRESS_MANUAL;
	domain->resource_mgmt = FI_RM_ENABLED;
	domain->av_type = FI_AV_TABLE;
	domain->cq_data_size = domain->mr_key_size = sizeof(uint64_t);
	domain->cntr_cnt = UINT16_MAX;
	domain->cq_cnt = domain->ep_cnt = DUO_NONE_OBJECTS;
	domain->tx_ctx_cnt = domain->rx_ctx_cnt = DUO_NONE_OBJECTS;
	domain->max_ep_tx_ctx = domain->max_ep_rx_ctx = 1;
	domain->mr_cnt = DUO_NONE_REGIONS;
	domain->mr_iov_limit = 1;
	domain->caps = FI_REMOTE_COMM;
	tx->caps = DUO_NONE_TX_CAPS | FI_REMOTE_COMM;
	tx->op_flags = DUO_NONE_TX_OPS;
	tx->msg_order = rx->msg_order = DUO_ORDER;
	tx->inject_size = DUO_NONE_INJECT;
	tx->size = rx->size = DUO_NONE_QUEUE;
	tx->iov_limit = rx->iov_limit = NEAR_IOV_MAX;
	tx->rma_iov_limit = 1;
	rx->caps = DUO_NONE_RX_CAPS | FI_REMOTE_COMM;
	rx->op_flags = FI_COMPLETION;
}

static const struct duo_hint duo_none_fields[] = {
	DUO_HINT_INFO(true, caps),
	DUO_HINT_INFO(false, addr_format),
	DUO_HINT_MAX(ep_attr, protocol),
	DUO_HINT_MAX(ep_attr, protocol_version),
	DUO_HINT_MAX(ep_attr, max_msg_size),
	DUO_HINT_MAX(ep_attr, max_order_raw_size),
	DUO_HINT_MAX(ep_attr, max_order_war_size),
	DUO_HINT_MAX(ep_attr, max_order_waw_size),
	DUO_HINT_MAX(ep_attr, tx_ctx_cnt),
	DUO_HINT_MAX(ep_attr, rx_ctx_cnt),
	DUO_HINT_MAX(ep_attr, auth_key_size),
	DUO_HINT_MAX(domain_attr, cq_data_size),
	DUO_HINT_MAX(domain_attr, mr_key_size),
	DUO_HINT_MAX(domain_attr, mr_iov_limit),
	DUO_HINT_MAX(domain_attr, mr_cnt),
	DUO_HINT_MAX(domain_attr, max_ep_stx_ctx),
	DUO_HINT_MAX(domain_attr, max_ep_srx_ctx),
	DUO_HINT_MAX(domain_attr, max_err_data),
	DUO_HINT_MAX(domain_attr, auth_key_size),
	DUO_HINT_SET(domain_attr, caps),
	DUO_HINT_SET(tx_attr, caps),
	DUO_HINT_SET(tx_attr, op_flags),
	DUO_HINT_SET(tx_attr, msg_order),
	DUO_HINT_SET(tx_attr, comp_order),
	DUO_HINT_MAX(tx_attr, inject_size),
	DUO_HINT_MAX(tx_attr, size),
	DUO_HINT_MAX(tx_attr, iov_limit),
	DUO_HINT_MAX(tx_attr, rma_iov_limit),
	DUO_HINT_SET(rx_attr, caps),
	DUO_HINT_SET(rx_attr, op_flags),
	DUO_HINT_SET(rx_attr, msg_order),
	DUO_HINT_SET(rx_attr, comp_order),
	DUO_HINT_MAX(rx_attr, size),
	DUO_HINT_MAX(rx_attr, iov_limit),
};

static bool duo_none_named(const char *what, const char *requested)
{
	if (!requested || !strcmp(requested, duo_prov.name))
		return true;
	DUO_INFO(CORE, "no info returned: %s of the hints is %s, not %s\n",
		 what, requested, duo_prov.name);
	return false;
}

/*
 * Returns the bits of an mr_mode that near supports. Returns FI_MR_BASIC and
 * FI_MR_SCALABLE, which are values and not bits, unchanged.
 */
static int duo_none_mr_mode(int requested)
{
	if (requested == DUO_MR_BASIC || requested == DUO_MR_SCALABLE)
		return requested;
	return requested & (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_HMEM);
}

/*
 * Sets the mr_mode. If the hints name an open domain, this is the domain's
 * mr_mode. Otherwise it has the bits of hints->mr_mode that near supports.
 * Returns false if the domain's mr_mode has a bit that hints->mr_mode lacks.
 */
static bool duo_none_set_mr(struct fi_info *info,
			    const struct fi_domain_attr *hints)
{
	int mode = duo_none_mr_mode(hints->mr_mode);

	info->domain_attr->mr_mode = mode;
	if (!hints->domain)
		return true;
	info->domain_attr->domain = hints->domain;
	info->domain_attr->mr_mode = duo_none_domain_mr(hints->domain);
	return !(info->domain_attr->mr_mode & ~mode) ||
	       duo_hint_reject("mr_mode, without a bit of the domain's,",
			       hints->mr_mode);
}

/*
 * False if the hints have FI_HMEM without FI_MR_HMEM. near needs the
 * descriptors of buffers in device memory, and applications pass these only
 * with FI_MR_HMEM.
 */
static bool duo_none_has_mode(const struct fi_info *hints)
{
	return !(hints->caps & FI_HMEM) ||
	       (hints->domain_attr &&
		hints->domain_attr->mr_mode & FI_MR_HMEM) ||
	       duo_hint_reject("caps, FI_HMEM without FI_MR_HMEM,",
			       hints->caps);
}

static bool duo_none_set_domain(struct fi_info *info,
				const struct fi_domain_attr *hints)
{
	if (hints->control_progress == FI_PROGRESS_AUTO)
		return duo_hint_reject("domain_attr->control_progress",
				       hints->control_progress);
	if (hints->data_progress == FI_PROGRESS_AUTO)
		return duo_hint_reject("domain_attr->data_progress",
				       hints->data_progress);
	return duo_none_named("domain_attr->name", hints->name) &&
	       duo_none_set_mr(info, hints);
}

/*
 * Sets caps and op_flags of the info to those of the hints, which must be
 * within the limits. Hints without caps get all. If the caps have FI_MSG or
 * FI_TAGGED, but neither FI_SEND nor FI_RECV, adds these two. If the caps have
 * FI_RMA or FI_ATOMIC, but no bit of DUO_NONE_RMA_CAPS, adds all of these bits.
 */
static void duo_none_grant(struct fi_info *info, const struct fi_info *hints)
{
	if (hints->caps)
		info->caps = hints->caps | FI_REMOTE_COMM;
	if (info->caps & (FI_MSG | FI_TAGGED) &&
	    !(info->caps & (FI_SEND | FI_RECV)))
		info->caps |= FI_SEND | FI_RECV;
	if (info->caps & (FI_RMA | FI_ATOMIC) &&
	    !(info->caps & DUO_NONE_RMA_CAPS))
		info->caps |= DUO_NONE_RMA_CAPS;
	info->tx_attr->caps = DUO_NONE_TX_CAPS & info->caps;
	info->rx_attr->caps = DUO_NONE_RX_CAPS & info->caps;
	info->tx_attr->op_flags = hints->tx_attr ? hints->tx_attr->op_flags : 0;
	info->rx_attr->op_flags = hints->rx_attr ? hints->rx_attr->op_flags : 0;
}

/* False if `node` names a destination: near cannot resolve names. */
static bool duo_none_finds(const char *node, uint64_t flags)
{
	if (!node || flags & FI_SOURCE)
		return true;
	DUO_INFO(CORE, "no info returned: %s cannot resolve the node name %s; "
		 "exchange addresses out of band\n", duo_prov.name, node);
	return false;
}

int duo_none_getinfo(const char *node, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info_out)
{
	struct fi_info *info = fi_allocinfo();
	int ret = -FI_ENODATA;

	if (!info)
		return -FI_ENOMEM;
	duo_none_set_limits(info);
	if (!duo_none_finds(node, flags) ||
	    !duo_none_named("fabric_attr->name", hints->fabric_attr->name) ||
	    !DUO_HINTS_WITHIN(hints, info, duo_none_fields) ||
	    !duo_none_has_mode(hints) || (hints->domain_attr &&
	     !duo_none_set_domain(info, hints->domain_attr)))
		goto free_info;
	duo_none_grant(info, hints);
	info->domain_attr->name = strdup(duo_prov.name);
	info->fabric_attr->name = strdup(duo_prov.name);
	info->fabric_attr->prov_name = strdup(DUO_NONE);
	if (info->domain_attr->name && info->fabric_attr->name &&
	    info->fabric_attr->prov_name) {
		*info_out = info;
		return 0;
	}
	ret = -FI_ENOMEM;
free_info:
	fi_freeinfo(info);
	return ret;
}
