/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * duobench: measures one provider. Forks its ranks, pins each to a CPU, runs
 * the tests of -t, and prints "METRIC VALUE" lines. contrib/bench runs duobench
 * for each provider, and compares the values. A rank that fails prints the
 * reason and ends the other ranks.
 *
 * Exit status: 0 measured, 1 failed, 77 not possible with this provider.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_duo.h>

#include "util.h"

#define BN_MAX_RANKS 256
#define BN_NAME_MAX 512
/* number of file descriptors that bn_check_path() checks */
#define BN_MAX_FDS 4096
#define BN_BATCH 8	/* limit of completions that one fi_cq_read() returns */
#define BN_WINDOW 64		/* number of messages in flight */
#define BN_CTXS 1024 /* number of contexts, used one after the other */
#define BN_CQ_SIZE 8192

/* Tags. BN_TAG_FREE and above: messages and receives that are not measured */
enum { BN_TAG = 1, BN_TAG_ACK = 2, BN_TAG_FREE = 1000 };

struct bn_opts {
	const char *prov;	/* -p: provider name, e.g. "tcp;ofi_duo" */
	const char *src;	/* -s: source address */
	const char *path;	/* -P: all traffic must take this path */
	char *tests;		/* -t: tests, separated by commas */
	int nranks;		/* -n: number of ranks */
	/*
	 * -m: number of processes, which run the ranks as threads; 0: each rank
	 * is a process
	 */
	int processes;
	int budget_ms;		/* -b: time per size, ms */
	size_t max_size;	/* -S: largest message */
	int timeout;		/* -a: limit of the run, s */
	bool few;		/* -q: use fewer sizes */
	bool remote;		/* -R: hide local peers from ofi_duo */
	bool both_comm;		/* -c: request local and remote communication */
	bool tagged_only;	/* -T: request only FI_TAGGED */
	bool inject;		/* -i: inject messages that are small enough */
	bool fifo; /* -F: real-time priority, if there are enough CPUs */
	bool thread_safe;	/* -H: FI_THREAD_SAFE */
	/* capabilities that tests need besides those for messages */
	uint64_t caps;
	bool sleeps;	/* a test sleeps on the file descriptor of the CQ */
};

/* Memory that all ranks share. */
struct bn_shared {
	atomic_uint arrived;
	atomic_uint generation;
	atomic_int failed;
	atomic_long value;
	/* sum and maximum of the ranks' start-up times, ns */
	atomic_ulong start_sum, start_max;
	_Alignas(256) atomic_uint hop;	/* alone in its cache lines */
	_Alignas(256) struct {
		size_t len;
		uint8_t name[BN_NAME_MAX];
	} peer[BN_MAX_RANKS];
	struct {
		uint64_t addr, key;
	} rma[BN_MAX_RANKS];
};

struct bn {
	struct bn_opts opts;
	struct bn_shared *sh;
	int rank;
	bool yield; /* yield the CPU: there are more ranks than CPUs */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_ops_duo *ops;	/* NULL: the provider is not ofi_duo */
	fi_addr_t peer[BN_MAX_RANKS];
	bool any;		/* receives accept any source */
	bool msg;		/* use FI_MSG instead of FI_TAGGED */
	uint8_t *sbuf, *rbuf;	/* buffers of opts.max_size bytes */
	struct fid_mr *smr, *rmr;
	/* region of rbuf for other ranks; NULL: no RMA */
	struct fid_mr *region;
	void *sdesc, *rdesc;
	uint64_t start_ns; /* time from fi_getinfo to the last fi_av_insert */
	uint64_t tx, rx, rma;	/* numbers of completions that were read */
	void *release[2];	/* contexts of released multi-receive buffers */
	unsigned int released;
	struct fi_context2 ctx[BN_CTXS];
	unsigned int next_ctx;
};

/* Options, objects and counts of this rank, which may be a thread. */
extern _Thread_local struct bn bn;

/* main.c */
void bn_sync(void);		/* barrier; makes progress on the endpoint */
void bn_sync_still(void);	/* barrier without progress */
void bn_sync_sleeping(void); /* barrier without progress; ranks sleep in it */
long bn_agree(long value);	/* barrier; returns the value of rank 0 */

#define BN_OK(call) \
	do { \
		long bn_ret_ = (call); \
		if (bn_ret_) \
			BN_DIE("%s: %s", #call, fi_strerror((int) -bn_ret_)); \
	} while (0)

/* fabric.c; ranks that are threads share the domain of their process */
void bn_open_domain(void);
void bn_open(void);
void bn_close(void);
void bn_close_domain(void);
int bn_open_ep(struct fid_ep **ep, struct fid_cq **cq, struct fid_av **av);
void bn_check_path(void);

/* xfer.c */
void bn_cq_fail(ssize_t ret) __attribute__((noreturn));
void bn_poll(void);
void bn_send(fi_addr_t to, size_t len, uint64_t tag);
void bn_recv(fi_addr_t src, size_t len, uint64_t tag);
int bn_try_recv(fi_addr_t src, size_t len, uint64_t tag, void *context);
void bn_wait(uint64_t tx, uint64_t rx);
fi_addr_t bn_from(int rank);	/* source of a receive; see bn.any */

/* rma.c: rank 0 accesses rank 1's region, after bn_region_exchange() */
typedef void (*bn_op)(size_t size, void *context);
void bn_region_exchange(void);
void bn_put(size_t size, void *context);
void bn_get(size_t size, void *context);
void bn_fadd(size_t size, void *context);
void bn_rma_wait(void);		/* waits for all operations of this rank */

/* the tests */
size_t bn_sizes(const size_t **sizes);
void bn_lat(void);
void bn_lat_any(void);
void bn_lat_msg(void);
void bn_wild(void);
uint64_t bn_pingpong(size_t size, uint64_t *ns, long count);
long bn_pingpong_count(size_t size);
void bn_bw(void);
void bn_rate(void);
void bn_rate_any(void);
void bn_rate_pairs(void);
void bn_multi(void);
void bn_wake(void);
void bn_rma_put(void);
void bn_rma_get(void);
void bn_rma_still(void);
void bn_rma_bw(void);
void bn_rma_fadd(void);
void bn_fan_in(void);
void bn_alltoall(void);
void bn_idle(void);
void bn_insn(void);
void bn_insn_any(void);
void bn_insn_large(void);
void bn_insn_put(void);
void bn_insn_get(void);
void bn_insn_fadd(void);
void bn_mem(void);
void bn_start(void);
void bn_curve_posted(void);
void bn_curve_unexpected(void);
void bn_curve_av(void);
void bn_curve_cq(void);

/*
 * mem.c: writes an address that no peer has into `name`. False: the format of
 * the provider's addresses is unknown.
 */
bool bn_fake_addr(uint8_t *name, size_t len, unsigned int index);

#endif /* BENCH_H */
