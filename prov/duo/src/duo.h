/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The objects of the provider. Each wraps one object of the core provider
 * and, where shared memory is on, one of the shm provider; the pair is an
 * array indexed by path (enum fi_duo_path). docs/overview.md has ownership,
 * lifetimes and locks.
 */
#ifndef DUO_H
#define DUO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "av.h"
#include "duo_compat.h"
#include "duo_lock.h"
#include "match.h"
#include "registry.h"
#include "ring.h"

#define DUO_NAME "ofi_duo"
#define DUO_SHM_DIR "/dev/shm"	/* where shm_open(3) makes regions */
#define DUO_SHM_REGION (16 << 20)	/* bytes, of one endpoint; at most */
#define DUO_SHM_ENLARGE \
	"Enlarge " DUO_SHM_DIR " (docker --shm-size, Kubernetes emptyDir " \
	"with medium Memory, AWS Batch sharedMemorySize)"
#define DUO_INJECT_SIZE 4096	/* shm's, bytes */
#define DUO_SHM_QUEUE 1024	/* its operations in flight; each way */
#define DUO_CORE_BATCH 16	/* completions of one read of the core */
#define DUO_SHM_BATCH 4096	/* new messages of one poll of shm, at most */

extern struct fi_provider duo_prov;

#define DUO_WARN(sys, ...) FI_WARN(&duo_prov, FI_LOG_##sys, __VA_ARGS__)
#define DUO_INFO(sys, ...) FI_INFO(&duo_prov, FI_LOG_##sys, __VA_ARGS__)

/* Runtime parameters, FI_OFI_DUO_<NAME>; set once in fi_prov_ini. */
struct duo_params {
	int use_shm;		/* 0: the core carries everything */
	int stats;		/* 1: print statistics at endpoint close */
	char *cores;		/* offered without being named */
	char *registry_dir;	/* where local peers are found */
	size_t lazy_polls;	/* idle polls before a wildcard goes to the
				 * core */
	size_t core_interval;	/* polls of a busy shm per poll of an idle
				 * core */
	size_t wait_interval;	/* of FI_WAIT_FD, microseconds */
};
extern struct duo_params duo_params;

struct duo_fabric {
	struct fid_fabric fabric_fid;
	struct fid_fabric *path_fabric[FI_DUO_PATH_COUNT];
	struct fi_info *shm_info;	/* NULL: shm is off */
	char *core_name;
	atomic_int refs;
};

struct duo_domain {
	struct fid_domain domain_fid;
	struct duo_fabric *fabric;
	struct fid_domain *path_domain[FI_DUO_PATH_COUNT];
	size_t sockaddr_len;		/* of its addresses; 0: others */
	LIST_HEAD(, duo_av) avs;
	bool av_probed;		/* av_single is known */
	bool av_single;		/* the core's AVs take one endpoint each */
	uint32_t held;	/* messages of shm whose source is looked up, and
			 * multi-receive buffers that are ready */
	uint32_t lazy;	/* receives that wait in lazy lists */
	bool crowded;	/* an endpoint may be short of receive entries */
	struct duo_lock lock;
	atomic_int refs;
};

struct duo_mr {
	struct fid_mr mr_fid;	/* key and descriptor are the core's */
	struct duo_domain *domain;
	struct fid_mr *core;
};

/* What a poll touches comes first: four cache lines. */
struct duo_cq {
	struct fid_cq cq_fid;
	struct duo_domain *domain;
	struct fid_cq *path_cq[FI_DUO_PATH_COUNT];
	struct duo_ring ring;
	struct duo_sink sink;		/* of the read in progress */
	struct duo_err_list errs;
	enum fi_cq_format format;
	uint32_t shm_idle;	/* polls since shm's last event */
	uint32_t shm_events;	/* of the current poll */
	uint32_t core_skip;	/* polls since the core's last */
	uint32_t shm_skip;	/* likewise shm */
	atomic_uint core_credit;	/* polls the core is sure to get */
	LIST_HEAD(, duo_ep) rx_eps;	/* that receive into this CQ */
	struct fid_peer_cq peer_cq;	/* shm writes here */
	LIST_HEAD(, duo_ep) tx_eps;	/* that only send */
	uint64_t core_polls;
	uint32_t look_in;	/* polls with lazy receives, until the clock
				 * is looked at again */
	uint32_t look_every;
	uint64_t look_ms;	/* when it was, monotonic */
	uint32_t slow;		/* looks in a row that came late */
	atomic_bool signaled;
	fi_addr_t core_src[DUO_CORE_BATCH]; /* where nobody asks for it */
	int wait_fd;		/* a timer; -1: no FI_WAIT_FD */
	int err_path;		/* whose strerror the last error needs */
	uint8_t err_data[DUO_ERR_DATA_MAX];
	atomic_int refs;
};

