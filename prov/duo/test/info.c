/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* info.c: what becomes of a fi_info, by tables of named rows. */

#include <rdma/fi_errno.h>

#include "unit.h"

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

START_TEST(core_name)
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
END_TEST

#define COMP_ORDER 1ULL	/* any: there is none */

static struct fi_info *info;
static struct fi_info *hints;

/* What a core that can do everything says of itself. */
static struct fi_info *info_of_core(void)
{
	struct fi_info *core = fi_allocinfo();

	ck_assert_ptr_nonnull(core);
	core->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND |
		     FI_RECV | FI_READ | FI_WRITE | FI_MULTI_RECV | FI_SOURCE |
		     FI_DIRECTED_RECV | FI_REMOTE_COMM | FI_HMEM;
	core->ep_attr->type = FI_EP_RDM;
	core->ep_attr->max_order_raw_size = 100;
	core->ep_attr->max_order_war_size = 100;
	core->ep_attr->max_order_waw_size = 100;
	core->ep_attr->tx_ctx_cnt = 8;
	core->ep_attr->rx_ctx_cnt = 8;
	core->domain_attr->caps = FI_REMOTE_COMM | FI_SHARED_AV;
	core->domain_attr->cq_data_size = 8;
	core->domain_attr->cntr_cnt = 16;
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

static void setup(void)
{
	info = info_of_core();
	hints = fi_allocinfo();
}

static void teardown(void)
{
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* EFA must not use its own shm path, and must be able to cancel. */
START_TEST(to_core)
{
	struct fi_info *core;

	info->caps |= FI_LOCAL_COMM;
	info->tx_attr->caps |= FI_LOCAL_COMM;
	info->rx_attr->caps |= FI_LOCAL_COMM;
	info->domain_attr->caps = FI_LOCAL_COMM;
	info->tx_attr->msg_order = info->rx_attr->msg_order = 0;
	info->mode = FI_MSG_PREFIX | FI_CONTEXT;
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
	/* the core only ever sees single receives */
	ck_assert_uint_eq((core->caps | core->rx_attr->caps |
			   core->rx_attr->op_flags) & FI_MULTI_RECV, 0);
	ck_assert_uint_eq(core->mode & FI_MSG_PREFIX, 0);
	ck_assert_int_eq(core->domain_attr->av_type, FI_AV_TABLE);
	/* the caller's is not ours to change */
	ck_assert_str_eq(info->fabric_attr->prov_name, "efa;ofi_duo");
	ck_assert_uint_ne(info->caps & FI_LOCAL_COMM, 0);
	ck_assert_uint_eq(info->tx_attr->msg_order, 0);
	fi_freeinfo(core);
}
END_TEST

START_TEST(to_core_without_attributes)
{
	struct fi_info bare = { .caps = 0 };
	struct fi_info *core = duo_info_to_core(&bare);

	ck_assert_ptr_nonnull(core);
	ck_assert_uint_eq(core->caps, 0);	/* "any" stays "any" */
	ck_assert_ptr_null(core->fabric_attr);
	fi_freeinfo(core);
}
END_TEST

START_TEST(to_core_asks_only_efa_for_order)
{
	struct fi_info *core;

	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup("tcp;ofi_duo");
	info->tx_attr->msg_order = info->rx_attr->msg_order = 0;
	core = duo_info_to_core(info);
	ck_assert_uint_eq(core->tx_attr->msg_order, 0);
	ck_assert_uint_eq(core->rx_attr->msg_order, 0);
	fi_freeinfo(core);
}
END_TEST

#define CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE | \
	      FI_DIRECTED_RECV | FI_MULTI_RECV | FI_LOCAL_COMM | \
	      FI_REMOTE_COMM)

/* Nothing may be advertised that does not work on both paths. */
START_TEST(restrict_to_both_paths)
{
	ck_assert_int_eq(duo_info_restrict(info), 0);
	ck_assert_uint_eq(info->caps, CAPS);
	ck_assert_uint_eq(info->tx_attr->caps & ~(uint64_t) CAPS, 0);
	ck_assert_uint_eq(info->rx_attr->caps & ~(uint64_t) CAPS, 0);
	ck_assert_uint_eq(info->tx_attr->caps & FI_RECV, 0);
	ck_assert_uint_eq(info->rx_attr->caps & FI_SEND, 0);
	ck_assert_uint_eq(info->domain_attr->caps,
			  FI_LOCAL_COMM | FI_REMOTE_COMM);
	ck_assert_uint_eq(info->tx_attr->msg_order, FI_ORDER_SAS);
	ck_assert_uint_eq(info->rx_attr->msg_order, FI_ORDER_SAS);
	ck_assert_uint_eq(info->tx_attr->comp_order, 0);
	ck_assert_uint_eq(info->rx_attr->comp_order, 0);
	ck_assert_uint_eq(info->rx_attr->op_flags, FI_COMPLETION);
	ck_assert_uint_eq(info->tx_attr->rma_iov_limit, 0);
	ck_assert_uint_eq(info->domain_attr->cntr_cnt, 0);
	ck_assert_uint_eq(info->domain_attr->max_ep_stx_ctx, 0);
	ck_assert_uint_eq(info->domain_attr->max_ep_srx_ctx, 0);
	ck_assert_uint_eq(info->ep_attr->max_order_raw_size, 0);
	ck_assert_uint_eq(info->ep_attr->max_order_war_size, 0);
	ck_assert_uint_eq(info->ep_attr->max_order_waw_size, 0);
	ck_assert_uint_eq(info->ep_attr->tx_ctx_cnt, 1);
	ck_assert_uint_eq(info->ep_attr->rx_ctx_cnt, 1);
}
END_TEST

static const struct {
	const char *name;
	size_t core, ours;
	size_t offset;
} limit_cases[] = {
	{ "inject_size above shm's", 65536, 4096, 0 },
	{ "inject_size below shm's", 32, 32, 0 },
	{ "inject_size none", 0, 0, 0 },
	{ "tx iov_limit above shm's", 16, 4, 1 },
	{ "tx iov_limit below shm's", 2, 2, 1 },
	{ "rx iov_limit above shm's", 16, 4, 2 },
	{ "rx iov_limit below shm's", 1, 1, 2 },
	{ "cq_data_size below shm's", 4, 4, 3 },
	{ "cq_data_size above shm's", 16, 8, 3 },
};

static size_t *limit_of(struct fi_info *of, int which)
{
	size_t *const limit[] = {
		&of->tx_attr->inject_size, &of->tx_attr->iov_limit,
		&of->rx_attr->iov_limit, &of->domain_attr->cq_data_size,
	};

	return limit[which];
}

START_TEST(limits)
{
	size_t *limit = limit_of(info, limit_cases[_i].offset);

	*limit = limit_cases[_i].core;
	ck_assert_int_eq(duo_info_restrict(info), 0);
	ck_assert_msg(*limit == limit_cases[_i].ours, "%s: %zu",
		      limit_cases[_i].name, *limit);
}
END_TEST

/* A hint within our limit is met, one beyond is refused. */
START_TEST(limits_against_hints)
{
	const char *name = limit_cases[_i].name;
	size_t *wanted = limit_of(hints, limit_cases[_i].offset);

	*limit_of(info, limit_cases[_i].offset) = limit_cases[_i].core;
	ck_assert_int_eq(duo_info_restrict(info), 0);
	*wanted = limit_cases[_i].ours;
	ck_assert_msg(duo_info_satisfies(info, hints) == 0, "%s", name);
	++*wanted;
	ck_assert_msg(duo_info_satisfies(info, hints) == -FI_ENODATA, "%s",
		      name);
}
END_TEST

static const struct {
	const char *name;
	enum fi_ep_type type;
	uint64_t caps;
	uint64_t mode;
	int ret;
} usable_cases[] = {
	{ "rdm, both kinds", FI_EP_RDM, FI_MSG | FI_TAGGED, 0, 0 },
	{ "rdm, untagged only", FI_EP_RDM, FI_MSG, 0, 0 },
	{ "rdm, tagged only", FI_EP_RDM, FI_TAGGED, 0, 0 },
	{ "rdm, no messages", FI_EP_RDM, FI_RMA, 0, -FI_ENODATA },
	{ "dgram", FI_EP_DGRAM, FI_MSG, 0, -FI_ENODATA },
	{ "msg", FI_EP_MSG, FI_MSG, 0, -FI_ENODATA },
	{ "prefix mode", FI_EP_RDM, FI_MSG, FI_MSG_PREFIX, -FI_ENODATA },
	{ "context mode", FI_EP_RDM, FI_MSG, FI_CONTEXT | FI_CONTEXT2, 0 },
};

START_TEST(usable)
{
	info->ep_attr->type = usable_cases[_i].type;
	info->caps = usable_cases[_i].caps;
	info->mode = usable_cases[_i].mode;
	ck_assert_msg(duo_info_restrict(info) == usable_cases[_i].ret, "%s",
		      usable_cases[_i].name);
}
END_TEST

/* It has no tags and places messages past a posted receive. */
START_TEST(efa_direct_is_not_used)
{
	free(info->fabric_attr->name);
	info->fabric_attr->name = strdup("efa-direct");
	ck_assert_int_eq(duo_info_restrict(info), -FI_ENODATA);
}
END_TEST

START_TEST(restrict_names_a_threading_level)
{
	info->domain_attr->threading = FI_THREAD_UNSPEC;
	ck_assert_int_eq(duo_info_restrict(info), 0);
	ck_assert_int_eq(info->domain_attr->threading, FI_THREAD_SAFE);
}
END_TEST

enum field {
	CAPS_FIELD, TYPE_FIELD, TX_CAPS, TX_ORDER, TX_COMP, RX_CAPS, RX_ORDER,
	RX_COMP, RX_FLAGS, RMA_IOV, CNTR_CNT,
};

static void hint_set(enum field field, uint64_t value)
{
	switch (field) {
	case CAPS_FIELD:
		hints->caps = value;
		break;
	case TYPE_FIELD:
		hints->ep_attr->type = value;
		break;
	case TX_CAPS:
		hints->tx_attr->caps = value;
		break;
	case TX_ORDER:
		hints->tx_attr->msg_order = value;
		break;
	case TX_COMP:
		hints->tx_attr->comp_order = value;
		break;
	case RX_CAPS:
		hints->rx_attr->caps = value;
		break;
	case RX_ORDER:
		hints->rx_attr->msg_order = value;
		break;
	case RX_COMP:
		hints->rx_attr->comp_order = value;
		break;
	case RX_FLAGS:
		hints->rx_attr->op_flags = value;
		break;
	case RMA_IOV:
		hints->tx_attr->rma_iov_limit = value;
		break;
	case CNTR_CNT:
		hints->domain_attr->cntr_cnt = value;
		break;
	}
}

static const struct {
	const char *name;
	enum field field;
	uint64_t value;
	int ret;
} hint_cases[] = {
	{ "no capabilities", CAPS_FIELD, 0, 0 },
	{ "all of ours", CAPS_FIELD, CAPS, 0 },
	{ "RMA", CAPS_FIELD, FI_MSG | FI_RMA, -FI_ENODATA },
	{ "atomics", CAPS_FIELD, FI_ATOMIC, -FI_ENODATA },
	{ "multi-receive", CAPS_FIELD, FI_MSG | FI_MULTI_RECV, 0 },
	{ "tagged multi-receive", CAPS_FIELD, FI_TAGGED_MULTI_RECV,
	  -FI_ENODATA },
	{ "any type", TYPE_FIELD, FI_EP_UNSPEC, 0 },
	{ "rdm", TYPE_FIELD, FI_EP_RDM, 0 },
	{ "dgram", TYPE_FIELD, FI_EP_DGRAM, -FI_ENODATA },
	{ "msg", TYPE_FIELD, FI_EP_MSG, -FI_ENODATA },
	{ "tx: send", TX_CAPS, FI_SEND | FI_TAGGED, 0 },
	{ "tx: receive", TX_CAPS, FI_RECV, -FI_ENODATA },
	{ "tx: read", TX_CAPS, FI_READ, -FI_ENODATA },
	{ "tx: send after send", TX_ORDER, FI_ORDER_SAS, 0 },
	{ "tx: write after write", TX_ORDER, FI_ORDER_WAW, -FI_ENODATA },
	{ "tx: completion order", TX_COMP, COMP_ORDER, -FI_ENODATA },
	{ "rx: receive", RX_CAPS, FI_RECV | FI_SOURCE, 0 },
	{ "rx: send", RX_CAPS, FI_SEND, -FI_ENODATA },
	{ "rx: send after send", RX_ORDER, FI_ORDER_SAS, 0 },
	{ "rx: read after write", RX_ORDER, FI_ORDER_RAW, -FI_ENODATA },
	{ "rx: completion order", RX_COMP, COMP_ORDER, -FI_ENODATA },
	{ "rx: multi-receive", RX_FLAGS, FI_MULTI_RECV, 0 },
	{ "rx: completion flag", RX_FLAGS, FI_COMPLETION, 0 },
};

START_TEST(hints_supported)
{
	hint_set(hint_cases[_i].field, hint_cases[_i].value);
	ck_assert_msg(duo_hints_supported(hints) == hint_cases[_i].ret, "%s",
		      hint_cases[_i].name);
}
END_TEST

START_TEST(no_hints)
{
	const struct fi_info bare = { .caps = 0 };

	ck_assert_int_eq(duo_hints_supported(NULL), 0);
	ck_assert_int_eq(duo_info_satisfies(info, NULL), 0);
	ck_assert_int_eq(duo_hints_supported(&bare), 0);
	ck_assert_int_eq(duo_info_satisfies(info, &bare), 0);
}
END_TEST

static const struct {
	const char *name;
	enum field field;
	uint64_t value;
	int ret;
} taken_cases[] = {
	{ "caps that are left", CAPS_FIELD, CAPS, 0 },
	{ "caps that were taken", CAPS_FIELD, FI_RMA, -FI_ENODATA },
	{ "no RMA buffers", RMA_IOV, 0, 0 },
	{ "RMA buffers", RMA_IOV, 1, -FI_ENODATA },
	{ "no counters", CNTR_CNT, 0, 0 },
	{ "counters", CNTR_CNT, 1, -FI_ENODATA },
};

START_TEST(satisfies)
{
	ck_assert_int_eq(duo_info_restrict(info), 0);
	hint_set(taken_cases[_i].field, taken_cases[_i].value);
	ck_assert_msg(duo_info_satisfies(info, hints) == taken_cases[_i].ret,
		      "%s", taken_cases[_i].name);
}
END_TEST

/* Every type of AV is served, whatever the core's is. */
START_TEST(av_type_is_the_one_asked_for)
{
	info->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->av_type = FI_AV_MAP;
	ck_assert_int_eq(duo_info_satisfies(info, hints), 0);
	ck_assert_int_eq(info->domain_attr->av_type, FI_AV_MAP);
	hints->domain_attr->av_type = FI_AV_UNSPEC;
	ck_assert_int_eq(duo_info_satisfies(info, hints), 0);
	ck_assert_int_eq(info->domain_attr->av_type, FI_AV_MAP);
}
END_TEST

/* What the core itself lacks is not made up. */
START_TEST(multi_receive_needs_untagged_messages)
{
	info->caps = info->rx_attr->caps = FI_TAGGED | FI_SEND | FI_RECV;
	ck_assert_int_eq(duo_info_restrict(info), 0);
	ck_assert_uint_eq((info->caps | info->rx_attr->caps) & FI_MULTI_RECV,
			  0);
	hints->caps = FI_TAGGED | FI_MULTI_RECV;
	ck_assert_int_eq(duo_info_satisfies(info, hints), -FI_ENODATA);
	hints->caps = 0;
	hints->rx_attr->caps = FI_MULTI_RECV;
	ck_assert_int_eq(duo_info_satisfies(info, hints), -FI_ENODATA);
}
END_TEST

/* A default flag that the core was not asked for. */
START_TEST(multi_receive_by_default)
{
	info->caps &= ~FI_MULTI_RECV;
	info->rx_attr->caps &= ~FI_MULTI_RECV;
	info->rx_attr->op_flags = FI_COMPLETION;
	ck_assert_int_eq(duo_info_restrict(info), 0);
	ck_assert_uint_ne(info->caps & info->rx_attr->caps & FI_MULTI_RECV, 0);
	hints->rx_attr->op_flags = FI_MULTI_RECV;
	ck_assert_int_eq(duo_info_satisfies(info, hints), 0);
	ck_assert_uint_eq(info->rx_attr->op_flags,
			  FI_COMPLETION | FI_MULTI_RECV);
}
END_TEST

START_TEST(core_without_tags)
{
	info->caps = FI_MSG | FI_SEND | FI_RECV;
	ck_assert_int_eq(duo_info_restrict(info), 0);
	ck_assert_uint_eq(info->caps & (FI_TAGGED | FI_DIRECTED_RECV), 0);
	hints->caps = FI_TAGGED;
	ck_assert_int_eq(duo_info_satisfies(info, hints), -FI_ENODATA);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info");
	TCase *tcase = unit_case(suite, "core", setup, teardown);

	tcase_add_loop_test(tcase, core_name, 0, ARRAY_SIZE(name_cases));
	tcase_add_test(tcase, to_core);
	tcase_add_test(tcase, to_core_without_attributes);
	tcase_add_test(tcase, to_core_asks_only_efa_for_order);
	tcase = unit_case(suite, "restrict", setup, teardown);
	tcase_add_test(tcase, restrict_to_both_paths);
	tcase_add_loop_test(tcase, limits, 0, ARRAY_SIZE(limit_cases));
	tcase_add_loop_test(tcase, usable, 0, ARRAY_SIZE(usable_cases));
	tcase_add_test(tcase, efa_direct_is_not_used);
	tcase_add_test(tcase, restrict_names_a_threading_level);
	tcase_add_test(tcase, core_without_tags);
	tcase_add_test(tcase, multi_receive_needs_untagged_messages);
	tcase = unit_case(suite, "hints", setup, teardown);
	tcase_add_loop_test(tcase, hints_supported, 0,
			    ARRAY_SIZE(hint_cases));
	tcase_add_test(tcase, no_hints);
	tcase_add_loop_test(tcase, satisfies, 0, ARRAY_SIZE(taken_cases));
	tcase_add_test(tcase, av_type_is_the_one_asked_for);
	tcase_add_test(tcase, multi_receive_by_default);
	tcase_add_loop_test(tcase, limits_against_hints, 0,
			    ARRAY_SIZE(limit_cases));
	return unit_run(suite);
}
