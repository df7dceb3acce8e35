/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * All functions except data transfer: closing in any legal order, names,
 * options. Invalid arguments must return an error and never crash. One rank.
 */

#include "common/ft.h"

static struct ft_ep e;
static struct ft_buf buf;

static void ft_begin(const struct ft_cfg *cfg)
{
	ft_open(&e, cfg);
	ft_exchange(&e);
	ft_buf_alloc(&e, &buf, 4096);
}

static void ft_finish(void)
{
	ft_buf_free(&buf);
	ft_close(&e);
}

static void ft_forget(void)
{
	ft.neps = 0;
	fi_freeinfo(e.info);
}

/*
 * Closes the endpoint (e), CQ (c), AV (a), domain (d) and fabric (f) in several
 * orders. In the order "ecdaf", the first close of the domain must fail with
 * -FI_EBUSY, because the AV is still open. Then the test closes AV and domain.
 */
static void ft_case_objects_close_in_order(void)
{
	static const char *const orders[] = {
		"ecadf", "ecdaf", "eacdf",
	};
	struct fid *fid;
	const char *c;
	size_t i;
	int ret;

	for (i = 0; i < FT_COUNT(orders); i++) {
		ft_open(&e, NULL);
		ft_exchange(&e);
		for (c = orders[i]; *c; c++) {
			fid = *c == 'e' ? &e.ep->fid : *c == 'c' ?
			      &e.txcq->fid : *c == 'a' ? &e.av->fid :
			      *c == 'd' ? &e.domain->fid : &e.fabric->fid;
			ret = fi_close(fid);
			if (*c == 'd' && c[1] == 'a') {
				FT_CHECK(ret == -FI_EBUSY,
					 "a domain in use was closed: %d", ret);
				FT_OK(fi_close(&e.av->fid));
				FT_OK(fi_close(&e.domain->fid));
				c++;
				continue;
			}
			FT_CHECK(!ret, "closing '%c' in %s: %d", *c, orders[i],
				 ret);
		}
		ft_forget();
	}
}

static void ft_case_objects_in_use_stay_open(void)
{
	ft_open(&e, NULL);
	FT_CHECK(fi_close(&e.txcq->fid) == -FI_EBUSY, "a CQ in use closed");
	FT_CHECK(fi_close(&e.av->fid) == -FI_EBUSY, "an AV in use closed");
	FT_CHECK(fi_close(&e.domain->fid) == -FI_EBUSY, "a domain closed");
	FT_CHECK(!e.ops || fi_close(&e.fabric->fid) == -FI_EBUSY,
		 "a fabric in use closed");
	ft_close_fids(&e);
}

static void ft_case_busy_ep_closes(void)
{
	static struct ft_op op[40];
	struct ft_xfer x = { .tagged = true, .addr = FI_ADDR_UNSPEC };
	int i;

	ft_begin(NULL);
	x.buf = buf.ptr;
	x.desc = buf.desc;
	x.len = 64;
	for (i = 0; i < 20; i++) {
		x.tag = i;
		x.tagged = i & 1;
		ft_rx(&e, FT_RX_RECV, &x, &op[i]);
	}
	for (; i < 40; i++) {
		x.tag = 1000 + i;
		x.tagged = true;
		ft_tx(&e, FT_TX_INJECT, 0, &x, NULL);
	}
	ft_progress_for(&e, 10);
	FT_OK(fi_close(&e.ep->fid));
	FT_OK(fi_close(&e.txcq->fid));
	ft_buf_free(&buf);
	FT_OK(fi_close(&e.av->fid));
	FT_OK(fi_close(&e.domain->fid));
	FT_OK(fi_close(&e.fabric->fid));
	ft_forget();
}

