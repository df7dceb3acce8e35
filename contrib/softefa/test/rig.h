/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What the tests of the software EFA device stand on: nodes, each one QP with
 * its CQs and a registered buffer.  Check runs every test in a process of its
 * own, so each sets the environment first and gets a device made for it.
 */
#ifndef SOFTEFA_RIG_H
#define SOFTEFA_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <check.h>
#include <infiniband/efadv.h>
#include <infiniband/verbs.h>

#include "softefa_io.h"

#define RIG_BUF (4 << 20)
#define RIG_QKEY 0x11223344u
#define RIG_DEPTH 256
#define RIG_WAIT_MS 20000 /* less than SOFTEFA_TIMEOUT_MS */

struct rig_wc {
	uint64_t wr_id;
	enum ibv_wc_opcode opcode;
	uint32_t vendor_err, byte_len, imm, src_qp, slid;
	unsigned int flags;
	enum ibv_wc_status status;
};

#define RIG_AH 8	/* address handles of a node, at most */

struct rig_node {
	struct ibv_ah *ah[RIG_AH];	/* of rig_to(), closed with it */
	unsigned int ah_count;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of the CQs asked for, or NULL */
	struct ibv_cq_ex *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t *buf;
};

struct rig_to {
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
};

struct rig_opt {
	int dev;
	uint8_t rnr_retry;
	bool ud, channel, send_channel; /* of the receive CQ, of the send CQ */
	uint16_t qp_flags;
	uint32_t cqe; /* of the receive CQ; 0: RIG_DEPTH */
};

/* Wires, as the loop variable of tcase_add_loop_test(). */
enum { RIG_SHM, RIG_UDP, RIG_WIRES };

void rig_wire(int wire);
void rig_env(const char *name, const char *value);
struct ibv_context *rig_context(int dev);
/* What a region may be registered for on this device, as configured. */
int rig_access(void);

void rig_open(struct rig_node *node, const struct rig_opt *opt);
void rig_close(struct rig_node *node);
struct rig_to rig_to(struct rig_node *from, const union ibv_gid *gid,
		     uint32_t qpn);
struct rig_to rig_to_node(struct rig_node *from, struct rig_node *to);

/* Posting; len bytes of the buffer from off on. */
int rig_recv(struct rig_node *node, uint64_t wr_id, uint32_t off,
	     uint32_t len);
int rig_send(struct rig_node *node, const struct rig_to *to, uint64_t wr_id,
	     uint32_t off, uint32_t len);
int rig_send_imm(struct rig_node *node, const struct rig_to *to,
		 uint64_t wr_id, uint32_t imm);
int rig_rdma(struct rig_node *node, const struct rig_to *to,
	     enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len,
	     uint32_t rkey, uint64_t raddr);

/* One poll: true and a completion, or false. */
bool rig_poll(struct ibv_cq_ex *cq, struct rig_wc *wc);

/* Polls cq, and what other nodes have to do, until there is a completion. */
bool rig_wait(struct ibv_cq_ex *cq, struct rig_wc *wc, struct rig_node *other,
	      uint32_t ms);
uint64_t rig_now_ms(void);
struct se_stats rig_stats(const struct rig_node *node);

/*
 * Other processes.  A crew is forked before the test itself opens a device, and
 * each of them does its work when it is called, with the target's address.
 */
struct rig_target {
	union ibv_gid gid;
	uint32_t qpn;
	int in; /* the worker's, for the next call */
};

struct rig_crew {
	pid_t pid;
	int in, out; /* of this side */
};

void rig_crew_start(struct rig_crew *crew, int count,
		    void (*work)(const struct rig_target *target, int out));
void rig_crew_call(struct rig_crew *crew, const struct rig_node *target);

/* The byte it has written, -1: none within ms; node works meanwhile. */
int rig_crew_hear(struct rig_crew *crew, struct rig_node *node, uint32_t ms);
void rig_crew_end(struct rig_crew *crew, int count); /* kills what still runs */

/* Gives a QP a chance to work without taking its completions. */
void rig_progress(struct rig_node *node);

Suite *suite_srd(void);
Suite *suite_faults(void);
Suite *suite_limits(void);
Suite *suite_rdma(void);
Suite *suite_peers(void);
Suite *suite_notify(void);
Suite *suite_ring(void);
Suite *suite_strict(void);
Suite *suite_forged(void);
Suite *suite_dir(void);
Suite *suite_flows(void);
Suite *suite_drive(void);
Suite *suite_rules(void);
Suite *suite_work_rules(void);
Suite *suite_ud(void);

#endif
