/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A software EFA device: the objects behind the verbs that libfabric's EFA
 * provider calls. Each exported symbol is one of libibverbs or libefa.
 *
 * Lock order, outermost first:
 *   cq->poll_lock   held from start_poll to end_poll; guards the CQ's QPs
 *   se_qps_lock     guards the list of all QPs; a thread with another lock
 *                   only tries it, and never waits
 *   qp->sq_lock     held from wr_start to wr_complete; guards the session: the
 *                   work requests prepared between these two calls
 *   qp->lock        guards the transport: flows, operations, wire
 *   dev->lock       guards address handles, counts, queue pair numbers
 *   cq->push_lock   serializes writers of the completion ring
 * qp->rq_lock serializes posts of receives; its holder takes no other lock.
 */
#ifndef SOFTEFA_H
#define SOFTEFA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <infiniband/efadv.h>

#include "compat.h"
#include "softefa_config.h"
#include "softefa_io.h"

/* macros of verbs.h, which this library defines as functions */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SE_EXPORT __attribute__((visibility("default")))
#define SE_AH_UNKNOWN 0xffff
#define SE_GRH_LEN 40
#define SE_COMP_VECTORS 4
#define SE_MAX_CQE (1 << 16)
/* limit of the peers' RDMA reads that a QP answers at the same time */
#define SE_RESPONSES 64

struct se_mr_entry {
	_Atomic uint32_t key; /* 0: the entry is free */
	/* pending copies; ibv_dereg_mr() waits for them */
	_Atomic uint32_t users;
	uint32_t access;
	const struct ibv_pd *pd;
	uint64_t addr, len;
};

struct se_ah_entry {
	union ibv_gid gid;
	uint32_t refs;
};

struct se_dev {
	struct ibv_device ibv; /* first member: the handle of the caller */
	int index;
	union ibv_gid gid;
	char pci[16];
	pthread_mutex_t lock;
	uint32_t qp_count, cq_count, pd_count, mr_count, ah_count, qp_serial;
	/* element [n] is nonzero: n is the QP number & qpn_mask of a QP */
	uint8_t *qpn_taken;
	uint32_t qpn_mask;
	struct se_mr_entry *mr; /* max_mr + 1 entries; entry 0 is not used */
	uint32_t mr_next;
	struct se_ah_entry *ah; /* max_ah entries */
	_Atomic uint32_t ah_gen; /* changes when a GID in "ah" changes */
};

struct se_pd {
	struct ibv_pd ibv;
};

struct se_ah {
	struct ibv_ah ibv;
	union ibv_gid gid;
	uint16_t ahn;
};

struct se_cqe {
	uint64_t wr_id;
	struct se_qp *qp; /* NULL: the QP was destroyed */
	union ibv_gid sgid;
	uint32_t byte_len, qp_num, src_qp;
	__be32 imm;
	uint16_t ahn;
	uint8_t status; /* enum se_status of the operation */
	uint8_t opcode; /* enum ibv_wc_opcode without the bit for receives */
	uint8_t wc_flags;
	bool recv, unsolicited;
};

struct se_cq {
	union {
		/* first member: the handle of the caller */
		struct ibv_cq_ex ex;
		struct ibv_cq ibv;
	};
	struct se_dv_cq dv;
	struct se_dev *dev;
	pthread_mutex_t poll_lock, push_lock;
	struct se_cqe *ring;
	uint32_t mask;		 /* number of entries - 1 */
	_Atomic uint64_t head, tail;
	struct se_cqe cur; /* the current completion of a poll */
	struct se_qp **qps;
	uint32_t qp_count, idle_polls, overruns;
	struct se_notify *notify; /* NULL: no completion channel */
};

struct se_recv {
	uint64_t wr_id;
	int sge_count;
	struct ibv_sge sge[SE_MAX_RQ_SGE];
};

struct se_stats {
	uint64_t tx_pkts, tx_bytes, rx_pkts, rx_bytes;
	uint64_t rnr, retrans, dup, lost, errors, forged, late, rdma;
};

struct se_qp {
	struct ibv_qp_ex ex; /* first member: the handle of the caller */
	struct se_dv_qp dv;
	struct se_dev *dev;
	struct se_cq *scq, *rcq;
	bool ud, unsolicited, sig_all, closing, lossy, reported;
	uint32_t qkey, rnr_retry, sq_psn, epoch, serial;

	pthread_mutex_t sq_lock;
	struct se_op *session, **session_tail, *session_cur, *session_free;
	uint32_t session_count;
	int session_err;

	pthread_mutex_t rq_lock;
	struct se_recv *rq;
	uint32_t rq_mask, rq_cap, rq_sge;
	/* next receive to consume; written by the transport */
	_Atomic uint32_t rq_head;
	/* next receive to post; written by the application */
	_Atomic uint32_t rq_tail;
	/*
	 * numbers of receives, sends and unsolicited writes whose completions
	 * the application has not polled
	 */
	_Atomic uint32_t rq_used, sq_used, unsolicited_used;

