/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Translates between infos (struct fi_info) of ofi_duo and infos of the core,
 * the provider that ofi_duo wraps. Calls no provider.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/hints.h"
#include "base/log.h"
#include "base/params.h"
#include "base/util.h"
#include "core/traits.h"
#include "fi/api.h"
#include "queue/rx.h"
#include "transport/near/onesided.h"
#include "transport/transport.h"

#define DUO_COMM (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define DUO_MESSAGES (FI_MSG | FI_TAGGED)
#define DUO_ONESIDED (FI_RMA | FI_ATOMIC | FI_RMA_PMEM)
#define DUO_TX_CAPS (DUO_MESSAGES | FI_SEND | DUO_ONESIDED | FI_READ | \
		     FI_WRITE | FI_FENCE | FI_HMEM | DUO_COMM)
#define DUO_RX_CAPS (DUO_MESSAGES | FI_RECV | FI_SOURCE | FI_DIRECTED_RECV | \
		     FI_MULTI_RECV | DUO_ONESIDED | FI_REMOTE_READ | \
		     FI_REMOTE_WRITE | FI_RMA_EVENT | FI_HMEM | DUO_COMM)
#define DUO_CAPS (DUO_TX_CAPS | DUO_RX_CAPS)
/*
 * capabilities that ofi_duo itself implements, and that it does not request
 * from the core
 */
#define DUO_OURS (FI_LOCAL_COMM | FI_MULTI_RECV)
#define DUO_SUFFIX ";" DUO_NAME

/*
 * Returns the length of the core's part of a provider name: 11 for
 * "tcp;ofi_rxm;ofi_duo". 0: prov_name is NULL or does not name a core.
 */
static size_t duo_core_len(const char *prov_name)
{
	size_t len = prov_name ? strlen(prov_name) : 0;
	size_t tail = strlen(DUO_SUFFIX);

	return len > tail && !strcasecmp(prov_name + len - tail, DUO_SUFFIX) ?
	       len - tail : 0;
}

bool duo_core_named(const char *prov_name)
{
	return duo_core_len(prov_name);
}

char *duo_core_name(const char *prov_name)
{
	size_t len = duo_core_len(prov_name);

	return len ? strndup(prov_name, len) : NULL;
}

bool duo_info_prefix(const struct fi_info *info)
{
	uint64_t mode = info->mode;

	if (info->tx_attr)
		mode |= info->tx_attr->mode;
	if (info->rx_attr)
		mode |= info->rx_attr->mode;
	return mode & FI_MSG_PREFIX;
}

/*
 * Removes FI_MSG_PREFIX from an info for the core. The core gets no prefix,
 * because calls_prefix.c skips it.
 */
static void duo_info_unprefix(struct fi_info *info)
{
	info->mode &= ~FI_MSG_PREFIX;
	if (info->ep_attr)
		info->ep_attr->msg_prefix_size = 0;
	if (info->tx_attr)
		info->tx_attr->mode &= ~FI_MSG_PREFIX;
	if (info->rx_attr)
		info->rx_attr->mode &= ~FI_MSG_PREFIX;
}

/*
 * Translates an info of ofi_duo for the core. Returns a copy of the info with
 * the core's name, without ofi_duo's fids, and without the features that
 * ofi_duo itself implements. NULL: no memory.
 */
struct fi_info *duo_info_to_core(const struct fi_info *info)
{
	struct fi_info *core = fi_dupinfo(info);
	char *name;

	if (!core)
		return NULL;
	if (core->fabric_attr)
		core->fabric_attr->fabric = NULL;
	if (core->fabric_attr && core->fabric_attr->prov_name) {
		name = duo_core_name(core->fabric_attr->prov_name);
		if (name) {
			free(core->fabric_attr->prov_name);
			core->fabric_attr->prov_name = name;
		}
	}
	core->caps &= ~DUO_OURS;
	duo_info_unprefix(core);
	if (core->tx_attr)
		core->tx_attr->caps &= ~FI_LOCAL_COMM;
	if (core->rx_attr) {
		core->rx_attr->caps &= ~DUO_OURS;
		core->rx_attr->op_flags &= ~FI_MULTI_RECV;
	}
	if (core->domain_attr) {
		core->domain_attr->domain = NULL;
		core->domain_attr->caps &= ~FI_LOCAL_COMM;
		/* all AVs of the core are tables, see av/av.c */
		core->domain_attr->av_type = FI_AV_TABLE;
	}
	duo_traits_add_bits(core);
	return core;
}

/*
 * Restricts features and limits of messages to those that both the core and the
 * local transport have.
 */
