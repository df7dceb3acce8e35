/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* RDMA read, write, write with immediate data: contents, order, rejections. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

#define HALF (RIG_BUF / 2)

static const struct {
	const char *name, *loss;
	uint32_t len;
} size_cases[] = {
	{ "empty", "0", 0 },
	{ "a packet", "0", 100 },
	{ "many packets", "0", 1000001 },
	{ "many packets, some lost", "0.05", 1000001 },
};

static void fill(uint8_t *buf, uint32_t len, uint8_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		buf[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static void rdma_once(struct rig_node *a, struct rig_node *b,
		      enum ibv_wr_opcode op, uint32_t len)
{
	struct rig_to to = rig_to_node(a, b);
	struct rig_wc wc;

	fill(a->buf, len, 1);
	fill(b->buf + HALF, len, 2);
	ck_assert_int_eq(rig_rdma(a, &to, op, 9, 0, len, b->mr->rkey,
				  (uintptr_t)b->buf + HALF), 0);
	if (op == IBV_WR_RDMA_WRITE_WITH_IMM) {
		ck_assert(rig_wait(b->rcq, &wc, a, RIG_WAIT_MS));
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		ck_assert_uint_eq(wc.imm, 9);
		ck_assert_uint_eq(wc.byte_len, len);
		/* the immediate data arrives after all data of the write */
		ck_assert_int_eq(memcmp(a->buf, b->buf + HALF, len), 0);
	}
	ck_assert(rig_wait(a->scq, &wc, b, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	/* as on the device, a read completes like a send */
	ck_assert_int_eq(wc.opcode, op == IBV_WR_RDMA_READ ?
			 IBV_WC_SEND : IBV_WC_RDMA_WRITE);
	ck_assert_int_eq(memcmp(a->buf, b->buf + HALF, len), 0);
}

START_TEST(rdma_moves_data)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM };
	int row = _i / RIG_WIRES;
	struct rig_node a, b;
	int i;

	rig_wire(_i % RIG_WIRES);
	rig_env("SOFTEFA_LOSS", size_cases[row].loss);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	for (i = 0; i < 3; i++)
		rdma_once(&a, &b, ops[i], size_cases[row].len);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* Reads succeed although the peer cannot answer all of them at a time. */
START_TEST(reads_beyond_limit_succeed)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	int i, count = RIG_DEPTH;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	fill(b.buf, (uint32_t)count * 4096, 5);
	for (i = 0; i < count; i++)
		ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_READ,
					  (uint64_t)i, (uint32_t)i * 4096,
					  4096, b.mr->rkey,
					  (uintptr_t)b.buf + i * 4096ul), 0);
	for (i = 0; i < count; i++) {
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	ck_assert_int_eq(memcmp(a.buf, b.buf, (size_t)count * 4096), 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

enum refusal { WRONG_KEY, OUTSIDE, BEFORE, NOT_READABLE, NOT_WRITABLE };

static const struct {
	const char *name;
	enum refusal refusal;
	enum ibv_wr_opcode op;
} refusal_cases[] = {
	{ "read, wrong key", WRONG_KEY, IBV_WR_RDMA_READ },
	{ "write, wrong key", WRONG_KEY, IBV_WR_RDMA_WRITE },
	{ "read beyond the end", OUTSIDE, IBV_WR_RDMA_READ },
	{ "write beyond the end", OUTSIDE, IBV_WR_RDMA_WRITE },
	{ "write before the start", BEFORE, IBV_WR_RDMA_WRITE },
	{ "read of write-only", NOT_READABLE, IBV_WR_RDMA_READ },
	{ "write to read-only", NOT_WRITABLE, IBV_WR_RDMA_WRITE },
};

START_TEST(invalid_rdma_is_rejected)
{
	struct rig_node a, b;
	struct ibv_mr *mr, *only_read, *only_write;
	struct rig_wc wc;
	struct rig_to to;
	uint64_t raddr;
	uint32_t key;
	size_t i;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	only_read = ibv_reg_mr(b.pd, b.buf, 8192, IBV_ACCESS_REMOTE_READ);
	only_write = ibv_reg_mr(b.pd, b.buf, 8192, IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE);
	for (i = 0; i < sizeof(refusal_cases) / sizeof(refusal_cases[0]); i++) {
		mr = refusal_cases[i].refusal == NOT_READABLE ? only_write :
		     refusal_cases[i].refusal == NOT_WRITABLE ? only_read :
								b.mr;
		raddr = (uintptr_t)mr->addr;
		key = mr->rkey + (refusal_cases[i].refusal == WRONG_KEY) * 77;
		if (refusal_cases[i].refusal == OUTSIDE)
			raddr += mr->length - 4095;
		if (refusal_cases[i].refusal == BEFORE)
			raddr--;
		ck_assert_int_eq(rig_rdma(&a, &to, refusal_cases[i].op, 1, 0,
					  4096, key, raddr), 0);
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		ck_assert_msg(wc.vendor_err == 7 &&
			      wc.status == IBV_WC_REM_ACCESS_ERR,
			      "%s: vendor_err %u", refusal_cases[i].name,
			      wc.vendor_err);
	}
	/* the key of a deregistered region is invalid */
	key = only_read->rkey;
	ibv_dereg_mr(only_read);
	ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_READ, 1, 0, 8, key,
				  (uintptr_t)b.buf), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, 7);
	rdma_once(&a, &b, IBV_WR_RDMA_READ, 8192);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

START_TEST(capabilities_as_configured)
{
	static const struct {
		const char *value;
		uint32_t caps;
	} rows[] = {
		{ "0", 0 },
		{ "read", SE_CAP_RDMA_READ },
		{ "write", SE_CAP_RDMA_READ | SE_CAP_RDMA_WRITE },
		{ "unsolicited", SE_CAP_RDMA_READ | SE_CAP_RDMA_WRITE |
				 SE_CAP_UNSOLICITED },
		{ "", SE_CAP_RDMA_READ | SE_CAP_RDMA_WRITE |
		      SE_CAP_UNSOLICITED },
	};
	struct efadv_device_attr attr;
	struct ibv_qp_ex *ex;
	struct rig_node a;

	rig_env("SOFTEFA_RDMA", rows[_i].value);
	rig_open(&a, NULL);
	ck_assert_int_eq(efadv_query_device(a.ctx, &attr, sizeof(attr)), 0);
	ck_assert_uint_eq(attr.device_caps &
			  (SE_CAP_RDMA_READ | SE_CAP_RDMA_WRITE |
			   SE_CAP_UNSOLICITED), rows[_i].caps);
	ck_assert(!attr.max_rdma_size == !rows[_i].caps);
	ex = ibv_qp_to_qp_ex(a.qp);
	ck_assert(!ex->wr_rdma_read == !(rows[_i].caps & SE_CAP_RDMA_READ));
	ck_assert(!ex->wr_rdma_write == !(rows[_i].caps & SE_CAP_RDMA_WRITE));
	if (rows[_i].caps & SE_CAP_RDMA_READ)
		rdma_once(&a, &a, IBV_WR_RDMA_READ, 64);
	if (rows[_i].caps & SE_CAP_RDMA_WRITE)
		rdma_once(&a, &a, IBV_WR_RDMA_WRITE, 64);
	rig_close(&a);
}
END_TEST

/* An unsolicited write with immediate data consumes no receive. */
START_TEST(unsolicited_write_consumes_no_receive)
{
	struct rig_opt opt = { .rnr_retry = 7, .qp_flags = SE_QP_UNSOLICITED };
	struct ibv_poll_cq_attr attr = { 0 };
	struct rig_node a, b;
	struct rig_to to;
	uint64_t end = rig_now_ms() + RIG_WAIT_MS;

	rig_wire(_i);
	rig_env("SOFTEFA_RDMA", "unsolicited");
	rig_open(&a, &opt);
	rig_open(&b, &opt);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 8,
				  b.mr->rkey, (uintptr_t)b.buf), 0);
	while (ibv_start_poll(b.rcq, &attr))
		ck_assert_uint_lt(rig_now_ms(), end);
	ck_assert(((struct se_cq *)b.rcq)->dv.wc_is_unsolicited(
		efadv_cq_from_ibv_cq_ex(b.rcq)));
	ck_assert_uint_eq(ibv_wc_read_imm_data(b.rcq), 3);
	ibv_end_poll(b.rcq);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/*
 * A read fails if its region is deregistered. The target must not crash, and
 * the read must not return old data.
 */
START_TEST(region_closed_during_read_fails)
{
	struct rig_node a, b;
	struct ibv_mr *mr;
	struct rig_wc wc;
	struct rig_to to;
	uint8_t *mem;
	int i;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	mem = mmap(NULL, HALF, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	for (i = 0; i < 4; i++) {
		mr = ibv_reg_mr(b.pd, mem, HALF, IBV_ACCESS_REMOTE_READ);
		ck_assert_ptr_nonnull(mr);
		ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_READ, 1, 0,
					  HALF, mr->rkey, (uintptr_t)mem), 0);
		/* b has the request, and a has only a part of the response */
		while (rig_stats(&a).rx_pkts < 10) {
			rig_progress(&b);
			rig_progress(&a);
		}
		ck_assert(!rig_poll(a.scq, &wc));
		ck_assert_int_eq(ibv_dereg_mr(mr), 0);
		ck_assert_int_eq(mprotect(mem, HALF, PROT_NONE), 0);
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		ck_assert_uint_eq(wc.vendor_err, SE_REMOTE_BAD_ADDRESS);
		ck_assert_int_eq(mprotect(mem, HALF, PROT_READ | PROT_WRITE),
				 0);
		/* the flow still works, and b has free response slots */
		rdma_once(&a, &b, IBV_WR_RDMA_READ, 100000);
		rig_close(&a);
		rig_open(&a, NULL);
		to = rig_to_node(&a, &b);
	}
	munmap(mem, HALF);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/*
 * An operation fails if its local region is deregistered. The device must not
 * access the memory, which the program may then have freed.
 */
START_TEST(local_region_closed_during_rdma_fails)
{
	enum ibv_wr_opcode op = _i / RIG_WIRES ? IBV_WR_RDMA_READ :
						 IBV_WR_RDMA_WRITE;
	struct rig_node a, b, part;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(_i % RIG_WIRES);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	rig_to_node(&b, &a);
	part = a;
	part.buf = mmap(NULL, HALF, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(part.buf, MAP_FAILED);
	part.mr = ibv_reg_mr(a.pd, part.buf, HALF, rig_access());
	ck_assert_ptr_nonnull(part.mr);
	ck_assert_int_eq(rig_rdma(&part, &to, op, 7, 0, HALF, b.mr->rkey,
				  (uintptr_t)b.buf), 0);
	while (rig_stats(&a).rx_pkts + rig_stats(&b).rx_pkts < 10) {
		rig_progress(&b);
		rig_progress(&a);
	}
	ck_assert(!rig_poll(a.scq, &wc));
	ck_assert_int_eq(ibv_dereg_mr(part.mr), 0);
	ck_assert_int_eq(munmap(part.buf, HALF), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.wr_id, 7);
	ck_assert_uint_eq(wc.vendor_err, SE_INVALID_LKEY);
	/* the flow still works */
	rdma_once(&a, &b, op, 100000);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/*
 * If an initiator does not poll for a long time, the target drops the flow and
 * the response. The read then fails, and the initiator's next read succeeds.
 */
START_TEST(read_of_silent_initiator_fails)
{
	struct rig_node a, b;
	struct se_qp *target;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(RIG_UDP);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	rig_to_node(&b, &a);
	target = (struct se_qp *)b.qp;
	ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_READ, 7, 0, HALF,
				  b.mr->rkey, (uintptr_t)b.buf), 0);
	while (!target->active)
		rig_progress(&b);
	se_cfg.timeout_ms = 50;
	while (target->active)
		rig_progress(&b);
	se_cfg.timeout_ms = 10 * RIG_WAIT_MS;
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.wr_id, 7);
	ck_assert_uint_eq(wc.vendor_err, SE_REMOTE_ABORT);
	rdma_once(&a, &b, IBV_WR_RDMA_READ, 100000);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

struct server {
	struct rig_node *node;
	_Atomic bool stop;
};

static void *server_run(void *arg)
{
	struct server *server = arg;

	while (!server->stop)
		rig_progress(server->node);
	return NULL;
}

/* ibv_dereg_mr() waits for the copy in another thread. */
START_TEST(dereg_waits_for_copy)
{
	struct server server = { 0 };
	struct rig_node a, b;
	pthread_t thread;
	struct ibv_mr *mr;
	struct rig_wc wc;
	struct rig_to to;
	uint8_t *mem;
	int i, good = 0;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	server.node = &b;
	ck_assert_int_eq(pthread_create(&thread, NULL, server_run, &server),
			 0);
	for (i = 0; i < 200; i++) {
		mem = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert_ptr_ne(mem, MAP_FAILED);
		mr = ibv_reg_mr(b.pd, mem, 1 << 16, rig_access());
		ck_assert_int_eq(rig_rdma(&a, &to, i % 2 ? IBV_WR_RDMA_READ :
					  IBV_WR_RDMA_WRITE, 1, 0, 1 << 16,
					  mr->rkey, (uintptr_t)mem), 0);
		usleep((useconds_t)(i % 50));
		ck_assert_int_eq(ibv_dereg_mr(mr), 0);
		munmap(mem, 1 << 16);
		ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
		ck_assert(wc.vendor_err == SE_REMOTE_BAD_ADDRESS ||
			  wc.vendor_err == SE_OK);
		good += wc.vendor_err == SE_OK;
	}
	ck_assert_int_lt(good, 200);
	server.stop = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

Suite *suite_rdma(void)
{
	int rows = sizeof(size_cases) / sizeof(size_cases[0]);
	Suite *suite = suite_create("rdma");
	TCase *tc = tcase_create("rdma");

	tcase_add_loop_test(tc, rdma_moves_data, 0, rows * RIG_WIRES);
	tcase_add_loop_test(tc, reads_beyond_limit_succeed, 0, RIG_WIRES);
	tcase_add_loop_test(tc, invalid_rdma_is_rejected, 0, RIG_WIRES);
	tcase_add_loop_test(tc, capabilities_as_configured, 0, 5);
	tcase_add_loop_test(tc, unsolicited_write_consumes_no_receive, 0,
			    RIG_WIRES);
	tcase_add_loop_test(tc, region_closed_during_read_fails, 0, RIG_WIRES);
	tcase_add_loop_test(tc, local_region_closed_during_rdma_fails, 0,
			    2 * RIG_WIRES);
	tcase_add_loop_test(tc, dereg_waits_for_copy, 0, RIG_WIRES);
	tcase_add_test(tc, read_of_silent_initiator_fails);
	suite_add_tcase(suite, tc);
	return suite;
}
