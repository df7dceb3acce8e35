/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi/info.c: whether ofi_duo's info satisfies an application's hints. */

#include "info_fixture.h"
#include "near/logged.h"

#define CAPS_FIELD DUO_HINT_INFO(true, caps)
#define TX_CAPS DUO_HINT_SET(tx_attr, caps)
#define TX_ORDER DUO_HINT_SET(tx_attr, msg_order)
#define TX_COMP DUO_HINT_SET(tx_attr, comp_order)
#define RX_CAPS DUO_HINT_SET(rx_attr, caps)
#define RX_ORDER DUO_HINT_SET(rx_attr, msg_order)
#define RX_COMP DUO_HINT_SET(rx_attr, comp_order)
#define RX_FLAGS DUO_HINT_SET(rx_attr, op_flags)
#define TYPE_FIELD DUO_HINT_MAX(ep_attr, type)
#define TX_CTX DUO_HINT_MAX(ep_attr, tx_ctx_cnt)
#define RX_CTX DUO_HINT_MAX(ep_attr, rx_ctx_cnt)
#define RMA_IOV DUO_HINT_MAX(tx_attr, rma_iov_limit)
#define INJECT DUO_HINT_MAX(tx_attr, inject_size)
#define TX_IOV DUO_HINT_MAX(tx_attr, iov_limit)
#define RX_IOV DUO_HINT_MAX(rx_attr, iov_limit)
#define CNTR_CNT DUO_HINT_MAX(domain_attr, cntr_cnt)
#define CQ_DATA DUO_HINT_MAX(domain_attr, cq_data_size)
#define PROGRESS DUO_HINT_MAX(domain_attr, data_progress)
#define THREADING DUO_HINT_MAX(domain_attr, threading)
#define AV_TYPE DUO_HINT_MAX(domain_attr, av_type)
#define STX DUO_HINT_MAX(domain_attr, max_ep_stx_ctx)
#define SRX DUO_HINT_MAX(domain_attr, max_ep_srx_ctx)
#define DOMAIN_CAPS DUO_HINT_SET(domain_attr, caps)

/* Hints with a value in one field. ok: they must be accepted */
struct hint_case {
	const char *name;
	struct duo_hint field;
	uint64_t value;
	bool ok;
};

static const struct hint_case hint_cases[] = {
	{ "no capabilities", CAPS_FIELD, 0, true },
	{ "all of ours", CAPS_FIELD, CAPS, true },
	{ "RMA", CAPS_FIELD, FI_MSG | FI_RMA, true },
	{ "atomics alone", CAPS_FIELD, FI_ATOMIC, true },
	{ "fenced RMA alone", CAPS_FIELD, FI_RMA | FI_FENCE, true },
	{ "fenced messages", CAPS_FIELD, FI_MSG | FI_FENCE, true },
	{ "device memory", CAPS_FIELD, FI_MSG | FI_HMEM, true },
	{ "collectives alone", CAPS_FIELD, FI_COLLECTIVE, false },
	{ "progress: manual", PROGRESS, FI_PROGRESS_MANUAL, true },
	{ "progress: automatic", PROGRESS, FI_PROGRESS_AUTO, false },
	{ "threading", THREADING, FI_THREAD_ENDPOINT, true },
	{ "unknown threading", THREADING, FI_THREAD_ENDPOINT + 1, false },
	{ "AV type", AV_TYPE, FI_AV_TABLE, true },
	{ "unknown AV type", AV_TYPE, FI_AV_TABLE + 1, false },
	{ "multi-receive", CAPS_FIELD, FI_MSG | FI_MULTI_RECV, true },
	{ "tagged multi-receive", CAPS_FIELD, FI_TAGGED_MULTI_RECV, false },
	{ "any type", TYPE_FIELD, FI_EP_UNSPEC, true },
	{ "rdm", TYPE_FIELD, FI_EP_RDM, true },
	{ "dgram", TYPE_FIELD, FI_EP_DGRAM, false },
	{ "msg", TYPE_FIELD, FI_EP_MSG, false },
	{ "tx: send", TX_CAPS, FI_SEND | FI_TAGGED, true },
	{ "tx: receive", TX_CAPS, FI_RECV, false },
	{ "tx: read", TX_CAPS, FI_READ, true },
	{ "tx: remote read", TX_CAPS, FI_REMOTE_READ, false },
	{ "tx: send after send", TX_ORDER, FI_ORDER_SAS, true },
	{ "tx: of ours", TX_ORDER, ORDER, true },
	{ "tx: write after send", TX_ORDER, FI_ORDER_WAS, true },
	{ "tx: send after read", TX_ORDER, FI_ORDER_SAR, true },
	{ "tx: an order that we do not know", TX_ORDER, 1ULL << 60, false },
	{ "tx: completion order", TX_COMP, COMP_ORDER, false },
	{ "rx: receive", RX_CAPS, FI_RECV | FI_SOURCE, true },
	{ "rx: send", RX_CAPS, FI_SEND, false },
	{ "rx: send after send", RX_ORDER, FI_ORDER_SAS, true },
	{ "rx: read after write", RX_ORDER, FI_ORDER_RAW, true },
	{ "rx: send after write", RX_ORDER, FI_ORDER_SAW, true },
	{ "rx: read after send", RX_ORDER, FI_ORDER_RAS, true },
	{ "rx: completion order", RX_COMP, COMP_ORDER, false },
	{ "rx: multi-receive", RX_FLAGS, FI_MULTI_RECV, true },
	{ "rx: completion flag", RX_FLAGS, FI_COMPLETION, true },
};

