/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Endpoints of the provider before, at and after fi_enable: what comes too early
 * or too late, or lacks something, fails with one line and changes nothing.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "api/near_fi.h"
#include "rma/ops.h"
#include "said.h"
#include "unit.h"

struct fi_provider near_prov = { .name = NEAR_NAME };
struct near_params near_params = {
	.cma = 1, .memory = NEAR_MEMORY,
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static bool no_proc;

/* Since the last time: one line, with these words. */
static void ep_said(const char *words)
{
	ck_assert_int_eq(said_lines, 1);
	ck_assert_ptr_nonnull(strstr(said, words));
	said_lines = 0;
}

static void ep_setup_as(enum fi_threading threading)
{
	struct fi_fabric_attr attr = { .api_version = FI_VERSION(1, 17) };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD,
	};

	info = fi_allocinfo();
	info->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
		     FI_DIRECTED_RECV;
	info->domain_attr->threading = threading;
	ck_assert(!near_fabric_open(&attr, &fabric, NULL));
	ck_assert(!near_domain_open(fabric, info, &domain, NULL));
	ck_assert(!fi_av_open(domain, &av_attr, &av, NULL));
	ck_assert(!fi_cq_open(domain, &cq_attr, &cq, NULL));
	ck_assert(!near_ep_open(domain, info, &ep, NULL));
}

static void ep_setup(void)
{
	ep_setup_as(FI_THREAD_DOMAIN);
}

static void ep_setup_locked(void)
{
	ep_setup_as(FI_THREAD_SAFE);
}

