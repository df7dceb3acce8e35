/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The libfabric provider: its objects. An endpoint owns a port of near.h. */
#ifndef NEAR_API_NEAR_FI_H
#define NEAR_API_NEAR_FI_H

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "fi/onesided.h"
#include "link/copy.h"
#include "match/block.h"
#include "match/match.h"
#include "near_caller.h"
#include "near_crowd.h"
#include "near_decoy.h"

#define NEAR_NAME "near"
#define NEAR_FI_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#define NEAR_WARN(subsys, ...) \
	FI_WARN(&near_prov, FI_LOG_##subsys, __VA_ARGS__)
#define NEAR_INFO(subsys, ...) \
	FI_INFO(&near_prov, FI_LOG_##subsys, __VA_ARGS__)

/* FI_MR_BASIC and FI_MR_SCALABLE, whose names newer libfabrics warn of. */
#define NEAR_MR_BASIC 1
#define NEAR_MR_SCALABLE 2

#define NEAR_INJECT 4096	/* bytes */
#define NEAR_TX_SIZE 65536	/* operations in flight, each way: a hint */
#define NEAR_MULTI_MIN 64	/* FI_OPT_MIN_MULTI_RECV where nobody set it */

struct near_params {
	int cma;		/* may memory of peers be read directly? */
	int ptracer;		/* 0: Yama's ptrace_scope stays in force */
	size_t memory;		/* bytes that an endpoint has for its rings */
	size_t yield;		/* empty reads of a CQ before a sched_yield */
	bool yield_always;	/* not only where there is a crowd */
};

extern struct fi_provider near_prov;
extern struct near_params near_params;

struct near_fabric {
	struct fid_fabric fid;
	struct near_decoy decoy;
	struct near_fabric *next;	/* open ones, see opened.c */
	struct near_domain *domains;
	uint32_t refs;		/* atomic: domains and event queues */
};

struct near_domain {
	struct fid_domain fid;
	struct near_decoy decoy;
	struct near_domain *next;	/* open ones of the fabric */
	struct near_fabric *fabric;
	int mr_mode;			/* as its info had it */
	uint32_t refs;		/* under the lock */
	struct near_table *table;	/* of memory regions */
	uint64_t key;		/* the next, if keys are ours to choose */
	bool prov_keys;
	bool virt_addrs;	/* peers name memory by our addresses */
	bool locked;
	pthread_mutex_t mutex;
};

/* FI_THREAD_DOMAIN: the application serialises, and there is no lock. */
static inline void near_lock(struct near_domain *domain)
{
	if (__builtin_expect(domain->locked, 0))
		pthread_mutex_lock(&domain->mutex);
}

static inline void near_unlock(struct near_domain *domain)
{
	if (__builtin_expect(domain->locked, 0))
		pthread_mutex_unlock(&domain->mutex);
}

struct near_av {
	struct fid_av fid;
	struct near_domain *domain;
	uint32_t refs;
	struct near_addr *addr;	/* by fi_addr; pid 0: removed */
	uint32_t *same_hash;	/* by fi_addr, index + 1 of the next */
	uint32_t *hash;
	uint32_t count;
	uint32_t room;
	uint32_t removed;	/* so many may be used again */
	struct near_link eps;
};

/* What somebody sleeps on. Under the lock. */
struct near_waiter {
	int fd;			/* -1: nobody does */
	int event_fd;		/* what other threads do */
	bool asleep;		/* somebody may be */
};

/* A completion that waits to be read. */
struct near_comp {
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;
};

struct near_cq_err {
	struct near_cq_err *next;
	struct fi_cq_err_entry entry;
};

/*
 * While fi_cq_read runs completions go straight into the caller's array, and
 * into the ring at all other times. Each format is the start of the next.
 */
struct near_cq {
	struct fid_cq fid;
	uint8_t *out;
	size_t out_left;
	fi_addr_t *out_src;
	size_t entry_size;
	struct near_comp *ring;
	uint64_t head;
	uint64_t tail;
	uint64_t mask;
	struct near_cq_err *err_first;
	struct near_cq_err **err_last;
	struct near_domain *domain;
	size_t empty;		/* reads without a completion in a row */
	struct near_crowd_turn crowd;	/* is who waits to yield? */
	struct near_link eps;	/* near_ep_link: to be polled */
	uint32_t refs;
	struct near_waiter waiter;
	bool signalled;
};

struct near_cntr {
	struct fid_cntr fid;
	struct near_domain *domain;
	uint64_t good;		/* atomic, as bad */
	uint64_t bad;
	struct near_link eps;	/* near_ep_link: to be polled */
	uint32_t refs;
	bool waits;
	bool slept_on;		/* by one thread, others nap */
	struct near_waiter waiter;	/* opened when somebody has to sleep */
};

/* Of one-sided operations, ours and those of others. */
enum near_cntr_event {
	NEAR_CNTR_READ,
	NEAR_CNTR_WRITE,
	NEAR_CNTR_REMOTE_READ,
	NEAR_CNTR_REMOTE_WRITE,
	NEAR_CNTR_EVENTS,
};

/* A CQ's or a counter's way to an endpoint; without that it is in no list. */
struct near_ep_link {
	struct near_link link;
	struct near_ep *ep;
};

struct near_ep {
	struct fid_ep fid;
	struct near_port *port;
	struct near_domain *domain;
	struct near_peer **peer;	/* by fi_addr */
	uint32_t peer_count;
	bool tx_all;		/* a completion for each: not selective */
	bool rx_all;
	bool directed;
	bool enabled;
	bool told_early;
	struct near_cq *tx_cq;
	struct near_cq *rx_cq;
	struct near_cntr *tx_cntr;	/* NULL: nobody counts */
	struct near_cntr *rx_cntr;
	struct near_cntr *rma_cntr[NEAR_CNTR_EVENTS];
	struct near_recv *filling;	/* near_multi_fill() */
	struct near_match match;
	struct near_pool recvs;
	struct near_pool unexps;
	struct near_pool sends;
	struct near_blocks blocks;
	struct near_link claimed;
	struct near_av *av;
	uint64_t tx_flags;	/* of calls without flags */
	uint64_t msg_order;	/* between messages and what is one-sided */
	uint64_t rx_flags;
	uint64_t rx_op_flags;	/* the same, and FI_RECV and FI_COMPLETION */
	size_t min_multi_recv;
	struct near_link av_link;
	struct near_ep_link tx_link;	/* of tx_cq->eps */
	struct near_ep_link rx_link;	/* of rx_cq->eps, if it is another */
	struct near_ep_link tx_cntr_link;
	struct near_ep_link rx_cntr_link;
	struct near_ep_link rma_cntr_link[NEAR_CNTR_EVENTS];
	struct fi_ops_rma rma_ops;	/* near_short_ops() */
	struct fi_ops_atomic atomic_ops;
};

/* What a large send is remembered by. */
struct near_send_op {
	struct near_pooled pooled;
	void *context;
	uint64_t flags;
	fi_addr_t to;		/* for an error entry */
	bool report;
};

#define near_ep_of(fid_ptr) near_container(fid_ptr, struct near_ep, fid)
#define near_cq_of(fid_ptr) near_container(fid_ptr, struct near_cq, fid)
#define near_av_of(fid_ptr) near_container(fid_ptr, struct near_av, fid)
#define near_domain_of(fid_ptr) \
	near_container(fid_ptr, struct near_domain, fid)
#define near_fabric_of(fid_ptr) \
	near_container(fid_ptr, struct near_fabric, fid)

/* info.c */
int near_getinfo(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info);

/* fabric.c, domain.c */
/* opened.c: fabrics and domains that hints may name; a lock of its own */
void near_opened_fabric(struct near_fabric *fabric);
void near_opened_domain(struct near_domain *domain);
void near_closed_fabric(struct near_fabric *fabric);
void near_closed_domain(struct near_domain *domain);
/* Whose the fids in hints are. */
enum near_opened {
	NEAR_OPENED_ANY,	/* there are none */
	NEAR_OPENED_OURS,	/* open ones of ours */
	NEAR_OPENED_OTHER,
};
enum near_opened near_opened_hinted(const struct fi_info *hints);

int near_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		     void *context);
int near_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context);
int near_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		 struct fid_eq **eq, void *context);