UNIT_CASE("hints", info_setup, info_teardown);

UNIT_ROUNDS(hints_supported, 0, ARRAY_SIZE(hint_cases))
{
	info_set(hints, &hint_cases[_i].field, hint_cases[_i].value);
	ck_assert_msg(duo_hints_supported(hints) == hint_cases[_i].ok, "%s",
		      hint_cases[_i].name);
}

UNIT_TEST(rma_hints_check_few_fields)
{
	hints->caps = FI_RMA | FI_ATOMIC;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = MIXED_ORDER;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	ck_assert(duo_hints_supported(hints));
	hints->ep_attr->type = FI_EP_MSG;
	ck_assert(!duo_hints_supported(hints));
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_ENDPOINT + 1;
	ck_assert(!duo_hints_supported(hints));
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->av_type = FI_AV_TABLE + 1;
	ck_assert(!duo_hints_supported(hints));
}

/*
 * The only capability in the hints is one that ofi_duo implements itself.
 * ofi_duo removes it from the hints for the core. To hints without
 * capabilities, the core returns infos with messages. ofi_duo has no automatic
 * progress for messages, so it must reject FI_PROGRESS_AUTO.
 */
UNIT_LOOP(hints_with_our_capability_only_are_for_messages, 0, 2)
{
	hints->caps = _i ? FI_MULTI_RECV : FI_LOCAL_COMM;
	ck_assert(duo_hints_supported(hints));
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	ck_assert(!duo_hints_supported(hints));
}

UNIT_TEST(no_hints)
{
	const struct fi_info bare = { .caps = 0 };

	ck_assert(duo_hints_supported(NULL));
	ck_assert(duo_info_satisfies(info, NULL));
	ck_assert(duo_hints_supported(&bare));
	ck_assert(duo_info_satisfies(info, &bare));
}

static const struct hint_case taken_cases[] = {
	{ "caps that are left", CAPS_FIELD, CAPS, true },
	{ "device memory", CAPS_FIELD, CAPS | FI_HMEM, true },
	{ "caps that were taken", CAPS_FIELD, FI_COLLECTIVE, false },
	{ "fences", CAPS_FIELD, FI_MSG | FI_FENCE, true },
	{ "RMA buffers", RMA_IOV, 16, true },
	{ "no counters", CNTR_CNT, 0, true },
	{ "counters", CNTR_CNT, 16, true },
	{ "too many counters", CNTR_CNT, 17, false },
	{ "a transmit context", TX_CTX, 1, true },
	{ "transmit contexts", TX_CTX, 2, false },
	{ "shared transmit context", TX_CTX, FI_SHARED_CONTEXT, false },
	{ "a receive context", RX_CTX, 1, true },
	{ "shared receive context", RX_CTX, FI_SHARED_CONTEXT, false },
	{ "transmit contexts to share", STX, 1, false },
	{ "receive contexts to share", SRX, 1, false },
	{ "local communication", DOMAIN_CAPS, FI_LOCAL_COMM, true },
	{ "shared AVs", DOMAIN_CAPS, FI_SHARED_AV, false },
};

UNIT_ROUNDS(satisfies, 0, ARRAY_SIZE(taken_cases))
{
	ck_assert(duo_info_restrict(info));
	info_set(hints, &taken_cases[_i].field, taken_cases[_i].value);
	ck_assert_msg(duo_info_satisfies(info, hints) == taken_cases[_i].ok,
		      "%s", taken_cases[_i].name);
}

/* The returned info has the AV type of the hints, not that of the core. */
UNIT_TEST(info_has_av_type_of_hints)
{
	info->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->av_type = FI_AV_MAP;
	ck_assert(duo_info_satisfies(info, hints));
	ck_assert_int_eq(info->domain_attr->av_type, FI_AV_MAP);
	hints->domain_attr->av_type = FI_AV_UNSPEC;
	ck_assert(duo_info_satisfies(info, hints));
	ck_assert_int_eq(info->domain_attr->av_type, FI_AV_MAP);
}

