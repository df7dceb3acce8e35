/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi/info.c: how ofi_duo changes a core's fi_info. */

#include "info_fixture.h"

static const struct {
	const char *name;
	const char *core;
} name_cases[] = {
	{ "efa;ofi_duo", "efa" },
	{ "tcp;ofi_rxm;ofi_duo", "tcp;ofi_rxm" },
	{ "TCP;OFI_DUO", "TCP" },
	{ "ofi_duo", NULL },
	{ ";ofi_duo", NULL },
	{ "efa", NULL },
	{ "", NULL },
	{ "ofi_duo;efa", NULL },
	{ "efaofi_duo", NULL },
	{ "efa;ofi_duo;", NULL },
	{ NULL, NULL },
};

UNIT_CASE("core", info_setup, info_teardown);

UNIT_LOOP(core_name, 0, ARRAY_SIZE(name_cases))
{
	const char *name = name_cases[_i].name;
	char *core = duo_core_name(name);

	if (name_cases[_i].core)
		ck_assert_msg(core && !strcmp(core, name_cases[_i].core),
			      "%s: %s", name, core ? core : "(null)");
	else
		ck_assert_msg(!core, "%s: %s", name, core);
	free(core);
}

/*
 * duo_info_to_core() makes the core's hints. It must remove FI_LOCAL_COMM:
 * without this capability in the hints, EFA does not use its own shared memory
 * path.
 */
UNIT_TEST(core_hints_disable_core_shm)
{
	struct fi_info *core;

	info->caps |= FI_LOCAL_COMM;
	info->tx_attr->caps |= FI_LOCAL_COMM;
	info->rx_attr->caps |= FI_LOCAL_COMM;
	info->domain_attr->caps = FI_LOCAL_COMM;
	info->tx_attr->msg_order = info->rx_attr->msg_order = 0;
	info->mode = FI_MSG_PREFIX | FI_CONTEXT;
	info->tx_attr->mode = info->rx_attr->mode = FI_MSG_PREFIX;
	info->ep_attr->msg_prefix_size = 8;
	info->domain_attr->av_type = FI_AV_MAP;
	core = duo_info_to_core(info);
	ck_assert_ptr_nonnull(core);
	ck_assert_str_eq(core->fabric_attr->prov_name, "efa");
	ck_assert_uint_eq(core->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM),
			  FI_REMOTE_COMM);
	ck_assert_uint_eq((core->tx_attr->caps | core->rx_attr->caps |
			   core->domain_attr->caps) & FI_LOCAL_COMM, 0);
	ck_assert_uint_eq(core->tx_attr->msg_order, FI_ORDER_SAS);
	ck_assert_uint_eq(core->rx_attr->msg_order, FI_ORDER_SAS);
	/* the core gets single receives only */
	ck_assert_uint_eq((core->caps | core->rx_attr->caps |
			   core->rx_attr->op_flags) & FI_MULTI_RECV, 0);
	ck_assert_uint_eq((core->mode | core->tx_attr->mode |
			   core->rx_attr->mode) & FI_MSG_PREFIX, 0);
	ck_assert_uint_eq(core->ep_attr->msg_prefix_size, 0);
	ck_assert_int_eq(core->domain_attr->av_type, FI_AV_TABLE);
	/* the application's hints are unchanged */
	ck_assert_str_eq(info->fabric_attr->prov_name, "efa;ofi_duo");
	ck_assert_uint_ne(info->caps & FI_LOCAL_COMM, 0);
	ck_assert_uint_eq(info->tx_attr->msg_order, 0);
	fi_freeinfo(core);
}

UNIT_TEST(to_core_without_attributes)
{
	struct fi_info bare = { .caps = 0 };
	struct fi_info *core = duo_info_to_core(&bare);

	ck_assert_ptr_nonnull(core);
	ck_assert_uint_eq(core->caps, 0);	/* 0: any capability */
	ck_assert_ptr_null(core->fabric_attr);
	fi_freeinfo(core);
}

UNIT_TEST(order_is_requested_of_efa_only)
{
	struct fi_info *core;

	info->caps = FI_MSG;
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup("tcp;ofi_duo");
	info->tx_attr->msg_order = info->rx_attr->msg_order = 0;
	core = duo_info_to_core(info);
	ck_assert_uint_eq(core->tx_attr->msg_order, 0);
	ck_assert_uint_eq(core->rx_attr->msg_order, 0);
	/* with FI_REMOTE_COMM alone, tcp would omit the loopback device */
	ck_assert_uint_eq(core->caps & FI_REMOTE_COMM, 0);
	fi_freeinfo(core);
}

UNIT_CASE("restrict", info_setup, info_teardown);