/*
 * What each message touches comes first, in the order of use: three cache
 * lines for a send, six for a receive.
 */
struct duo_ep {
	struct fid_ep ep_fid;
	struct duo_domain *domain;
	struct fid_ep *path_ep[FI_DUO_PATH_COUNT]; /* shm from fi_enable on */
	duo_route_word *route;		/* core_av's */
	fi_addr_t route_size;		/* 0 until enabled */
	struct duo_cq *tx_cq;

	size_t inject_size;		/* bytes */
	size_t max_msg_size;		/* bytes */
	struct duo_cq *rx_cq;
	struct duo_av *av;
	struct duo_core_av *core_av;
	uint64_t caps;
	uint64_t rx_op_flags[DUO_KIND_COUNT];

	struct fi_duo_stats stats;	/* by path first */

	/* receive side, under the domain's lock */
	size_t rx_iov_limit;
	bool rx_ready;		/* enabled, and with a CQ to receive into */
	bool rx_selective;
	bool enabled;
	bool closing;		/* no message is matched any more */
	bool shm_permitted;	/* FI_OPT_SHARED_MEMORY_PERMITTED */
	bool polled_match;	/* the core needs a receive when it is polled,
				 * not before */
	bool util_srx;		/* the core matches with util_srx.c, see
				 * recv.c and lazy.c for its defects */
	uint32_t multi_open;		/* buffers that take messages */
	uint32_t lazy_count;
	uint32_t due_count;		/* of these */
	uint32_t lazy_limit;		/* idle polls; adapts, see lazy.c */
	uint32_t lazy_age;		/* polls that the oldest has waited */
	struct duo_rx_list lazy;	/* posted, not on the core yet */
	struct duo_rx_list held;
	struct duo_rx_pool pool;
	struct duo_match match[DUO_KIND_COUNT];
	uint64_t confirmed[DUO_SHM_PEERS / 64];	/* sent over shm before */
	struct fid_peer_srx peer_srx;

	struct duo_rx_list claimed;	/* by FI_PEEK | FI_CLAIM */
	struct duo_rx_list behind;	/* not on the core either: a multi-
					 * receive buffer is before them */
	struct duo_rx_list multi;	/* buffers that are not released */
	struct duo_rx_list ready;	/* see multi.c */
	struct duo_rx_list spent;	/* see lazy.c */
	uint32_t spent_count;
	size_t min_multi_recv;		/* FI_OPT_MIN_MULTI_RECV, bytes */
	uint64_t tx_op_flags;
	uint64_t tx_bind_flags;
	struct fid_ep *shm_srx;
	struct duo_publication publication;
	LIST_ENTRY(duo_ep) rx_link;	/* in rx_cq->rx_eps */
	LIST_ENTRY(duo_ep) tx_link;	/* in tx_cq->tx_eps */
	LIST_ENTRY(duo_ep) av_link;	/* in av->shm_eps */
	struct fi_info *info;		/* the core's */
};

static inline struct duo_ep *duo_ep_of(struct fid_ep *ep_fid)
{
	return duo_container_of(ep_fid, struct duo_ep, ep_fid);
}

/* Would a full poll of shm find room for what arrives unexpected? */
static inline bool duo_ep_room(const struct duo_ep *ep)
{
	return duo_rx_pool_room(&ep->pool) >= DUO_SHM_BATCH;
}

static inline struct duo_cq *duo_cq_of(struct fid_cq *cq_fid)
{
	return duo_container_of(cq_fid, struct duo_cq, cq_fid);
}

static inline struct duo_domain *duo_domain_of(struct fid_domain *domain_fid)
{
	return duo_container_of(domain_fid, struct duo_domain, domain_fid);
}

static inline struct duo_fabric *duo_fabric_of(struct fid_fabric *fabric_fid)
{
	return duo_container_of(fabric_fid, struct duo_fabric, fabric_fid);
}