/* av.c */
int near_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context);
/* The first fi_addr of that address, or FI_ADDR_NOTAVAIL. */
fi_addr_t near_av_find(const struct near_av *av, const struct near_addr *addr);
/* NULL: there is none. */
const struct near_addr *near_av_at(const struct near_av *av, fi_addr_t addr);

/* cq.c */
int near_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 struct fid_cq **cq, void *context);
void near_cq_error(struct near_cq *cq, const struct fi_cq_err_entry *entry);

/* progress.c */
void near_cq_progress(struct near_cq *cq);
ssize_t near_cq_read(struct fid_cq *cq, void *buf, size_t count);
ssize_t near_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
			 fi_addr_t *src);

struct near_cntr_goal;

/* wait.c */
int near_waiter_open(struct near_waiter *waiter);
void near_waiter_close(struct near_waiter *waiter);
int near_waiter_add(struct near_waiter *waiter, int fd);
void near_waiter_wake(struct near_waiter *waiter);
/* Until it is woken, or so many ms are over: 0 or -FI_EINTR. */
int near_waiter_sleep(const struct near_waiter *waiter, uint64_t left);
/* Who sleeps because of it looks at it again. */
void near_ep_rouse(const struct near_ep *ep);
int near_cq_wait_open(struct near_cq *cq, enum fi_wait_obj wait_obj);
int near_cq_wait_ep(struct near_cq *cq, struct near_ep *ep);
int near_cq_signal(struct fid_cq *cq);
int near_cq_control(struct fid *fid, int command, void *arg);
ssize_t near_cq_sread(struct fid_cq *cq, void *buf, size_t count,
		      const void *cond, int timeout);