/*
 * The returned info has the threading level of the hints. The core may prefer
 * another level, with which MPICH would fail.
 */
UNIT_TEST(info_has_threading_of_hints)
{
	info->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	ck_assert(duo_info_satisfies(info, hints));
	ck_assert_int_eq(info->domain_attr->threading, FI_THREAD_DOMAIN);
	hints->domain_attr->threading = FI_THREAD_UNSPEC;
	ck_assert(duo_info_satisfies(info, hints));
	ck_assert_int_eq(info->domain_attr->threading, FI_THREAD_DOMAIN);
}

/*
 * If the hints have these capabilities in tx_attr and rx_attr, the info has
 * them there, too, even if the core's info lacks them.
 */
UNIT_LOOP(info_has_communication_of_hints, 0, 2)
{
	const uint64_t comm = _i ? FI_REMOTE_COMM : FI_LOCAL_COMM;

	info->tx_attr->caps = info->rx_attr->caps = FI_MSG;
	ck_assert(duo_info_restrict(info));
	hints->tx_attr->caps = hints->rx_attr->caps = FI_MSG | comm;
	ck_assert(duo_info_satisfies(info, hints));
	ck_assert_uint_eq(info->tx_attr->caps, FI_MSG | comm);
	ck_assert_uint_eq(info->rx_attr->caps & ~FI_MULTI_RECV, FI_MSG | comm);
}

UNIT_TEST(multi_receive_needs_untagged_messages)
{
	info->caps = info->rx_attr->caps = FI_TAGGED | FI_SEND | FI_RECV;
	ck_assert(duo_info_restrict(info));
	ck_assert_uint_eq((info->caps | info->rx_attr->caps) & FI_MULTI_RECV,
			  0);
	hints->caps = FI_TAGGED | FI_MULTI_RECV;
	ck_assert(!duo_info_satisfies(info, hints));
	hints->caps = 0;
	hints->rx_attr->caps = FI_MULTI_RECV;
	ck_assert(!duo_info_satisfies(info, hints));
}

/*
 * ofi_duo supports FI_MULTI_RECV as default flag of receives, even if the core
 * lacks this capability.
 */
UNIT_TEST(default_multi_recv_is_supported)
{
	info->caps &= ~FI_MULTI_RECV;
	info->rx_attr->caps &= ~FI_MULTI_RECV;
	info->rx_attr->op_flags = FI_COMPLETION;
	ck_assert(duo_info_restrict(info));
	ck_assert_uint_ne(info->caps & info->rx_attr->caps & FI_MULTI_RECV, 0);
	hints->rx_attr->op_flags = FI_MULTI_RECV;
	ck_assert(duo_info_satisfies(info, hints));
	ck_assert_uint_eq(info->rx_attr->op_flags,
			  FI_COMPLETION | FI_MULTI_RECV);
}

UNIT_TEST(core_without_tags)
{
	info->caps = FI_MSG | FI_SEND | FI_RECV;
	ck_assert(duo_info_restrict(info));
	ck_assert_uint_eq(info->caps & (FI_TAGGED | FI_DIRECTED_RECV), 0);
	hints->caps = FI_TAGGED;
	ck_assert(!duo_info_satisfies(info, hints));
}

/* A limit: the core's value, and the value that ofi_duo returns */
static const struct {
	const char *name;
	size_t core, ours;
	struct duo_hint field;
} limit_cases[] = {
	{ "inject_size above shm's", 65536, 4096, INJECT },
	{ "inject_size below shm's", 32, 32, INJECT },
	{ "inject_size none", 0, 0, INJECT },
	{ "tx iov_limit above shm's", 16, 4, TX_IOV },
	{ "tx iov_limit below shm's", 2, 2, TX_IOV },
	{ "rx iov_limit above shm's", 16, 4, RX_IOV },
	{ "rx iov_limit below shm's", 1, 1, RX_IOV },
	{ "cq_data_size below shm's", 4, 4, CQ_DATA },
	{ "cq_data_size above shm's", 16, 8, CQ_DATA },
};

UNIT_ROUNDS(hints_beyond_limits_are_rejected, 0, ARRAY_SIZE(limit_cases))
{
	const char *name = limit_cases[_i].name;
	const struct duo_hint *field = &limit_cases[_i].field;

	info_set(info, field, limit_cases[_i].core);
	ck_assert(duo_info_restrict(info));
	info_set(hints, field, limit_cases[_i].ours);
	ck_assert_msg(duo_info_satisfies(info, hints), "%s", name);
	logged_level = FI_LOG_INFO;
	logged_lines = 0;
	info_set(hints, field, limit_cases[_i].ours + 1);
	ck_assert_msg(!duo_info_satisfies(info, hints), "%s", name);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, "more than") != NULL, "%s: %s", name,
		      logged);
}