/* info.c: pure translation */
char *duo_core_name(const char *prov_name);
struct fi_info *duo_info_to_core(const struct fi_info *info);
void duo_info_ask_order(struct fi_info *core);
int duo_info_restrict(struct fi_info *info);
int duo_hints_supported(const struct fi_info *hints);
int duo_info_satisfies(struct fi_info *info, const struct fi_info *hints);

/* getinfo.c */
int duo_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
struct fi_info *duo_shm_getinfo(void);

/* one opener per fid class */
int duo_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);
int duo_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info,
		    struct fid_domain **domain_fid, void *context);
int duo_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context);
int duo_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
		struct fid_cq **cq_fid, void *context);
int duo_ep_open(struct fid_domain *domain_fid, struct fi_info *info,
		struct fid_ep **ep_fid, void *context);

/* mr.c */
extern struct fi_ops_mr duo_mr_ops;

/* cq.c and progress.c, under the domain's lock */
static inline void duo_cq_push(struct duo_cq *cq,
			       const struct fi_cq_tagged_entry *entry,
			       fi_addr_t src)
{
	if (cq->sink.room)
		duo_sink_put(&cq->sink, cq->format, entry, src);
	else if (duo_ring_push(&cq->ring, entry, src))
		cq->errs.overrun = true;
}

void duo_cq_push_err(struct duo_cq *cq, const struct fi_cq_err_entry *entry,
		     int path);
/* An error of our own about a receive. */
void duo_cq_push_rx_err(struct duo_cq *cq, const struct duo_rx *rx, int err);
void duo_cq_progress(struct duo_cq *cq);
/*
 * The same for a caller who reads, with nothing waiting: what is found goes
 * straight into his array. What fi_cq_readfrom(3) returns.
 */
ssize_t duo_cq_read_fresh(struct duo_cq *cq, void *buf, size_t count,
			  fi_addr_t *src);
/* Reads one batch of the core's CQ; 0: there was none. */
int duo_cq_poll_core(struct duo_cq *cq);
extern struct fi_ops_cq_owner duo_cq_owner_ops;

/* wait.c */
int duo_cq_wait_open(struct duo_cq *cq, enum fi_wait_obj wait_obj);
void duo_cq_wait_close(struct duo_cq *cq);
int duo_cq_control(struct fid *fid, int command, void *arg);
int duo_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int count);
/* Under the domain's lock. */
void duo_cq_before_sleep(struct duo_cq *cq);

/* The core has or may soon have something for this CQ. Any thread. */
#define DUO_CORE_CREDIT 1024	/* polls */
static inline void duo_cq_core_active(struct duo_cq *cq)
{
	atomic_store_explicit(&cq->core_credit, DUO_CORE_CREDIT,
			      memory_order_relaxed);
}

/* opt.c */
void duo_ep_init_opts(struct duo_ep *ep, const struct fi_info *info);
int duo_ep_getopt(fid_t fid, int level, int optname, void *optval,
		  size_t *optlen);
int duo_ep_setopt(fid_t fid, int level, int optname, const void *optval,
		  size_t optlen);
int duo_ep_get_flags(struct duo_ep *ep, uint64_t *flags);
int duo_ep_set_flags(struct duo_ep *ep, uint64_t *flags);

/* ep_shm.c */
/* Takes the domain's lock. */
void duo_ep_open_shm(struct duo_ep *ep);
void duo_ep_close_shm(struct duo_ep *ep);
void duo_ep_drain_shm(struct duo_ep *ep);

/* srx.c: shm's side of matching */
extern struct fi_ops_srx_owner duo_srx_owner_ops;
void duo_srx_init(struct duo_ep *ep);
/* Matches the messages that were held until their source was looked up. */
void duo_srx_resolve(struct duo_ep *ep);
/* Gives sources to unexpected messages after shm has learnt a new peer. */
void duo_srx_identify(struct duo_ep *ep);
/* Completions of receives, from shm. */
void duo_srx_done(struct duo_rx *rx, uint64_t flags, size_t len, void *buf,
		  uint64_t data, fi_addr_t shm_src);
void duo_srx_failed(struct duo_rx *rx, const struct fi_cq_err_entry *entry);

