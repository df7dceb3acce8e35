/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of the softefa tests. A node is a QP with its CQs and a registered
 * buffer. Each test is a process, which sets its environment first, and then
 * opens a new device.
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
#define RIG_WAIT_MS 60000

struct rig_wc {
	uint64_t wr_id;
	enum ibv_wc_opcode opcode;
	uint32_t vendor_err, byte_len, imm, src_qp, slid;
	unsigned int flags;
	enum ibv_wc_status status;
};

#define RIG_AH 8	/* largest number of address handles of a node */

struct rig_node {
	struct ibv_ah *ah[RIG_AH]; /* made by rig_to(); closed with the node */
	unsigned int ah_count;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	/* completion channel of the CQs that rig_opt selects; NULL: none */
	struct ibv_comp_channel *channel;
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
	/*
	 * channel: the receive CQ has a completion channel; send_channel: the
	 * send CQ has one
	 */
	bool ud, channel, send_channel;
	uint16_t qp_flags;
	uint32_t cqe; /* entries of the receive CQ; 0: RIG_DEPTH */
};

/* wires, as loop variable of tcase_add_loop_test() */
enum { RIG_SHM, RIG_UDP, RIG_WIRES };

void rig_wire(int wire);
void rig_env(const char *name, const char *value);
struct ibv_context *rig_context(int dev);
/* Returns all access flags that the device permits for a region. */
int rig_access(void);

void rig_open(struct rig_node *node, const struct rig_opt *opt);
void rig_close(struct rig_node *node);
struct rig_to rig_to(struct rig_node *from, const union ibv_gid *gid,
		     uint32_t qpn);
struct rig_to rig_to_node(struct rig_node *from, struct rig_node *to);

/* Post operations on len bytes of the node's buffer from offset off. */
int rig_recv(struct rig_node *node, uint64_t wr_id, uint32_t off,
	     uint32_t len);
int rig_send(struct rig_node *node, const struct rig_to *to, uint64_t wr_id,
	     uint32_t off, uint32_t len);
int rig_send_imm(struct rig_node *node, const struct rig_to *to,
		 uint64_t wr_id, uint32_t imm);
int rig_rdma(struct rig_node *node, const struct rig_to *to,
	     enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len,
	     uint32_t rkey, uint64_t raddr);

/* Polls once. Returns true if it has stored a completion in *wc. */
bool rig_poll(struct ibv_cq_ex *cq, struct rig_wc *wc);

/*
 * Polls cq until a completion, for up to ms. Meanwhile drives the QP of
 * "other", if not NULL. Returns false if there was no completion.
 */
bool rig_wait(struct ibv_cq_ex *cq, struct rig_wc *wc, struct rig_node *other,
	      uint32_t ms);
uint64_t rig_now_ms(void);
struct se_stats rig_stats(const struct rig_node *node);

/*
 * Other processes (a "crew"). A test forks its workers before it opens a
 * device. A worker runs when the test sends it the target's address.
 */
struct rig_target {
	union ibv_gid gid;
	uint32_t qpn;
	int in; /* descriptor from which the worker reads the next call */
};

struct rig_crew {
	pid_t pid;
	/* descriptors of the test, to read from and write to the worker */
	int in, out;
};

void rig_crew_start(struct rig_crew *crew, int count,
		    void (*work)(const struct rig_target *target, int out));
void rig_crew_call(struct rig_crew *crew, const struct rig_node *target);

/*
 * Returns the byte that the worker has written; -1: none within ms. Meanwhile
 * drives the QP of "node", if not NULL.
 */
int rig_crew_hear(struct rig_crew *crew, struct rig_node *node, uint32_t ms);
/* Kills workers that still run, and waits for the exit of all. */
void rig_crew_end(struct rig_crew *crew, int count);

/* Drives the node's QP. Reads no completions. */
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
Suite *suite_fork(void);
Suite *suite_dir(void);
Suite *suite_flows(void);
Suite *suite_drive(void);
Suite *suite_rules(void);
Suite *suite_work_rules(void);
Suite *suite_ud(void);

#endif