	pthread_mutex_t lock;
	struct se_op *ops; /* sq_cap operations, then SE_RESPONSES responses */
	uint32_t sq_cap, sq_sge, inline_max, op_count;
	struct se_op *free_ops, *free_resp;
	struct se_flow *flows[SE_FLOW_HASH];
	uint32_t flow_count, flow_serial, stream_floor, reap_bucket;
	/*
	 * time before which se_flow_reap_all() checks no flow, unless "often"
	 * is set, ns
	 */
	uint64_t reap_again;
	struct se_flow *ack_list, *active;
	_Atomic bool work; /* "active" or "ack_list" is not empty */
	const struct se_wire *wire;
	void *wire_qp;
	uint32_t op_serial;
	struct se_stats stats;
	struct se_qp *next; /* next in the list of qp_list.c */
};

static inline struct se_dev *se_dev_of(struct ibv_context *ctx)
{
	return (struct se_dev *)ctx->device;
}

static inline uint64_t se_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static inline bool se_gid_equal(const union ibv_gid *a, const union ibv_gid *b)
{
	return a->global.interface_id == b->global.interface_id &&
	       a->global.subnet_prefix == b->global.subnet_prefix;
}

static inline uint32_t se_roundup_pow2(uint32_t value)
{
	uint32_t result = 1;

	while (result < value)
		result *= 2;
	return result;
}

/* sysfs.c: the directory of run-time files, and the device tree in it. */
void se_dir_remove(void);
int se_sysfs_make(struct se_dev *devs, int count);
void se_gid_hex(const union ibv_gid *gid, char hex[33]);
int se_lock_file(int fd);
bool se_file_orphaned(int fd);
bool se_ring_name(const char *name);

/*
 * fork.c: descriptors that a forked child closes. se_fork_open() and
 * se_fork_socket() return -1 on failure, with errno. A fork in another thread
 * waits for the end of these functions.
 */
void se_fork_init(void);
int se_fork_open(const char *path, int flags);
int se_fork_socket(void);
void se_fork_close(int fd);
bool se_forked(void);

/* mr.c */
bool se_mr_local_ok(struct se_qp *qp, const struct ibv_sge *sge, bool write);

/*
 * Pins and returns the region with this key. NULL: no such region, or it does
 * not permit the access. ibv_dereg_mr() of the region waits for se_mr_unpin().
 */
struct se_mr_entry *se_mr_pin(struct se_qp *qp, uint32_t key, uint64_t addr,
			      uint64_t len, uint32_t access);
void se_mr_unpin(struct se_mr_entry *entry);

/*
 * Pins the regions of the elements sge[count], and stores the regions in
 * pins[count]. If an element is empty, its pin is NULL. If there is no region
 * with an element's key, or the region does not permit the access, returns
 * false, with no region pinned.
 */
bool se_mr_pin_list(struct se_qp *qp, const struct ibv_sge *sge, int count,
		    uint32_t access, struct se_mr_entry **pins);
void se_mr_unpin_list(struct se_mr_entry **pins, int count);

/* ah.c */
uint16_t se_ah_find(struct se_dev *dev, const union ibv_gid *gid);

/* cq.c */
int se_cq_attach(struct se_cq *cq, struct se_qp *qp);
void se_cq_detach(struct se_cq *cq, struct se_qp *qp);
void se_cq_push(struct se_cq *cq, const struct se_cqe *cqe);
bool se_cq_empty(struct se_cq *cq);
struct ibv_cq_ex *se_cq_create_ex(struct ibv_context *ctx,
				  struct ibv_cq_init_attr_ex *attr);
int se_cq_poll(struct ibv_cq *cq_fid, int count, struct ibv_wc *wc);

/* cq_read.c */
void se_cq_read_init(struct se_cq *cq, uint64_t flags, uint64_t dv_flags);
enum ibv_wc_status se_wc_status(uint8_t status);
void se_cqe_to_wc(const struct se_cqe *cqe, struct ibv_wc *wc);

/* notify.c */
int se_notify_open(struct se_cq *cq);
void se_notify_close(struct se_cq *cq);
int se_notify_attach(struct se_cq *cq, struct se_qp *qp);
void se_notify_detach(struct se_cq *cq, struct se_qp *qp);
void se_notify_fire(struct se_notify *notify);
void se_notify_work(struct se_qp *qp);
int se_notify_arm(struct ibv_cq *cq_fid, int solicited_only);

/* qp.c */
bool se_qpn_take(struct se_dev *dev, uint32_t qpn);
void se_qpn_release(struct se_dev *dev, uint32_t qpn);
struct ibv_qp *se_qp_create_ex(struct ibv_context *ctx,
			       struct ibv_qp_init_attr_ex *attr);

/* wr.c */
/* Sets the ibv_wr_*() functions of these operations; others stay NULL. */
void se_wr_init(struct se_qp *qp, uint64_t ops, uint64_t wr_flags);
int se_post_send(struct ibv_qp *qp_fid, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad);
int se_post_recv(struct ibv_qp *qp_fid, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);

/* qp_list.c: all QPs of the process */
void se_qps_add(struct se_qp *qp);
/* Removes a QP. Afterwards only polls of the QP's own CQs drive it. */
void se_qps_remove(struct se_qp *qp);
uint32_t se_qps_total(void);
void se_qps_drive(void);
void se_qps_exit(void);
/* Makes progress on the QP, unless another thread has qp->lock. */
void se_qp_drive(struct se_qp *qp);

/* stats.c */
void se_stats_print(struct se_qp *qp); /* prints once per QP */

#endif