ssize_t near_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count,
			  fi_addr_t *src, const void *cond, int timeout);
int near_trywait(struct fid_fabric *fabric, struct fid **fids, int count);
void near_cntr_sleep(struct near_cntr *cntr, const struct near_cntr_goal *goal,
		     uint64_t left);

/* cntr.c */
int near_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		   struct fid_cntr **cntr, void *context);
/* Under the lock. */
void near_cntr_poll(struct near_cntr *cntr);

/* What somebody waits for: so many, or an error more than there were. */
struct near_cntr_goal {
	uint64_t good;
	uint64_t bad;
};

static inline bool near_cntr_reached(const struct near_cntr *cntr,
				     const struct near_cntr_goal *goal)
{
	return __atomic_load_n(&cntr->good, __ATOMIC_RELAXED) >= goal->good ||
	       __atomic_load_n(&cntr->bad, __ATOMIC_RELAXED) != goal->bad;
}

static inline void near_cntr_rouse(struct near_cntr *cntr)
{
	if (cntr && cntr->waiter.asleep)
		near_waiter_wake(&cntr->waiter);
}

/* Under the lock, which the reader of the counter need not have. */
static inline void near_count(struct near_cntr *cntr)
{
	if (near_likely(!cntr))
		return;
	__atomic_fetch_add(&cntr->good, 1, __ATOMIC_RELAXED);
	near_cntr_rouse(cntr);
}

static inline void near_count_err(struct near_cntr *cntr)
{
	if (!cntr)
		return;
	__atomic_fetch_add(&cntr->bad, 1, __ATOMIC_RELAXED);
	near_cntr_rouse(cntr);
}

/* ep.c, ep_peer.c */
int near_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);
int near_ep_resolve(struct near_ep *ep, fi_addr_t addr,
		    struct near_peer **peer);
/* -FI_EOPBADSTATE: it is not enabled yet. */
int near_ep_early(struct near_ep *ep);
int near_ep_poll(struct near_ep *ep);
/* Have those of the AV, and we, more need of our processors than there are? */
bool near_ep_crowded(const struct near_ep *ep);
/* An entry of the AV came or went. */
void near_ep_av_added(struct near_ep *ep, fi_addr_t addr, bool more);
void near_ep_av_removed(struct near_ep *ep, fi_addr_t addr);

/* short.c: fi/onesided.h's, and what is done in a shorter way */
void near_short_ops(struct near_ep *ep);

/* mr.c, onesided.c */
extern struct fi_ops_mr near_mr_ops;
extern const struct near_rma_sink near_ep_rma_sink;

/* msg.c, tagged.c, progress.c */
extern struct fi_ops_msg near_msg_ops;
extern struct fi_ops_tagged near_tagged_ops;
extern const struct near_sink near_ep_sink;

/* cancel.c, opt.c */
ssize_t near_ep_cancel(struct fid *ep, void *context);
int near_ep_getopt(struct fid *fid, int level, int name, void *value,
		   size_t *len);
int near_ep_setopt(struct fid *fid, int level, int name, const void *value,
		   size_t len);

/* none.c: what the provider does not do */
int near_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int near_no_control(struct fid *fid, int command, void *arg);
int near_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context);

#endif /* NEAR_API_NEAR_FI_H */