/* lazy.c: receives on the core */
/* 0, -FI_EAGAIN, or what the core says of a receive it does not take. */
int duo_lazy_post(struct duo_rx *rx);
void duo_lazy_add(struct duo_rx *rx, enum duo_rx_lazy lazy);
void duo_lazy_drop(struct duo_rx *rx);
/* In its place among the others. */
void duo_lazy_insert(struct duo_rx *rx);
/* rx comes where another one is, if that is in the list; which stays. */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx);
/* It has to wait until a multi-receive buffer is used up. */
void duo_lazy_block(struct duo_rx *rx);
void duo_lazy_unblock(struct duo_ep *ep);
/* Receives from addr that only shm could satisfy become lazy. */
void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr);
int duo_lazy_flush(struct duo_ep *ep);
/* Those that are due, with all before them. */
int duo_lazy_flush_due(struct duo_ep *ep);
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want);
/* Takes an unposted receive back from the core; false: it is matched. */
bool duo_lazy_recall(struct duo_rx *rx);
/* The core has ended rx; *entry gets the application's context. */
void duo_lazy_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			fi_addr_t src);
void duo_lazy_core_failed(struct duo_rx *rx,
			  const struct fi_cq_err_entry *entry);

/* The core has delivered: wildcards shall not wait longer than they must. */
static inline void duo_lazy_hurry(struct duo_ep *ep)
{
	ep->lazy_limit = duo_params.lazy_polls;
}

static inline void duo_ep_count_core(struct duo_ep *ep, size_t len)
{
	ep->stats.path[FI_DUO_CORE].rx_msgs++;
	ep->stats.path[FI_DUO_CORE].rx_bytes += len;
}

/* recv.c, peek.c; recv.h has the rest */
extern struct fi_ops_msg duo_msg_ops;
extern struct fi_ops_tagged duo_tagged_ops;
ssize_t duo_ep_cancel(fid_t fid, void *context);

/* send.c */
ssize_t duo_send(struct fid_ep *ep_fid, const void *buf, size_t len,
		 void *desc, fi_addr_t dest, void *context);
ssize_t duo_sendv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		  size_t count, fi_addr_t dest, void *context);
ssize_t duo_sendmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
		    uint64_t flags);
ssize_t duo_inject(struct fid_ep *ep_fid, const void *buf, size_t len,
		   fi_addr_t dest);
ssize_t duo_senddata(struct fid_ep *ep_fid, const void *buf, size_t len,
		     void *desc, uint64_t data, fi_addr_t dest, void *context);
ssize_t duo_injectdata(struct fid_ep *ep_fid, const void *buf, size_t len,
		       uint64_t data, fi_addr_t dest);
ssize_t duo_tsend(struct fid_ep *ep_fid, const void *buf, size_t len,
		  void *desc, fi_addr_t dest, uint64_t tag, void *context);
ssize_t duo_tsendv(struct fid_ep *ep_fid, const struct iovec *iov,
		   void **desc, size_t count, fi_addr_t dest, uint64_t tag,
		   void *context);
ssize_t duo_tsendmsg(struct fid_ep *ep_fid, const struct fi_msg_tagged *msg,
		     uint64_t flags);
ssize_t duo_tinject(struct fid_ep *ep_fid, const void *buf, size_t len,
		    fi_addr_t dest, uint64_t tag);
ssize_t duo_tsenddata(struct fid_ep *ep_fid, const void *buf, size_t len,
		      void *desc, uint64_t data, fi_addr_t dest, uint64_t tag,
		      void *context);
ssize_t duo_tinjectdata(struct fid_ep *ep_fid, const void *buf, size_t len,
			uint64_t data, fi_addr_t dest, uint64_t tag);

/* stats.c */
extern struct fi_ops_duo duo_ops;
void duo_stats_print(const struct duo_ep *ep);

/* enosys.c */
int duo_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int duo_no_control(struct fid *fid, int command, void *arg);
int duo_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);
extern struct fi_ops_rma duo_no_rma_ops;
extern struct fi_ops_atomic duo_no_atomic_ops;
int duo_no_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		       struct fid_ep **sep, void *context);
int duo_no_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **pollset);
int duo_no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr,
		   struct fid_stx **stx, void *context);
int duo_no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr,
		   struct fid_ep **rx_ep, void *context);

#endif /* DUO_H */