static void ft_case_name_is_returned(void)
{
	char name[FT_NAME_MAX], small[4] = { 0 };
	size_t len = 0, again;
	fi_addr_t addr;
	int ret;

	ft_begin(NULL);
	ret = fi_getname(&e.ep->fid, NULL, &len);
	FT_CHECK(ret == -FI_ETOOSMALL && len, "getname of 0 bytes: %d", ret);
	again = sizeof(small);
	ret = fi_getname(&e.ep->fid, small, &again);
	FT_CHECK(len <= 4 || (ret == -FI_ETOOSMALL && again == len),
		 "getname of 4 bytes: %d, %zu", ret, again);
	again = sizeof(name);
	FT_OK(fi_getname(&e.ep->fid, name, &again));
	FT_CHECK(again == len && !memcmp(name, e.self.name, len),
		 "getname is not stable: %zu, %zu", again, len);
	/* fi_av_lookup() must return the inserted address */
	again = sizeof(name);
	FT_OK(fi_av_lookup(e.av, e.peer[0].addr, name, &again));
	FT_CHECK(!e.ops ||
		 (again == len && !memcmp(name, e.self.name, len)),
		 "fi_av_lookup gives %zu other bytes", again);
	FT_OK(fi_av_remove(e.av, &e.peer[0].addr, 1, 0));
	FT_CHECK(fi_av_insert(e.av, e.self.name, 1, &addr, 0, NULL) == 1,
		 "inserting again");
	e.peer[0].addr = addr;
	ret = fi_setname(&e.ep->fid, name, len);
	FT_CHECK(ret <= 0, "fi_setname: %d", ret);
	ft_finish();
}

static void ft_case_options_are_kept(void)
{
	size_t value = 64, len = sizeof(value);
	bool flag;
	int ret;

	ft_begin(NULL);
	ret = fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&value, sizeof(value));
	FT_CHECK(ret <= 0, "setopt: %d", ret);
	ret = fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&value, &len);
	FT_CHECK(ret <= 0, "getopt: %d", ret);
	len = 1;
	ret = fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&value, &len);
	FT_CHECK(ret < 0 || !e.ops, "getopt into one byte: %d", ret);
	len = sizeof(flag);
	ret = fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, 0x7ffffff, &flag, len);
	FT_CHECK(ret < 0, "setopt of an unknown option: %d", ret);
	ret = fi_setopt(&e.ep->fid, 99, FI_OPT_MIN_MULTI_RECV, &value, len);
	FT_CHECK(ret < 0, "setopt of an unknown level: %d", ret);
	ft_finish();
}

/*
 * Checks that a call fails, and not with -FI_EAGAIN. For ofi_duo only: bare
 * cores accept some of these calls, or crash.
 */
