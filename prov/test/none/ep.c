/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Endpoints of the provider near before and after fi_enable. Calls that are too
 * early or too late, or lack an object, fail with one log line and change
 * nothing.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "logged.h"
#include "side.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_cq *one_cq;
static struct fid_ep *one;
static bool no_proc;

static void ep_logged(const char *words)
{
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_ptr_nonnull(strstr(logged, words));
	logged_lines = 0;
}

static void ep_setup_as(enum fi_threading threading)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD,
	};

	info = side_info(threading);
	fabric = side_fabric();
	ck_assert(!fi_domain(fabric, info, &domain, NULL));
	ck_assert(!fi_av_open(domain, &av_attr, &av, NULL));
	ck_assert(!fi_cq_open(domain, &cq_attr, &one_cq, NULL));
	ck_assert(!fi_endpoint(domain, info, &one, NULL));
}

UNIT_SETUP(ep_setup, ep_setup_as(FI_THREAD_DOMAIN));
UNIT_SETUP(ep_setup_locked, ep_setup_as(FI_THREAD_SAFE));

static void ep_teardown(void)
{
	ck_assert(!fi_close(&one->fid));
	ck_assert(!fi_close(&one_cq->fid));
	ck_assert(!fi_close(&av->fid));
	ck_assert(!fi_close(&domain->fid));
	ck_assert(!fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void ep_enable(struct fid_ep *of, struct fid_cq *its)
{
	ck_assert(!fi_ep_bind(of, &av->fid, 0));
	ck_assert(!fi_ep_bind(of, &its->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(of));
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

	EP_EARLY(fi_send(one, buf, 8, NULL, to, NULL));
	EP_EARLY(fi_sendv(one, &iov, NULL, 1, to, NULL));
	EP_EARLY(fi_sendmsg(one, &msg, 0));
	EP_EARLY(fi_inject(one, buf, 8, to));
	EP_EARLY(fi_senddata(one, buf, 8, NULL, 1, to, NULL));
	EP_EARLY(fi_injectdata(one, buf, 8, 1, to));
	EP_EARLY(fi_recv(one, buf, 8, NULL, to, NULL));
	EP_EARLY(fi_recvv(one, &iov, NULL, 1, to, NULL));
	EP_EARLY(fi_recvmsg(one, &msg, 0));
	EP_EARLY(fi_recvmsg(one, &msg, FI_MULTI_RECV));
	EP_EARLY(fi_tsend(one, buf, 8, NULL, to, 1, NULL));
	EP_EARLY(fi_tsendv(one, &iov, NULL, 1, to, 1, NULL));
	EP_EARLY(fi_tsendmsg(one, &tagged, 0));
	EP_EARLY(fi_tinject(one, buf, 8, to, 1));
	EP_EARLY(fi_tsenddata(one, buf, 8, NULL, 1, to, 1, NULL));
	EP_EARLY(fi_tinjectdata(one, buf, 8, 1, to, 1));
	EP_EARLY(fi_trecv(one, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	EP_EARLY(fi_trecvv(one, &iov, NULL, 1, to, 1, 0, NULL));
	EP_EARLY(fi_trecvmsg(one, &tagged, 0));
	EP_EARLY(fi_trecvmsg(one, &tagged, FI_PEEK));
}

static void ep_early_onesided(fi_addr_t to)
{
	uint64_t add = 1, was, with = 0;
	struct iovec iov = { &add, 8 };
	struct fi_rma_iov rma_iov = { 0, 8, 1 };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to,
		.rma_iov = &rma_iov, .rma_iov_count = 1,
	};

	EP_EARLY(fi_read(one, &was, 8, NULL, to, 0, 1, NULL));
	EP_EARLY(fi_readv(one, &iov, NULL, 1, to, 0, 1, NULL));
	EP_EARLY(fi_readmsg(one, &msg, 0));
	EP_EARLY(fi_write(one, &add, 8, NULL, to, 0, 1, NULL));
	EP_EARLY(fi_writev(one, &iov, NULL, 1, to, 0, 1, NULL));
	EP_EARLY(fi_writemsg(one, &msg, 0));
	EP_EARLY(fi_inject_write(one, &add, 8, to, 0, 1));
	EP_EARLY(fi_writedata(one, &add, 8, NULL, 1, to, 0, 1, NULL));
	EP_EARLY(fi_inject_writedata(one, &add, 8, 1, to, 0, 1));
	EP_EARLY(fi_atomic(one, &add, 1, NULL, to, 0, 1, FI_UINT64, FI_SUM,
			   NULL));
	EP_EARLY(fi_inject_atomic(one, &add, 1, to, 0, 1, FI_UINT64, FI_SUM));
	EP_EARLY(fi_fetch_atomic(one, &add, 1, NULL, &was, NULL, to, 0, 1,
				 FI_UINT64, FI_SUM, NULL));
	EP_EARLY(fi_compare_atomic(one, &add, 1, NULL, &with, NULL, &was, NULL,
				   to, 0, 1, FI_UINT64, FI_CSWAP, NULL));
}

UNIT_CASE("without a lock", ep_setup, ep_teardown);
UNIT_CASE("with a lock", ep_setup_locked, ep_teardown);

/*
 * If _i is 0, no object is bound. If _i is 1, the AV is bound. If _i is 2, the
 * AV and the CQ are bound.
 */
UNIT_LOOP(data_calls_before_enable_fail, 0, 3)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t to = recv_insert(one);
	char buf[8] = "";

	if (_i > 0)
		ck_assert(!fi_ep_bind(one, &av->fid, 0));
	if (_i > 1)
		ck_assert(!fi_ep_bind(one, &one_cq->fid,
				      FI_TRANSMIT | FI_RECV));
	ep_early_messages(to);
	ep_early_onesided(to);
	ep_logged("before fi_enable");
	ck_assert_int_eq(fi_cancel(&one->fid, NULL), -FI_ENOENT);
	if (_i < 2)
		return;
	ck_assert(!fi_enable(one));
	ck_assert_int_eq(fi_cq_read(one_cq, &entry, 1), -FI_EAGAIN);
	ck_assert(!fi_tsend(one, buf, 8, NULL, to, 1, buf));
	ck_assert_int_eq(fi_cq_read(one_cq, &entry, 1), 1);
	ck_assert_ptr_eq(entry.op_context, buf);
	ck_assert_int_eq(logged_lines, 0);
}

UNIT_TEST(atomic_query_without_attributes_fails)
{
	ck_assert_int_eq(fi_query_atomic(domain, FI_UINT64, FI_SUM, NULL,
					 0), -FI_EINVAL);
}

UNIT_TEST(enable_without_object_fails)
{
	ck_assert_int_eq(fi_ep_bind(one, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_enable(one), -FI_ENOAV);
	ep_logged("no address vector");
	ck_assert(!fi_ep_bind(one, &av->fid, 0));
	ck_assert_int_eq(fi_ep_bind(one, &av->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_enable(one), -FI_ENOCQ);
	ep_logged("FI_TRANSMIT");
	ck_assert(!fi_ep_bind(one, &one_cq->fid, FI_TRANSMIT));
	ck_assert_int_eq(fi_ep_bind(one, &one_cq->fid, FI_TRANSMIT),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_enable(one), -FI_ENOCQ);
	ep_logged("FI_RECV");
	ck_assert(!fi_ep_bind(one, &one_cq->fid, FI_RECV));
	ck_assert(!fi_enable(one));
	ck_assert_int_eq(logged_lines, 0);
}

UNIT_TEST(binds_after_enable_fail)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	fi_addr_t to = recv_insert(one);

	ep_enable(one, one_cq);
	ck_assert_int_eq(fi_enable(one), -FI_EOPBADSTATE);
	ep_logged("another fi_enable");
	ck_assert_int_eq(fi_ep_bind(one, &av->fid, 0), -FI_EOPBADSTATE);
	ep_logged("address vector");
	ck_assert_int_eq(fi_ep_bind(one, &one_cq->fid, FI_RECV),
			 -FI_EOPBADSTATE);
	ep_logged("completion queue");
	/* Sandia OpenSHMEM binds a counter after fi_enable */
	ck_assert(!fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	ck_assert(!fi_ep_bind(one, &cntr->fid, FI_SEND | FI_RECV));
	ck_assert_int_eq(fi_shutdown(one, 0), -FI_ENOSYS);
	ck_assert(!fi_inject(one, "x", 1, to));
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	ck_assert_int_eq(fi_close(&cntr->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&one_cq->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&av->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	ck_assert(!fi_inject(one, "x", 1, to));
	ck_assert(!fi_close(&one->fid));
	ck_assert(!fi_close(&cntr->fid));
	ck_assert(!fi_endpoint(domain, info, &one, NULL));
}

/*
 * A message arrives before its receiver is enabled and before all objects are
 * bound. Reads of the bound objects must not consume the message. If _i is 1,
 * the CQ is bound only for receives at this time, otherwise only for sends.
 */
UNIT_LOOP(message_before_enable_is_kept, 0, 2)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_cq_tagged_entry entry;
	fi_addr_t to = recv_insert(one);
	struct fid_cntr *cntr;
	struct fid_ep *other;
	char in[8];

	ck_assert(!fi_endpoint(domain, info, &other, NULL));
	ep_enable(other, one_cq);
	ck_assert(!fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	ck_assert(!fi_ep_bind(one, &cntr->fid, FI_RECV));
	ck_assert(!fi_ep_bind(one, &one_cq->fid, _i ? FI_RECV : FI_TRANSMIT));
	ck_assert(!fi_tinject(other, "early", 6, to, 1));
	ck_assert_int_eq(fi_cq_read(one_cq, &entry, 1), -FI_EAGAIN);
	ck_assert_int_eq(fi_cq_sread(one_cq, &entry, 1, NULL, 1), -FI_EAGAIN);
	ck_assert_uint_eq(fi_cntr_read(cntr), 0);
	ck_assert(!fi_ep_bind(one, &one_cq->fid, _i ? FI_TRANSMIT : FI_RECV));
	ck_assert(!fi_ep_bind(one, &av->fid, 0));
	ck_assert(!fi_enable(one));
	ck_assert(!fi_trecv(one, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, in));
	ck_assert_int_eq(fi_cq_sread(one_cq, &entry, 1, NULL, 10000), 1);
	ck_assert_ptr_eq(entry.op_context, in);
	ck_assert_str_eq(in, "early");
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	ck_assert(!fi_close(&other->fid));
	ck_assert(!fi_close(&one->fid));
	ck_assert(!fi_close(&cntr->fid));
	ck_assert(!fi_endpoint(domain, info, &one, NULL));
}

static void ep_completed(struct fid_cq *others)
{
	struct fi_cq_tagged_entry entry;
	int i;

	for (i = 0; i < 1000000 && fi_cq_read(one_cq, &entry, 1) != 1; i++)
		ck_assert_int_eq(fi_cq_read(others, &entry, 1), -FI_EAGAIN);
	ck_assert_int_lt(i, 1000000);
}

/*
 * Calls without a flags argument use the endpoint's default flags. FI_INJECT as
 * default flag must apply to sent data only, not to the results of reads and
 * fetching atomics.
 */
UNIT_TEST(default_inject_flag_affects_sends_only)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	uint64_t there = 0x1122334455667788u, add = 1, was, got;
	struct fid_cq *others;
	struct fid_ep *other;
	struct fid_mr *mr;
	fi_addr_t to;
	int i;

	ck_assert(!fi_cq_open(domain, &cq_attr, &others, NULL));
	ck_assert(!fi_endpoint(domain, info, &other, NULL));
	ck_assert(!fi_close(&one->fid));
	info->tx_attr->op_flags = FI_INJECT;
	ck_assert(!fi_endpoint(domain, info, &one, NULL));
	ep_enable(one, one_cq);
	ep_enable(other, others);
	to = recv_insert(other);
	ck_assert(!fi_mr_reg(domain, &there, sizeof(there), FI_REMOTE_READ |
			     FI_REMOTE_WRITE, 0, 77, 0, &mr, NULL));
	for (i = 0; i < 20; i++) {
		got = was = 0;
		ck_assert(!fi_read(one, &got, sizeof(got), NULL, to, 0, 77,
				   NULL));
		ep_completed(others);
		ck_assert_uint_eq(got, there);
		ck_assert(!fi_fetch_atomic(one, &add, 1, NULL, &was, NULL, to,
					   0, 77, FI_UINT64, FI_SUM, NULL));
		ep_completed(others);
		ck_assert_uint_eq(was, got);
		ck_assert_uint_eq(there, got + 1);
	}
	ck_assert(!fi_close(&mr->fid));
	ck_assert(!fi_close(&other->fid));
	ck_assert(!fi_close(&others->fid));
}

int stat(const char *path, struct stat *st)
{
	if (no_proc && !strncmp(path, "/proc/", 6)) {
		errno = ENOENT;
		return -1;
	}
	return fstatat(AT_FDCWD, path, st, 0);
}

UNIT_TEST(no_proc_mounted)
{
	struct fid_ep *other;

	no_proc = true;
	ck_assert_int_eq(fi_endpoint(domain, info, &other, NULL),
			 -FI_EOPNOTSUPP);
	ep_logged("/proc");
	no_proc = false;
}

static void *open_and_close(void *unused)
{
	struct fid_ep *opened;
	int i;

	for (i = 0; i < 20; i++) {
		ck_assert(!fi_endpoint(domain, info, &opened, NULL));
		ck_assert(!fi_close(&opened->fid));
	}
	return unused;
}

/* Two threads open endpoints at once: there must be no data race (TSan). */
UNIT_TEST(threads_open_endpoints)
{
	pthread_t thread;

	if (!duo_domain_of(domain)->group.lock.on)
		return;
	thread = unit_thread(open_and_close, NULL);
	open_and_close(NULL);
	unit_thread_end(thread);
}
