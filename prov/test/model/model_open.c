/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Open and close one or two endpoints with random attributes. */

#include "model.h"

#define MODEL_OWN 2000		/* core address of the second endpoint */
#define MODEL_ANOTHER 3000 /* core address in no AV of the endpoints */

static void model_choose_attr(struct fixture_attr *attr)
{
	static const char *const core[] = {
		"efa", NULL, NULL, "fake",	/* NULL: tcp */
	};
	static const enum fi_cq_format format[] = {
		FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA,
		FI_CQ_FORMAT_TAGGED, FI_CQ_FORMAT_TAGGED, FI_CQ_FORMAT_TAGGED,
	};

	attr->core = core[model_random(ARRAY_SIZE(core))];
	attr->no_shm = model_one_in(5);
	attr->format = format[model_random(ARRAY_SIZE(format))];
	attr->two_cqs = model_one_in(4);
	attr->threading = model_one_in(2) ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	if (model_one_in(3))
		attr->rx_bind_flags = FI_SELECTIVE_COMPLETION;
	if (model_one_in(2))
		attr->rx_op_flags = FI_COMPLETION;
	if (attr->format >= FI_CQ_FORMAT_DATA && model_one_in(4))
		attr->rx_op_flags |= FI_MULTI_RECV;
}

static void model_trace_open(void)
{
	model_trace("seed %d: %s, %s, %s, format %d, %s, op_flags 0x%lx, "
		    "window %zu", model.seed, fx.fabric.core_name,
		    model.attr.no_shm ? "no shm" : "shm",
		    model.attr.threading == FI_THREAD_SAFE ? "lock" :
							     "no lock",
		    model.attr.format, model.selective ? "selective" : "all",
		    (unsigned long) model.attr.rx_op_flags, model.window);
}

static size_t model_random_window(void)
{
	static const size_t window[] = { 1, 4, MODEL_POSTS, MODEL_POSTS };

	return window[model_random(ARRAY_SIZE(window))];
}

/* Hashes the seed as splitmix64 does, so that runs of adjacent seeds differ. */
static uint64_t model_mix(uint64_t seed)
{
	seed *= 0x9e3779b97f4a7c15ULL;
	seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9ULL;
	seed = (seed ^ seed >> 27) * 0x94d049bb133111ebULL;
	return seed ^ seed >> 31;
}

static void model_open_min(struct fid_ep *ep)
{
	size_t min = MODEL_MIN_MULTI;

	ck_assert_int_eq(ep_set(ep, FI_OPT_MIN_MULTI_RECV, min), 0);
}

static void model_open_first(void)
{
	ck_assert_int_eq(fixture_try(&model.attr), 0);
	model.ep[0] = (struct model_ep) {
		.ep = fx.ep,
		.av = fx.av,
		.cq = fx.cq,
		.tx_cq = fx.tx_cq ? fx.tx_cq : fx.cq,
	};
}

static void model_bind(const struct model_ep *ep)
{
	uint64_t flags = FI_RECV | model.attr.rx_bind_flags;

	ck_assert_int_eq(fi_ep_bind(ep->ep, &ep->av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep->ep, &ep->tx_cq->fid, FI_TRANSMIT),
			 0);
	ck_assert_int_eq(fi_ep_bind(ep->ep, &ep->cq->fid, flags), 0);
}

/*
 * Opens the second endpoint. Then the core assigns a fi_addr to a sender that
 * was not inserted (MODEL_ANOTHER).
 */
static void model_open_second(bool own_av, bool own_cq)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = {
		.format = model.attr.format ? model.attr.format :
					      FI_CQ_FORMAT_TAGGED,
	};
	struct model_ep *ep = &model.ep[1];

	*ep = model.ep[0];
	fake.core.own_addr = MODEL_OWN;
	if (own_av)
		ck_assert_int_eq(fi_av_open(fx.domain, &av_attr, &ep->av,
					    NULL), 0);
	if (own_cq)
		ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &ep->cq,
					    NULL), 0);
	if (!fx.tx_cq)
		ep->tx_cq = ep->cq;
	ep->ep = fixture_unbound(&model.attr);
	model_bind(ep);
	ck_assert_int_eq(fi_enable(ep->ep), 0);
	fake_core_learn(&fake_core_of(ep->ep)->bound_av->av, MODEL_ANOTHER);
}

static void model_open_eps(void)
{
	bool own_av, own_cq;
	int i;

	model_open_first();
	model.eps = 1 + model_random(MODEL_EPS);
	own_av = model_one_in(2);
	own_cq = model_one_in(2);
	if (model.eps > 1)
		model_open_second(own_av, own_cq);
	for (i = 0; i < model.eps; i++) {
		model_open_min(model.ep[i].ep);
		model.ep[i].core = fake_core_of(model.ep[i].ep);
		if (!model.attr.no_shm)
			model.ep[i].shm = fake_shm_of(model.ep[i].ep);
	}
	model_trace("%d endpoints, %s AV, %s CQ%s", model.eps,
		    own_av ? "each its own" : "one",
		    own_cq ? "each its own" : "one",
		    fx.tx_cq ? ", another CQ for sends" : "");
}

/* Closes all objects, the endpoints in random order. */
void model_close(void)
{
	struct model_ep *ep = &model.ep[1];

	if (ep->ep && model_one_in(2)) {
		fixture_close_ep();
	}
	if (ep->ep)
		ck_assert_int_eq(fi_close(&ep->ep->fid), 0);
	if (ep->cq && ep->cq != fx.cq)
		ck_assert_int_eq(fi_close(&ep->cq->fid), 0);
	if (ep->av && ep->av != fx.av)
		ck_assert_int_eq(fi_close(&ep->av->fid), 0);
	fixture_close();
}

void model_open(int seed)
{
	memset(&model, 0, sizeof(model));
	model.seed = seed;
	model.random = model_mix(seed);
	model_choose_attr(&model.attr);
	model.util_srx = model.attr.core && !strcmp(model.attr.core, "efa");
	model.selective = model.attr.rx_bind_flags;
	model.lazy_reader = model_one_in(3);
	model.eager_reader = !model.lazy_reader && model_one_in(2);
	model.local_first = model_one_in(3);
	model.single_in = 1 + model_random(4);
	model.window = model_random_window();

	fixture_open(&model.attr);
	duo_params.defer_polls = 1 + model_random(4);
	duo_params.defer_us = model_one_in(2) ? 0 : 1 << 30;
	duo_params.core_poll_interval = 1 + model_random(3);
	model_open_eps();
	fake.shm.send_polls = model_one_in(2);
	model_trace_open();
	model_open_peers();
}
