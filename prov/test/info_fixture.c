/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "info_fixture.h"

struct fi_info *info;
struct fi_info *hints;

static struct fi_info *info_of_core(void)
{
	struct fi_info *core = fi_allocinfo();

	ck_assert_ptr_nonnull(core);
	core->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND |
		     FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
		     FI_REMOTE_WRITE | FI_RMA_EVENT | FI_RMA_PMEM |
		     FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV |
		     FI_REMOTE_COMM | FI_HMEM | FI_FENCE | FI_COLLECTIVE;
	core->ep_attr->type = FI_EP_RDM;
	core->ep_attr->max_order_raw_size = 100;
	core->ep_attr->max_order_war_size = 100;
	core->ep_attr->max_order_waw_size = 100;
	core->ep_attr->tx_ctx_cnt = 8;
	core->ep_attr->rx_ctx_cnt = 8;
	core->domain_attr->caps = FI_REMOTE_COMM | FI_SHARED_AV;
	core->domain_attr->cq_data_size = 8;
	core->domain_attr->cntr_cnt = 16;
	core->domain_attr->data_progress = FI_PROGRESS_AUTO;
	core->domain_attr->max_ep_stx_ctx = 4;
	core->domain_attr->max_ep_srx_ctx = 4;
	core->tx_attr->caps = core->caps;
	core->tx_attr->inject_size = 65536;
	core->tx_attr->iov_limit = 16;
	core->tx_attr->rma_iov_limit = 16;
	core->tx_attr->msg_order = ~0ULL;
	core->tx_attr->comp_order = COMP_ORDER;
	core->rx_attr->caps = core->caps;
	core->rx_attr->iov_limit = 16;
	core->rx_attr->msg_order = ~0ULL;
	core->rx_attr->comp_order = COMP_ORDER;
	core->rx_attr->op_flags = FI_MULTI_RECV | FI_COMPLETION;
	core->fabric_attr->prov_name = strdup("efa;ofi_duo");
	core->fabric_attr->name = strdup("efa");
	return core;
}

void info_set(struct fi_info *of, const struct duo_hint *field, uint64_t value)
{
	char *at = (char *) of;

	if (!field->direct)
		memcpy(&at, at + field->attr, sizeof(at));
	/* on a little-endian CPU, the first bytes are the low ones */
	memcpy(at + field->at, &value, field->size);
}

void info_setup(void)
{
	info = info_of_core();
	hints = fi_allocinfo();
}

void info_teardown(void)
{
	fi_freeinfo(info);
	fi_freeinfo(hints);
}