UNIT_TEST(info_has_features_of_both_paths)
{
	ck_assert(duo_info_restrict(info));
	ck_assert(duo_info_satisfies(info, NULL));
	ck_assert_uint_eq(info->caps, CAPS);
	ck_assert_uint_eq(info->tx_attr->caps & ~(uint64_t) CAPS, 0);
	ck_assert_uint_eq(info->rx_attr->caps & ~(uint64_t) CAPS, 0);
	ck_assert_uint_eq(info->tx_attr->caps & (FI_RECV | FI_REMOTE_READ), 0);
	ck_assert_uint_eq(info->rx_attr->caps & (FI_SEND | FI_READ), 0);
	ck_assert_uint_ne(info->tx_attr->caps & FI_READ, 0);
	ck_assert_uint_ne(info->rx_attr->caps & FI_RMA_EVENT, 0);
	ck_assert_uint_eq(info->domain_attr->caps,
			  FI_LOCAL_COMM | FI_REMOTE_COMM);
	ck_assert_uint_eq(info->tx_attr->msg_order, ORDER);
	ck_assert_uint_eq(info->rx_attr->msg_order, ORDER);
	ck_assert_uint_eq(info->tx_attr->comp_order, 0);
	ck_assert_uint_eq(info->rx_attr->comp_order, 0);
	ck_assert_uint_eq(info->rx_attr->op_flags, FI_COMPLETION);
	ck_assert_int_eq(info->domain_attr->data_progress,
			 FI_PROGRESS_MANUAL);
	/* limits of RMA and counters are the core's */
	ck_assert_uint_eq(info->tx_attr->rma_iov_limit, 16);
	ck_assert_uint_eq(info->domain_attr->cntr_cnt, 16);
	ck_assert_uint_eq(info->ep_attr->max_order_raw_size, 100);
	ck_assert_uint_eq(info->domain_attr->max_ep_stx_ctx, 0);
	ck_assert_uint_eq(info->domain_attr->max_ep_srx_ctx, 0);
	ck_assert_uint_eq(info->ep_attr->tx_ctx_cnt, 1);
	ck_assert_uint_eq(info->ep_attr->rx_ctx_cnt, 1);
}

UNIT_LOOP(hmem_is_returned_on_request, 0, 3)
{
	static const uint64_t asked[] = { 0, FI_MSG, FI_MSG | FI_HMEM };

	hints->caps = asked[_i];
	ck_assert(duo_info_restrict(info));
	ck_assert(duo_info_satisfies(info, hints));
	ck_assert_uint_eq(info->caps & FI_HMEM, asked[_i] & FI_HMEM);
	ck_assert_uint_eq(info->tx_attr->caps & FI_HMEM, asked[_i] & FI_HMEM);
	ck_assert_uint_eq(info->rx_attr->caps & FI_HMEM, asked[_i] & FI_HMEM);
}

/*
 * Orders between messages and RMA (MIXED_ORDER) are costly. So the orders in an
 * info depend on the hints:
 * - near keeps these orders if the CPU executes the core's atomics. Then the
 *   info has the orders that the hints request. If the hints have no msg_order,
 *   the info has all of MIXED_ORDER.
 * - Otherwise the info has all of MIXED_ORDER if the hints request one of these
 *   orders or FI_FENCE, and none if not.
 */
static const struct {
	const char *name;
	enum duo_transport_kind peer;
	const char *core;
	uint64_t hint_order, hint_caps;
	uint64_t order, caps;
} mixed_cases[] = {
	{"near, no hint", DUO_TRANSPORT_NEAR, "efa", 0, 0, MIXED_ORDER,
	 FI_FENCE},
	{"near, another order", DUO_TRANSPORT_NEAR, "efa", FI_ORDER_SAS, 0, 0,
	 FI_FENCE},
	{"near, requested", DUO_TRANSPORT_NEAR, "efa", FI_ORDER_WAS, 0,
	 FI_ORDER_WAS, FI_FENCE},
	{"near, fences", DUO_TRANSPORT_NEAR, "efa", FI_ORDER_SAS,
	 FI_MSG | FI_FENCE, 0, FI_FENCE},
	{"near, but its atomics are the card's", DUO_TRANSPORT_NEAR, "verbs", 0,
	 0, 0, 0},
	{"the same, requested", DUO_TRANSPORT_NEAR, "verbs", FI_ORDER_SAW, 0,
	 MIXED_ORDER, FI_FENCE},
	{"shm", DUO_TRANSPORT_SHM, "efa", 0, 0, 0, 0},
	{"shm, requested", DUO_TRANSPORT_SHM, "efa", FI_ORDER_RAS, 0,
	 MIXED_ORDER, FI_FENCE},
};