static void ep_teardown(void)
{
	ck_assert(!fi_close(&ep->fid));
	ck_assert(!fi_close(&cq->fid));
	ck_assert(!fi_close(&av->fid));
	ck_assert(!fi_close(&domain->fid));
	ck_assert(!fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static fi_addr_t ep_insert(struct fid_ep *of)
{
	struct near_addr name;
	size_t len = sizeof(name);
	fi_addr_t addr;

	ck_assert(!fi_getname(&of->fid, &name, &len));
	ck_assert_int_eq(fi_av_insert(av, &name, 1, &addr, 0, NULL), 1);
	return addr;
}

#define EP_EARLY(call) ck_assert_int_eq(call, -FI_EOPBADSTATE)

static void ep_early_messages(fi_addr_t to)
{
	char buf[64] = "";
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to };
	struct fi_msg_tagged tagged = {
		.msg_iov = &iov, .iov_count = 1, .addr = to,
	};

	EP_EARLY(fi_send(ep, buf, 8, NULL, to, NULL));
	EP_EARLY(fi_sendv(ep, &iov, NULL, 1, to, NULL));
	EP_EARLY(fi_sendmsg(ep, &msg, 0));
	EP_EARLY(fi_inject(ep, buf, 8, to));
	EP_EARLY(fi_senddata(ep, buf, 8, NULL, 1, to, NULL));
	EP_EARLY(fi_injectdata(ep, buf, 8, 1, to));
	EP_EARLY(fi_recv(ep, buf, 8, NULL, to, NULL));
	EP_EARLY(fi_recvv(ep, &iov, NULL, 1, to, NULL));
	EP_EARLY(fi_recvmsg(ep, &msg, 0));
	EP_EARLY(fi_recvmsg(ep, &msg, FI_MULTI_RECV));
	EP_EARLY(fi_tsend(ep, buf, 8, NULL, to, 1, NULL));
	EP_EARLY(fi_tsendv(ep, &iov, NULL, 1, to, 1, NULL));
	EP_EARLY(fi_tsendmsg(ep, &tagged, 0));
	EP_EARLY(fi_tinject(ep, buf, 8, to, 1));
	EP_EARLY(fi_tsenddata(ep, buf, 8, NULL, 1, to, 1, NULL));
	EP_EARLY(fi_tinjectdata(ep, buf, 8, 1, to, 1));
	EP_EARLY(fi_trecv(ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	EP_EARLY(fi_trecvv(ep, &iov, NULL, 1, to, 1, 0, NULL));
	EP_EARLY(fi_trecvmsg(ep, &tagged, 0));
	EP_EARLY(fi_trecvmsg(ep, &tagged, FI_PEEK));
}

static void ep_early_onesided(fi_addr_t to)
{
	uint64_t one = 1, was, with = 0;
	struct iovec iov = { &one, 8 };
	struct fi_rma_iov rma_iov = { 0, 8, 1 };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to,
		.rma_iov = &rma_iov, .rma_iov_count = 1,
	};

	EP_EARLY(fi_read(ep, &was, 8, NULL, to, 0, 1, NULL));
	EP_EARLY(fi_readv(ep, &iov, NULL, 1, to, 0, 1, NULL));
	EP_EARLY(fi_readmsg(ep, &msg, 0));
	EP_EARLY(fi_write(ep, &one, 8, NULL, to, 0, 1, NULL));
	EP_EARLY(fi_writev(ep, &iov, NULL, 1, to, 0, 1, NULL));
	EP_EARLY(fi_writemsg(ep, &msg, 0));
	EP_EARLY(fi_inject_write(ep, &one, 8, to, 0, 1));
	EP_EARLY(fi_writedata(ep, &one, 8, NULL, 1, to, 0, 1, NULL));
	EP_EARLY(fi_inject_writedata(ep, &one, 8, 1, to, 0, 1));
	EP_EARLY(fi_atomic(ep, &one, 1, NULL, to, 0, 1, FI_UINT64, FI_SUM,
			   NULL));
	EP_EARLY(fi_inject_atomic(ep, &one, 1, to, 0, 1, FI_UINT64, FI_SUM));
	EP_EARLY(fi_fetch_atomic(ep, &one, 1, NULL, &was, NULL, to, 0, 1,
				 FI_UINT64, FI_SUM, NULL));
	EP_EARLY(fi_compare_atomic(ep, &one, 1, NULL, &with, NULL, &was, NULL,
				   to, 0, 1, FI_UINT64, FI_CSWAP, NULL));
}

/* _i: nothing is bound; the address vector; all of it. */
START_TEST(data_before_enable)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t to = ep_insert(ep);
	char buf[8] = "";

	if (_i > 0)
		ck_assert(!fi_ep_bind(ep, &av->fid, 0));
	if (_i > 1)
		ck_assert(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	ep_early_messages(to);
	ep_early_onesided(to);
	ep_said("not enabled");
	ck_assert_int_eq(fi_cancel(&ep->fid, NULL), -FI_ENOENT);
	if (_i < 2)
		return;
	/* nothing of it was kept */
	ck_assert(!fi_enable(ep));
	ck_assert_int_eq(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
	ck_assert(!fi_tsend(ep, buf, 8, NULL, to, 1, buf));
	ck_assert_int_eq(fi_cq_read(cq, &entry, 1), 1);
	ck_assert_ptr_eq(entry.op_context, buf);
	ck_assert_int_eq(said_lines, 0);
}
END_TEST

START_TEST(enable_needs)
{
	ck_assert_int_eq(fi_ep_bind(ep, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOAV);
	ep_said("no address vector");
	ck_assert(!fi_ep_bind(ep, &av->fid, 0));
	ck_assert_int_eq(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOCQ);
	ep_said("FI_TRANSMIT");
	ck_assert(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT));
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOCQ);
	ep_said("FI_RECV");
	ck_assert(!fi_ep_bind(ep, &cq->fid, FI_RECV));
	ck_assert(!fi_enable(ep));
	ck_assert_int_eq(said_lines, 0);
}
END_TEST

START_TEST(enabled)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	fi_addr_t to = ep_insert(ep);

	ck_assert(!fi_ep_bind(ep, &av->fid, 0));
	ck_assert(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(ep));
	ck_assert_int_eq(fi_enable(ep), -FI_EOPBADSTATE);
	ep_said("another fi_enable");
	ck_assert_int_eq(fi_ep_bind(ep, &av->fid, 0), -FI_EOPBADSTATE);
	ep_said("address vector");
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EOPBADSTATE);
	ep_said("completion queue");
	/* counters may come late: Sandia OpenSHMEM's do */
	ck_assert(!fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	ck_assert(!fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_RECV));
	ck_assert_int_eq(fi_shutdown(ep, 0), -FI_ENOSYS);
	ck_assert(!fi_inject(ep, "x", 1, to));
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	/* what is bound is in use */
	ck_assert_int_eq(fi_close(&cntr->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&cq->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&av->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	ck_assert(!fi_inject(ep, "x", 1, to));
	ck_assert(!fi_close(&ep->fid));
	ck_assert(!fi_close(&cntr->fid));
	ck_assert(!near_ep_open(domain, info, &ep, NULL));
}
END_TEST

/*
 * A message that comes before its receiver is enabled, or has all that it is to
 * be told by, waits: who reads what is bound already does not meet it.
 */
START_TEST(message_before_enable)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_cq_tagged_entry entry;
	fi_addr_t to = ep_insert(ep);
	struct fid_cntr *cntr;
	struct fid_ep *other;
	char in[8];

	ck_assert(!near_ep_open(domain, info, &other, NULL));
	ck_assert(!fi_ep_bind(other, &av->fid, 0));
	ck_assert(!fi_ep_bind(other, &cq->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(other));
	ck_assert(!fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	ck_assert(!fi_ep_bind(ep, &cntr->fid, FI_RECV));
	ck_assert(!fi_ep_bind(ep, &cq->fid, _i ? FI_RECV : FI_TRANSMIT));
	ck_assert(!fi_tinject(other, "early", 6, to, 1));
	ck_assert_int_eq(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
	ck_assert_int_eq(fi_cq_sread(cq, &entry, 1, NULL, 1), -FI_EAGAIN);
	ck_assert_uint_eq(fi_cntr_read(cntr), 0);
	ck_assert(!fi_ep_bind(ep, &cq->fid, _i ? FI_TRANSMIT : FI_RECV));
	ck_assert(!fi_ep_bind(ep, &av->fid, 0));
	ck_assert(!fi_enable(ep));
	ck_assert(!fi_trecv(ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, in));
	ck_assert_int_eq(fi_cq_sread(cq, &entry, 1, NULL, 10000), 1);
	ck_assert_ptr_eq(entry.op_context, in);
	ck_assert_str_eq(in, "early");
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	ck_assert(!fi_close(&other->fid));
	ck_assert(!fi_close(&ep->fid));
	ck_assert(!fi_close(&cntr->fid));
	ck_assert(!near_ep_open(domain, info, &ep, NULL));
}
END_TEST

static void ep_enable(struct fid_ep *of, struct fid_cq *its)
{
	ck_assert(!fi_ep_bind(of, &av->fid, 0));
	ck_assert(!fi_ep_bind(of, &its->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(of));
}

static void ep_completed(struct fid_cq *others)
{
	struct fi_cq_tagged_entry entry;
	int i;

	for (i = 0; i < 1000000 && fi_cq_read(cq, &entry, 1) != 1; i++)
		ck_assert_int_eq(fi_cq_read(others, &entry, 1), -FI_EAGAIN);
	ck_assert_int_lt(i, 1000000);
}

/*
 * Calls without flags have those of the endpoint: FI_INJECT is of what is sent,
 * and what a read or an atomic brings is in the caller's buffer all the same.
 */
START_TEST(injecting_endpoint)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	uint64_t there = 0x1122334455667788u, one = 1, was, got;
	uint64_t shorts, short_reads = 0;
	struct near_rma *rma;
	struct fid_cq *others;
	struct fid_ep *other;
	struct fid_mr *mr;
	fi_addr_t to;
	int i;

	ck_assert(!fi_cq_open(domain, &cq_attr, &others, NULL));
	ck_assert(!near_ep_open(domain, info, &other, NULL));
	ck_assert(!fi_close(&ep->fid));
	info->tx_attr->op_flags = FI_INJECT;
	ck_assert(!near_ep_open(domain, info, &ep, NULL));
	ep_enable(ep, cq);
	ep_enable(other, others);
	to = ep_insert(other);
	ck_assert(!fi_mr_reg(domain, &there, sizeof(there), FI_REMOTE_READ |
			     FI_REMOTE_WRITE, 0, 77, 0, &mr, NULL));
	rma = near_ep_of(ep)->port->rma;
	for (i = 0; i < 20; i++) {
		got = was = 0;
		shorts = rma->shorts;
		ck_assert(!fi_read(ep, &got, sizeof(got), NULL, to, 0, 77,
				   NULL));
		short_reads += rma->shorts - shorts;
		ep_completed(others);
		ck_assert_uint_eq(got, there);
		ck_assert(!fi_fetch_atomic(ep, &one, 1, NULL, &was, NULL, to,
					   0, 77, FI_UINT64, FI_SUM, NULL));
		ep_completed(others);
		ck_assert_uint_eq(was, got);
		ck_assert_uint_eq(there, got + 1);
	}
	ck_assert_int_eq(!short_reads, near_ep_of(ep)->domain->locked);
	ck_assert(!fi_close(&mr->fid));
	ck_assert(!fi_close(&other->fid));
	ck_assert(!fi_close(&others->fid));
}
END_TEST

int stat(const char *path, struct stat *st)
{
	if (no_proc && !strncmp(path, "/proc/", 6)) {
		errno = ENOENT;
		return -1;
	}
	return fstatat(AT_FDCWD, path, st, 0);
}

START_TEST(no_proc_mounted)
{
	struct fid_ep *other;

	no_proc = true;
	ck_assert_int_eq(near_ep_open(domain, info, &other, NULL),
			 -FI_EOPNOTSUPP);
	ep_said("/proc");
	no_proc = false;
}
END_TEST

static void ep_tests(Suite *suite, const char *name, void (*setup)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, setup, ep_teardown);
	tcase_add_loop_test(tcase, data_before_enable, 0, 3);
	tcase_add_test(tcase, enable_needs);
	tcase_add_test(tcase, enabled);
	tcase_add_test(tcase, injecting_endpoint);
	tcase_add_loop_test(tcase, message_before_enable, 0, 2);
	tcase_add_test(tcase, no_proc_mounted);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("near ep");

	ep_tests(suite, "without a lock", ep_setup);
	ep_tests(suite, "with a lock", ep_setup_locked);
	return unit_run(suite);
}