#define FT_REFUSED(call) \
	do { \
		ssize_t refused_ = e.ops ? (call) : -FI_EINVAL; \
		\
		FT_CHECK(refused_ < 0 && refused_ != -FI_EAGAIN, "%s: %zd", \
			 #call, refused_); \
	} while (0)

static void ft_case_invalid_sends_fail(void)
{
	struct iovec iov[64] = { { 0 } };
	struct fi_context2 ctx;
	fi_addr_t self;
	void *desc[64];
	size_t i, max, inject;

	ft_begin(NULL);
	self = e.peer[0].addr;
	max = e.info->ep_attr->max_msg_size;
	inject = e.info->tx_attr->inject_size;
	for (i = 0; i < 64; i++) {
		iov[i].iov_base = buf.ptr + i;
		iov[i].iov_len = 1;
		desc[i] = buf.desc;
	}
	FT_REFUSED(fi_sendv(e.ep, iov, desc, 64, self, &ctx));
	FT_REFUSED(fi_tsendv(e.ep, iov, desc, 64, self, 1, &ctx));
	FT_REFUSED(fi_inject(e.ep, buf.ptr, inject + 1, self));
	FT_REFUSED(fi_tinject(e.ep, buf.ptr, inject + 1, self, 1));
	if (max < SIZE_MAX) {
		FT_REFUSED(fi_send(e.ep, buf.ptr, max + 1, buf.desc, self,
				   &ctx));
		FT_REFUSED(fi_tsend(e.ep, buf.ptr, max + 1, buf.desc, self, 1,
				    &ctx));
	}
	ft_finish();
}

static void ft_case_invalid_addresses_fail(void)
{
	struct fi_msg_tagged tmsg = { .iov_count = 1 };
	struct fi_msg msg = { .iov_count = 1 };
	struct fi_context2 ctx;
	fi_addr_t bad[] = { FI_ADDR_NOTAVAIL, 123456 };
	size_t i;

	ft_begin(NULL);
	for (i = 0; i < FT_COUNT(bad); i++) {
		FT_REFUSED(fi_send(e.ep, buf.ptr, 8, buf.desc, bad[i], &ctx));
		FT_REFUSED(fi_tsend(e.ep, buf.ptr, 8, buf.desc, bad[i], 1,
				    &ctx));
		FT_REFUSED(fi_inject(e.ep, buf.ptr, 8, bad[i]));
		FT_REFUSED(fi_tinject(e.ep, buf.ptr, 8, bad[i], 1));
	}
	tmsg.addr = msg.addr = e.peer[0].addr;
	FT_REFUSED(fi_sendmsg(e.ep, &msg, 0));
	FT_REFUSED(fi_tsendmsg(e.ep, &tmsg, 0));
	ft_finish();
}

static void ft_case_invalid_receives_fail(void)
{
	struct iovec iov[64] = { { 0 } };
	struct fi_context2 ctx, unknown;
	void *desc[64];
	size_t i;
	ssize_t ret;

	ft_begin(NULL);
	for (i = 0; i < 64; i++) {
		iov[i].iov_base = buf.ptr + i;
		iov[i].iov_len = 1;
		desc[i] = buf.desc;
	}
	FT_REFUSED(fi_recvv(e.ep, iov, desc, 64, FI_ADDR_UNSPEC, &ctx));
	FT_REFUSED(fi_trecvv(e.ep, iov, desc, 64, FI_ADDR_UNSPEC, 1, 0, &ctx));
	ret = fi_cancel(&e.ep->fid, &unknown);
	FT_CHECK(ret <= 0, "canceling an unknown receive: %zd", ret);
	ft_progress_for(&e, 10);
	ft_finish();
}

static void ft_case_invalid_opens_fail(void)
{
	struct fi_cq_attr cq_attr = { .format = 77, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av_attr = { .type = 77 };
	struct fid_cq *cq = NULL;
	struct fid_av *av = NULL;
	struct fid_ep *ep;

	ft_begin(NULL);
	FT_REFUSED(fi_cq_open(e.domain, &cq_attr, &cq, NULL));
	cq_attr.format = FI_CQ_FORMAT_TAGGED;
	cq_attr.wait_obj = 99;
	FT_REFUSED(fi_cq_open(e.domain, &cq_attr, &cq, NULL));
	FT_REFUSED(fi_av_open(e.domain, &av_attr, &av, NULL));
	FT_OK(fi_endpoint(e.domain, e.info, &ep, NULL));
	FT_REFUSED(fi_enable(ep)); /* no object was bound */
	FT_REFUSED(fi_ep_bind(ep, &e.domain->fid, 0));
	FT_OK(fi_close(&ep->fid));
	ft_finish();
}

/*
 * Reads a CQ while one of its endpoints is bound, but not enabled. In efa of
 * libfabric 2.1 such a read crashes, as does fi_cntr_read().
 */
static void ft_case_bound_ep_waits_for_enable(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_ep *idle, *ep;
	struct fid_cntr *cntr;
	struct fid_av *av[2];

	ft_open(&e, NULL);
	FT_OK(fi_cntr_open(e.domain, &attr, &cntr, NULL));
	FT_OK(fi_endpoint(e.domain, e.info, &idle, NULL));
	FT_OK(fi_ep_bind(idle, &e.txcq->fid, FI_TRANSMIT | FI_RECV));
	FT_OK(fi_ep_bind(idle, &cntr->fid, FI_SEND));
	FT_OK(fi_endpoint(e.domain, e.info, &ep, NULL));
	FT_OK(fi_ep_bind(ep, &e.txcq->fid, FI_TRANSMIT | FI_RECV));
	FT_OK(fi_ep_bind(ep, &cntr->fid, FI_SEND));
	FT_OK(fi_av_open(e.domain, &av_attr, &av[0], NULL));
	FT_OK(fi_av_open(e.domain, &av_attr, &av[1], NULL));
	FT_OK(fi_ep_bind(ep, &av[0]->fid, 0));
	FT_OK(fi_enable(ep));
	ft_progress_for(&e, 10);
	FT_CHECK(!fi_cntr_read(cntr), "a counter without sends is not 0");
	FT_OK(fi_ep_bind(idle, &av[1]->fid, 0));
	FT_OK(fi_enable(idle));
	ft_progress_for(&e, 10);
	FT_OK(fi_close(&idle->fid));
	FT_OK(fi_close(&ep->fid));
	FT_OK(fi_close(&av[0]->fid));
	FT_OK(fi_close(&av[1]->fid));
	FT_OK(fi_close(&cntr->fid));
	ft_close(&e);
}

/* Binds a counter for RMA to an endpoint without FI_RMA, as MPICH does. */
static void ft_case_rma_counter_is_bound(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_cntr *cntr;
	struct fid_av *av;
	struct fid_ep *ep;

	ft_begin(NULL);
	FT_OK(fi_cntr_open(e.domain, &attr, &cntr, NULL));
	FT_OK(fi_av_open(e.domain, &av_attr, &av, NULL));
	FT_OK(fi_endpoint(e.domain, e.info, &ep, NULL));
	FT_OK(fi_ep_bind(ep, &cntr->fid, FI_READ | FI_WRITE));
	FT_OK(fi_ep_bind(ep, &e.txcq->fid, FI_TRANSMIT | FI_RECV));
	FT_OK(fi_ep_bind(ep, &av->fid, 0));
	FT_OK(fi_enable(ep));
	FT_CHECK(!fi_cntr_read(cntr), "counted something");
	FT_OK(fi_close(&ep->fid));
	FT_OK(fi_close(&av->fid));
	FT_OK(fi_close(&cntr->fid));
	ft_finish();
}

static void ft_self_send(const struct ft_cfg *cfg)
{
	struct ft_op txop = { 0 }, rxop = { 0 };
	struct ft_xfer x = { .len = 8, .tag = 4, .addr = FI_ADDR_UNSPEC };
	int how;

	ft_begin(cfg);
	for (how = 0; how < 2 * FT_TX_COUNT; how++) {
		x.tagged = how & 1;
		x.buf = buf.ptr + 1024;
		x.desc = buf.desc;
		ft_rx(&e, how % FT_RX_COUNT, &x, &rxop);
		x.buf = buf.ptr;
		ft_fill(buf.ptr, 8, how);
		ft_tx(&e, how / 2, 0, &x, &txop);
		ft_wait(&e, &rxop);
		ft_wait(&e, &txop);
		ft_verify(buf.ptr + 1024, 8, how, "to myself");
	}
	ft_finish();
}

static void ft_case_self_send_works_after_errors(void)
{
	ft_self_send(NULL);
}

/* Open MPI requests one thread for control and data progress since 2026-08. */
static void ft_case_unified_progress_opens(void)
{
#if FI_MAJOR_VERSION >= 2
	const struct ft_cfg cfg = {
		.threading = FI_THREAD_DOMAIN,
		.control_progress = FI_PROGRESS_CONTROL_UNIFIED,
	};

	if (strcmp(ft.opts.prov, "near") && !ft_offers(&cfg, 0, 0))
		return;
	ft_self_send(&cfg);
#endif
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "objects close in each legal order",
		  ft_case_objects_close_in_order },
		{ "CQ and AV in use do not close",
		  ft_case_objects_in_use_stay_open },
		{ "endpoint with operations closes", ft_case_busy_ep_closes },
		{ "endpoint name is returned and inserted again",
		  ft_case_name_is_returned },
		{ "endpoint keeps its options", ft_case_options_are_kept },
		{ "invalid sends fail", ft_case_invalid_sends_fail },
		{ "operations on invalid addresses fail",
		  ft_case_invalid_addresses_fail },
		{ "invalid receives fail", ft_case_invalid_receives_fail },
		{ "opens and binds with invalid attributes fail",
		  ft_case_invalid_opens_fail },
		{ "CQ is read while an endpoint is bound and not enabled",
		  ft_case_bound_ep_waits_for_enable },
		{ "endpoint without FI_RMA accepts a counter of RMA",
		  ft_case_rma_counter_is_bound },
		{ "endpoint sends to itself after errors",
		  ft_case_self_send_works_after_errors },
		{ "domain with unified progress opens",
		  ft_case_unified_progress_opens },
	};

	ft_run_cases(cases, FT_COUNT(cases));
}

const struct ft_spec ft_spec = {
	.name = "ep_life", .nranks = 1, .run = ft_run,
};