static void duo_info_restrict_messages(struct fi_info *info)
{
	struct fi_domain_attr *domain = info->domain_attr;
	struct fi_tx_attr *tx = info->tx_attr;
	struct fi_rx_attr *rx = info->rx_attr;

	info->caps &= DUO_CAPS;
	if (info->caps & FI_MSG)
		info->caps |= FI_MULTI_RECV;
	domain->cq_data_size = duo_min(domain->cq_data_size, sizeof(uint64_t));
	/* near and libfabric's shm have only manual progress */
	domain->data_progress = FI_PROGRESS_MANUAL;

	tx->caps &= DUO_TX_CAPS;
	tx->msg_order &= DUO_ORDER;
	tx->comp_order = 0;
	tx->inject_size = duo_min(tx->inject_size, DUO_LOCAL_INJECT);
	tx->iov_limit = duo_min(tx->iov_limit, DUO_IOV_LIMIT);
	if (!duo_traits_find(info->fabric_attr->prov_name).carries_nothing)
		tx->size = duo_min(tx->size, DUO_LOCAL_QUEUE);
	rx->caps &= DUO_RX_CAPS;
	if (rx->caps & FI_MSG)
		rx->caps |= FI_MULTI_RECV;
	rx->msg_order &= DUO_ORDER;
	rx->comp_order = 0;
	rx->op_flags &= ~FI_MULTI_RECV;
	rx->iov_limit = duo_min(rx->iov_limit, DUO_IOV_LIMIT);
}

/* Returns the reason why ofi_duo cannot use an info of the core; NULL: none. */
static const char *duo_info_unusable(const struct fi_info *info)
{
	if (info->ep_attr->type != FI_EP_RDM)
		return "ep_attr->type is not FI_EP_RDM";
	if (!(info->caps & (DUO_MESSAGES | DUO_ONESIDED)))
		return "caps has neither messages nor RMA";
	if (duo_info_prefix(info))
		return "mode has FI_MSG_PREFIX";
	if (duo_traits_direct(info->fabric_attr))
		return "the fabric is efa-direct, which cannot cancel receives";
	return NULL;
}

/*
 * Restricts an info of the core to the features of ofi_duo. If the info has
 * neither FI_MSG nor FI_TAGGED, it keeps the core's limits, msg_order and
 * progress. Returns false if ofi_duo cannot use the info.
 */
bool duo_info_restrict(struct fi_info *info)
{
	struct fi_domain_attr *domain = info->domain_attr;

	if (duo_info_unusable(info))
		return false;

	if (info->caps & DUO_MESSAGES)
		duo_info_restrict_messages(info);
	/*
	 * FI_REMOTE_COMM stays only if the core's info has this bit. An info of
	 * a loopback interface lacks it, because no other host can be reached.
	 */
	info->caps = (info->caps & DUO_CAPS) | FI_LOCAL_COMM;
	domain->caps = (domain->caps & FI_REMOTE_COMM) | FI_LOCAL_COMM;
	domain->max_ep_stx_ctx = 0;
	domain->max_ep_srx_ctx = 0;
	if (domain->threading == FI_THREAD_UNSPEC)
		domain->threading = FI_THREAD_SAFE;
	info->ep_attr->tx_ctx_cnt = duo_min(info->ep_attr->tx_ctx_cnt, 1);
	info->ep_attr->rx_ctx_cnt = duo_min(info->ep_attr->rx_ctx_cnt, 1);
	return true;
}

/* fields that duo_info_kept() compares with the limits of ofi_duo */
static const struct duo_hint duo_kept_fields[] = {
	DUO_HINT_INFO(true, caps),
	DUO_HINT_SET(tx_attr, caps),
	DUO_HINT_SET(tx_attr, msg_order),
	DUO_HINT_MAX(tx_attr, iov_limit),
	DUO_HINT_SET(rx_attr, caps),
	DUO_HINT_SET(rx_attr, msg_order),
	DUO_HINT_MAX(rx_attr, iov_limit),
	DUO_HINT_MAX(ep_attr, tx_ctx_cnt),
	DUO_HINT_MAX(ep_attr, rx_ctx_cnt),
	DUO_HINT_MAX(domain_attr, cq_data_size),
	DUO_HINT_SET(domain_attr, caps),
};

/*
 * Capabilities that duo_info_kept() accepts although ofi_duo rejects the calls
 * that need them. Infos of some cores have them, but few applications make
 * these calls.
 */
#define DUO_DOMAIN_CALLS (FI_AV_USER_ID | FI_SHARED_AV | FI_PEER)