UNIT_LOOP(costly_orders_are_returned_on_request, 0, ARRAY_SIZE(mixed_cases))
{
	duo_params.local = mixed_cases[_i].peer;
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup(mixed_cases[_i].core);
	hints->tx_attr->msg_order = mixed_cases[_i].hint_order;
	hints->caps = mixed_cases[_i].hint_caps;
	ck_assert(duo_info_restrict(info));
	ck_assert(duo_info_satisfies(info, hints));
	duo_params.local = DUO_TRANSPORT_NEAR;
	ck_assert_msg((info->tx_attr->msg_order & MIXED_ORDER) ==
			      mixed_cases[_i].order &&
		      (info->rx_attr->msg_order & MIXED_ORDER) ==
			      mixed_cases[_i].order &&
		      (info->caps & FI_FENCE) == mixed_cases[_i].caps &&
		      (info->tx_attr->caps & FI_FENCE) == mixed_cases[_i].caps,
		      "%s", mixed_cases[_i].name);
	ck_assert_uint_eq(info->tx_attr->msg_order & ORDER, ORDER);
}

/*
 * If an info has no message capabilities, ofi_duo keeps the core's limits and
 * orders in it.
 */
UNIT_TEST(rma_only_info_is_that_of_core)
{
	info->caps &= ~(uint64_t) (FI_MSG | FI_TAGGED);
	ck_assert(duo_info_restrict(info));
	ck_assert_uint_eq(info->caps & (ONESIDED | FI_FENCE | FI_HMEM),
			  ONESIDED | FI_FENCE | FI_HMEM);
	ck_assert_uint_eq(info->caps & FI_COLLECTIVE, 0);
	ck_assert_uint_eq(info->tx_attr->msg_order, ~0ULL);
	ck_assert_uint_eq(info->tx_attr->comp_order, COMP_ORDER);
	ck_assert_uint_eq(info->tx_attr->inject_size, 65536);
	ck_assert_uint_eq(info->tx_attr->iov_limit, 16);
	ck_assert_uint_eq(info->domain_attr->cntr_cnt, 16);
	ck_assert_int_eq(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	/* exceptions: attributes of objects that ofi_duo does not have */
	ck_assert_uint_eq(info->domain_attr->max_ep_stx_ctx, 0);
	ck_assert_uint_eq(info->ep_attr->tx_ctx_cnt, 1);
}

UNIT_TEST(missing_remote_comm_is_not_added)
{
	info->caps &= ~FI_REMOTE_COMM;
	ck_assert(duo_info_restrict(info));
	ck_assert_uint_eq(info->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM),
			  FI_LOCAL_COMM);
}

static const struct {
	const char *name;
	enum fi_ep_type type;
	uint64_t caps;
	uint64_t mode;
	bool ok;
} usable_cases[] = {
	{ "rdm, both kinds", FI_EP_RDM, FI_MSG | FI_TAGGED, 0, true },
	{ "rdm, untagged only", FI_EP_RDM, FI_MSG, 0, true },
	{ "rdm, tagged only", FI_EP_RDM, FI_TAGGED, 0, true },
	{ "rdm, RMA only", FI_EP_RDM, FI_RMA, 0, true },
	{ "rdm, atomics only", FI_EP_RDM, FI_ATOMIC, 0, true },
	{ "rdm, nothing", FI_EP_RDM, FI_COLLECTIVE, 0, false },
	{ "dgram", FI_EP_DGRAM, FI_MSG, 0, false },
	{ "msg", FI_EP_MSG, FI_MSG, 0, false },
	{ "prefix mode", FI_EP_RDM, FI_MSG, FI_MSG_PREFIX, false },
	{ "context mode", FI_EP_RDM, FI_MSG, FI_CONTEXT | FI_CONTEXT2, true },
};

UNIT_LOOP(usable, 0, ARRAY_SIZE(usable_cases))
{
	info->ep_attr->type = usable_cases[_i].type;
	info->caps = usable_cases[_i].caps;
	info->mode = usable_cases[_i].mode;
	ck_assert_msg(duo_info_restrict(info) == usable_cases[_i].ok, "%s",
		      usable_cases[_i].name);
}

/* efa-direct has no tags, and no matching in the order of receives. */
UNIT_TEST(efa_direct_is_not_wrapped)
{
	ck_assert(!duo_traits_direct(info->fabric_attr));
	free(info->fabric_attr->name);
	info->fabric_attr->name = strdup("efa-direct");
	ck_assert(duo_traits_direct(info->fabric_attr));
	ck_assert(!duo_info_restrict(info));
}

UNIT_TEST(restrict_names_a_threading_level)
{
	info->domain_attr->threading = FI_THREAD_UNSPEC;
	ck_assert(duo_info_restrict(info));
	ck_assert_int_eq(info->domain_attr->threading, FI_THREAD_SAFE);
}