bool duo_info_kept(const struct fi_info *info)
{
	struct duo_hint_beyond beyond = { .field = NULL };
	struct fi_info *ours;
	const char *why;
	char text[128];

	if (!info || !info->fabric_attr || !info->domain_attr ||
	    !info->ep_attr || !info->tx_attr || !info->rx_attr)
		return false;
	ours = fi_dupinfo(info);
	if (!ours)
		return false;
	if (duo_traits_find(info->fabric_attr->prov_name).prefix_optional)
		duo_info_unprefix(ours);
	why = duo_info_unusable(ours);
	if (!why) {
		duo_info_restrict(ours);
		ours->domain_attr->caps |= FI_REMOTE_COMM | DUO_DOMAIN_CALLS;
		beyond = duo_hints_beyond(info, ours, duo_kept_fields,
					  DUO_COUNT(duo_kept_fields));
	}
	fi_freeinfo(ours);
	if (beyond.field) {
		snprintf(text, sizeof(text), "%s is 0x%" PRIx64
			 ", ofi_duo supports 0x%" PRIx64, beyond.field->name,
			 beyond.requested, beyond.limit);
		why = text;
	}
	if (why)
		DUO_INFO(DOMAIN, "domain %s is left to the core %s: %s\n",
			 info->domain_attr->name ? info->domain_attr->name :
			 "(no name)", info->fabric_attr->prov_name, why);
	return !why;
}

static const struct fi_info duo_info_limits = {
	.caps = DUO_CAPS,
	.tx_attr = &(struct fi_tx_attr) {
		.caps = DUO_TX_CAPS, .msg_order = DUO_ORDER,
	},
	.rx_attr = &(struct fi_rx_attr) {
		.caps = DUO_RX_CAPS, .msg_order = DUO_ORDER,
	},
	.domain_attr = &(struct fi_domain_attr) {
		.threading = FI_THREAD_ENDPOINT, .av_type = FI_AV_TABLE,
	},
};

/*
 * Fields that duo_hints_supported() compares. If the hints request capabilities
 * of the core, but neither FI_MSG nor FI_TAGGED, it compares only the first
 * DUO_HINTS_ALWAYS fields: up to domain_attr.av_type. The other fields are then
 * limited by the core only.
 */
#define DUO_HINTS_ALWAYS 3
static const struct duo_hint duo_hint_fields[] = {
	DUO_HINT_INFO(true, caps),
	DUO_HINT_MAX(domain_attr, threading),
	DUO_HINT_MAX(domain_attr, av_type),
	DUO_HINT_SET(tx_attr, caps),
	DUO_HINT_SET(tx_attr, msg_order),
	DUO_HINT_SET(tx_attr, comp_order),
	DUO_HINT_SET(rx_attr, caps),
	DUO_HINT_SET(rx_attr, msg_order),
	DUO_HINT_SET(rx_attr, comp_order),
};

bool duo_hints_rdm(const struct fi_info *hints)
{
	return !hints->ep_attr || hints->ep_attr->type == FI_EP_UNSPEC ||
	       hints->ep_attr->type == FI_EP_RDM;
}

bool duo_hints_supported(const struct fi_info *hints)
{
	if (!hints)
		return true;
	if (!duo_hints_rdm(hints))
		return duo_hint_reject("ep_attr->type", hints->ep_attr->type);
	if (hints->caps & ~DUO_OURS && !(hints->caps & DUO_MESSAGES))
		return duo_hints_within(hints, &duo_info_limits,
					duo_hint_fields, DUO_HINTS_ALWAYS);
	if (hints->domain_attr &&
	    hints->domain_attr->data_progress == FI_PROGRESS_AUTO)
		return duo_hint_reject("domain_attr->data_progress",
				       FI_PROGRESS_AUTO);
	return DUO_HINTS_WITHIN(hints, &duo_info_limits, duo_hint_fields);
}

/*
 * Removes FI_HMEM from the info if the hints do not request it, because an
 * endpoint with FI_HMEM cannot use a fast path.
 */
static void duo_info_drop_device(struct fi_info *info,
				 const struct fi_info *hints)
{
	if (hints && hints->caps & FI_HMEM)
		return;
	info->caps &= ~FI_HMEM;
	info->tx_attr->caps &= ~FI_HMEM;
	info->rx_attr->caps &= ~FI_HMEM;
}

bool duo_info_mixed(const struct fi_info *info)
{
	return info->caps & FI_FENCE ||
	       (info->tx_attr && info->tx_attr->msg_order & DUO_ORDER_MIXED) ||
	       (info->rx_attr && info->rx_attr->msg_order & DUO_ORDER_MIXED);
}

/* Returns the bits of msg_order that the hints request. */
static uint64_t duo_hints_order(const struct fi_info *hints)
{
	uint64_t order = hints && hints->tx_attr ?
			 hints->tx_attr->msg_order : 0;

	return order | (hints && hints->rx_attr ?
			hints->rx_attr->msg_order : 0);
}

/*
 * True if an endpoint of this info keeps the order of its messages and RMA.
 * There are two cases:
 * - All operations take one path, because there is no local transport, or
 *   because the core carries no data.
 * - The local transport is near, and near executes all RMA and atomics with
 *   local peers. This requires that the endpoint has no RMA, or that near has
 *   its region table. If the endpoint has atomics, CPUs must execute those of
 *   the core.
 */
static bool duo_info_near_keeps(const struct fi_info *info)
{
	const struct duo_traits core =
		duo_traits_find(info->fabric_attr->prov_name);

	if (!duo_params.local_on || core.carries_nothing)
		return true;
	return duo_params.local == DUO_TRANSPORT_NEAR &&
	       (duo_near_serves(info) || !(info->caps & DUO_ONESIDED)) &&
	       (!(info->caps & FI_ATOMIC) || core.cpu_atomics);
}

/*
 * Removes orders between messages and RMA that would slow down the local path
 * or disable it, and that the hints do not request: docs/objects.md, "Orders".
 * If duo_info_near_keeps() is true and the hints request no order at all,
 * removes none. If duo_info_near_keeps() is false, also removes FI_FENCE.
 */
static void duo_info_drop_order(struct fi_info *info,
				const struct fi_info *hints)
{
	uint64_t order = duo_hints_order(hints), drop = DUO_ORDER_MIXED;

	if (!(info->caps & DUO_MESSAGES))
		return;
	if (duo_info_near_keeps(info)) {
		if (!order)
			return;
		drop &= ~order;	/* keeps only requested orders */
	} else if (hints && duo_info_mixed(hints)) {
		return;
	} else {
		info->caps &= ~FI_FENCE;
		info->tx_attr->caps &= ~FI_FENCE;
	}
	info->tx_attr->msg_order &= ~drop;
	info->rx_attr->msg_order &= ~drop;
}

static const struct duo_hint duo_info_fields[] = {
	DUO_HINT_INFO(true, caps),
	DUO_HINT_MAX(tx_attr, inject_size),
	DUO_HINT_MAX(tx_attr, iov_limit),
	DUO_HINT_MAX(tx_attr, size),
	DUO_HINT_MAX(rx_attr, iov_limit),
	/* rejects FI_SHARED_CONTEXT, which as a number exceeds any limit */
	DUO_HINT_MAX(ep_attr, tx_ctx_cnt),
	DUO_HINT_MAX(ep_attr, rx_ctx_cnt),
	DUO_HINT_MAX(domain_attr, max_ep_stx_ctx),
	DUO_HINT_MAX(domain_attr, max_ep_srx_ctx),
	DUO_HINT_MAX(domain_attr, cq_data_size),
	DUO_HINT_MAX(domain_attr, cntr_cnt),
	DUO_HINT_SET(domain_attr, caps),
};

/*
 * True if an info from duo_info_restrict() satisfies the hints. Changes the
 * info:
 * - Removes FI_HMEM, and orders for which duo_info_drop_order() has the rules,
 *   if the hints do not request them.
 * - Adds bits that the hints request, and that only the core's info lacks.
 * - Copies AV type and threading level from the hints, because ofi_duo supports
 *   all types and levels.
 */
bool duo_info_satisfies(struct fi_info *info, const struct fi_info *hints)
{
	uint64_t comm;

	duo_info_drop_device(info, hints);
	duo_info_drop_order(info, hints);
	if (!hints)
		return true;
	if (!DUO_HINTS_WITHIN(hints, info, duo_info_fields) ||
	    (hints->rx_attr &&
	     hints->rx_attr->caps & FI_MULTI_RECV & ~info->caps))
		return false;
	/*
	 * The core's info lacks these bits, because ofi_duo does not request
	 * FI_LOCAL_COMM and FI_MULTI_RECV from the core, and the core of the
	 * provider near does not set FI_REMOTE_COMM here.
	 */
	comm = info->caps & DUO_COMM;
	if (hints->tx_attr)
		info->tx_attr->caps |= hints->tx_attr->caps & comm;
	if (hints->rx_attr) {
		info->rx_attr->caps |= hints->rx_attr->caps & comm;
		info->rx_attr->op_flags |= hints->rx_attr->op_flags &
					   FI_MULTI_RECV;
	}
	if (hints->domain_attr &&
	    hints->domain_attr->av_type != FI_AV_UNSPEC)
		info->domain_attr->av_type = hints->domain_attr->av_type;
	if (hints->domain_attr &&
	    hints->domain_attr->threading != FI_THREAD_UNSPEC)
		info->domain_attr->threading = hints->domain_attr->threading;
	return true;
}
