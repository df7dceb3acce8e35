/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A fake core and a fake shm: fids that behave like those of the providers, one
 * step at a time, under the test's control. Both count calls and open objects,
 * and can fail the n-th call. Any use of a closed object, and any
 * call that must not reach shm, fails the test.
 */
#ifndef FAKE_H
#define FAKE_H

#include "unit.h"

#define FAKE_ERROR FI_EIO	/* error of the call that fail_at names */
#define FAKE_REFS 8
#define FAKE_PEERS 512
#define FAKE_CQ_SIZE 2048	/* entries of a CQ of the core, at least */
#define FAKE_MSG_MAX 256

/* One object of any class; its fid comes first. */
struct fake_obj {
	union {
		struct fid fid;
		struct fid_domain domain;
		struct fid_fabric fabric;
		struct fid_av av;
		struct fid_cq cq;
		struct fid_cntr cntr;
		struct fid_ep ep;
		struct fid_mr mr;
	};
	enum fi_duo_path path;
	int refs;			/* references of open objects */
	bool closed;
	bool enabled;			/* an endpoint of shm */
	enum fi_hmem_iface iface;	/* of a region */
	uint64_t device;		/* of a region */
	struct fake_obj *ref[FAKE_REFS];
	struct fid_peer_cq *peer_cq;
	struct fake_obj *tx_cq, *rx_cq;
	struct fake_table *table;	/* of an AV of the core */
	struct fake_map *map;		/* of an AV of shm */
	struct fake_obj *bound_av;	/* of an endpoint */
	struct fake_obj *tx_cntr;	/* of an endpoint, for sends */
	struct fid_peer_cntr *peer_cntr;	/* of a counter of shm */
	uint64_t good, bad;		/* of a counter of the core */
	int wait_fd;			/* of a CQ of the core; 0: none */
	struct fid_peer_srx *srx;	/* of an endpoint of shm, and of an srx
					 * bound to it */
	char name[DUO_TRANSPORT_NAME_MAX];
	LIST_ENTRY(fake_obj) map_link;	/* in the map's eps */
	LIST_ENTRY(fake_obj) link;
};

/* The addresses of an AV of the core; FAKE_FREE: none. */
#define FAKE_FREE UINT64_MAX
struct fake_table {
	uint64_t addr[FAKE_PEERS];	/* by fi_addr */
	bool used;			/* an endpoint is or was bound */
	uint64_t refused;		/* an address that it rejects */
};

/*
 * An AV of shm as libfabric's, 2.0 to 2.6: peers enter its map when they are
 * inserted and when they connect, at the next free place. If there is none, the
 * next place is overwritten. A removed peer's place is free, but the endpoint's
 * region keeps the peer's data.
 */
#define FAKE_SHM_PEERS 256
struct fake_shm_peer {
	char name[DUO_TRANSPORT_NAME_MAX];
	bool assigned;
	bool used;		/* is or was assigned */
	bool dangling;		/* its endpoint was in this process */
	fi_addr_t addr;		/* FI_ADDR_UNSPEC: not inserted */
};

struct fake_map {
	struct fake_shm_peer peer[FAKE_SHM_PEERS];	/* by place */
	int next;				/* place */
	int place[FAKE_SHM_PEERS];		/* by fi_addr; -1: free */
	LIST_HEAD(, fake_obj) eps;		/* bound, and enabled */
	LIST_ENTRY(fake_map) link;
};

struct fake_path {
	int calls;	/* number of calls that may fail */
	int fail_at;	/* the call that fails, from 1; 0: none */
	int live;	/* open objects */
};

/* A message that a peer has sent, or a receive that the core has. */
struct fake_msg {
	TAILQ_ENTRY(fake_msg) link;
	enum duo_rx_kind kind;
	fi_addr_t addr;
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;
	uint64_t flags;			/* FI_REMOTE_CQ_DATA */
	void *context;
	struct iovec iov[DUO_IOV_LIMIT];
	void *desc[DUO_IOV_LIMIT];
	size_t count;
	size_t len;
	size_t says;			/* msg_size passed to ofi_duo; 0: len */
	char payload[FAKE_MSG_MAX];
	char name[DUO_TRANSPORT_NAME_MAX];	/* the sender's, of shm */
	struct fake_obj *to;		/* the receiving endpoint; NULL, of the
					 * core: any */
	int place;			/* the sender's in its map */
	struct fi_peer_rx_entry *entry;
};
TAILQ_HEAD(fake_msg_list, fake_msg);

struct fake_event {
	STAILQ_ENTRY(fake_event) link;
	struct fi_cq_err_entry entry;	/* err 0: a completion */
	fi_addr_t src;
	const struct fake_obj *cq;	/* of the core; NULL: any */
};
STAILQ_HEAD(fake_event_list, fake_event);

/* The last send, and the number of sends. */
struct fake_tx {
	int count;
	enum duo_rx_kind kind;
	size_t len;
	fi_addr_t dest;
	uint64_t tag, data, flags;
	void *desc;
	void *context;
	char payload[FAKE_MSG_MAX];
	char name[DUO_TRANSPORT_NAME_MAX];	/* the receiver's, of shm */
};

/* The last RMA or atomic, and its arguments. */
struct fake_onesided {
	const char *call;
	const void *buf, *desc, *compare, *compare_desc, *result, *result_desc;
	size_t len, compare_count, result_count;
	fi_addr_t dest;
	uint64_t raddr, key, data, flags;
	int datatype, op;
	void *context;
};

struct fake_core {
	uint64_t own_addr;
	uint64_t refused;	/* address that AVs opened from now on reject */
	bool keeps;		/* removed addresses stay: they are in use */
	struct fake_msg_list posted, unexp, claimed;
	struct fake_event_list events, late;
	bool hold;		/* completions wait for fake_core_release() */
	bool util_srx;		/* a cancel of a directed untagged receive
				 * fails the test */
	bool ends_twice;	/* reports truncated receives twice, as efa */
	int eagain;		/* number of receives that return -FI_EAGAIN */
	void (*on_post)(void);	/* another thread's action during a post */
	int post_err;		/* error of the next receive */
	int close_err;		/* error of the next close of the endpoint */
	int posts, cancels, polls, peeks, cntr_reads;
	struct fake_obj *cntr;	/* the last one opened */
	bool no_wait;		/* its CQs have no wait objects */
	bool no_getwait;	/* its CQs do not return them */
	int wait_fd;		/* of the last CQ with one, an eventfd */
	struct fid *mr_bound;	/* object that a region was bound to last */
	const struct fid_mr *base_mr, *queried_mr;
	struct fake_onesided onesided;
	int onesided_count;
	struct fid *asked;	/* of the last fi_open_ops or fi_control */
	size_t min_multi_recv;	/* 0: it has no such option */
	bool shm_off;		/* FI_OPT_SHARED_MEMORY_PERMITTED false */
	bool cuda_option;	/* it has FI_OPT_CUDA_API_PERMITTED */
};

struct fake_shm {
	LIST_HEAD(, fake_map) maps;	/* of all open AVs */
	int inserted;		/* successful inserts */
	int removed;		/* successful removals */
	int overwritten;	/* places reassigned while in use */
	int reused;		/* places reassigned */
	bool full;		/* no more peers */
	struct fake_obj *ep;	/* the one enabled first */
	struct fake_msg_list incoming, queued, started;
	bool slow;		/* starts complete at the next poll */
	bool send_polls;	/* a send receives a message, as shm's may */
	int rx_err;		/* error of the next receive */
	bool tx_eagain;
	int polls;
};

/*
 * Device memory: any access faults. The core accesses it by its descriptor,
 * near by the copies of fake_device.c.
 */
struct fake_device {
	char *base, *shadow;
	size_t len;
	int open;		/* regions that can be copied */
	int copies;
	int under_way;		/* those of them not ended when polled */
	int pinned;		/* pieces of host memory */
	int polls;		/* number of polls until a copy has ended */
	int fail_at;		/* this call fails, counted from 1; 0: none */
	bool fails;		/* each call fails */
};

extern struct fake {
	struct fake_path path[FI_DUO_PATH_COUNT];
	struct fake_tx tx[FI_DUO_PATH_COUNT];
	struct fake_core core;
	struct fake_shm shm;
	struct duo_lock *lock;	/* held around every call into shm */
	struct fake_device device;
} fake;

void fake_init(void);
/* Frees all memory; open objects stay counted. */
void fake_fini(void);

/* The fabrics, which the provider gets from libfabric otherwise. */
struct fid_fabric *fake_fabric_open(enum fi_duo_path path);

/* Asserts that an info for a fake has no fids of ofi_duo. */
static inline void fake_no_fids(const struct fi_info *info)
{
	ck_assert(!info->fabric_attr || !info->fabric_attr->fabric);
	ck_assert(!info->domain_attr || !info->domain_attr->domain);
}

/* Below: shared by the parts of the fakes. */
struct fake_obj *fake_obj_of(struct fid *fid);
int fake_enter(enum fi_duo_path path);
int fake_open(struct fake_obj *parent, size_t fclass, struct fi_ops *ops,
	      struct fake_obj **obj);
/* Closes an object; fails the test if an open object refers to it. */
int fake_close(struct fid *fid);
void fake_ref(struct fake_obj *obj, struct fake_obj *to);
int fake_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* The name and the command that the fakes accept; others: -FI_ENOSYS. */
#define FAKE_OPS "fake ops"
#define FAKE_COMMAND 1000
extern int fake_ops;
int fake_ops_open(struct fid *fid, const char *name, uint64_t flags,
		  void **ops, void *context);
int fake_control(struct fid *fid, int command, void *arg);
struct fake_msg *fake_msg_new(enum duo_rx_kind kind, const char *text);
/* fake_device.c */
void fake_device_open(size_t len);
void fake_device_close(void);
char *fake_reach(enum fi_duo_path path, void *buf, void *desc);
/* Scatters the bytes that fit; returns their number. */
size_t fake_scatter(enum fi_duo_path path, const struct fake_msg *msg,
		    const struct iovec *iov, void *const *desc, size_t count);
extern struct fi_ops_domain fake_core_domain_ops, fake_shm_domain_ops;
extern struct fi_ops_mr fake_core_mr_ops;
extern struct fi_ops_msg fake_msg_ops;
extern struct fi_ops_tagged fake_tagged_ops;
extern struct fi_ops_rma fake_rma_ops;
extern struct fi_ops_atomic fake_atomic_ops;
int fake_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		      enum fi_op op, struct fi_atomic_attr *attr,
		      uint64_t flags);

/* fake_core.c */
int fake_core_trywait(struct fid_fabric *fabric, struct fid **fids, int count);
struct fake_table *fake_core_table(struct fid_av *av);
/* Assigns a fi_addr to an unknown sender, as a core does. */
fi_addr_t fake_core_learn(struct fid_av *av, uint64_t addr);

/* fake_core_msg.c */
ssize_t fake_core_recv(const struct fake_msg *recv, uint64_t flags);
ssize_t fake_core_cancel(fid_t fid, void *context);
/* Returns the first event of the CQ; NULL: none. */
struct fake_event *fake_core_next(const struct fake_obj *cq);
void fake_core_event(const struct fake_obj *cq,
		     const struct fi_cq_err_entry *entry, fi_addr_t src);
/* Delivers a message from src over the core, to any endpoint. */
void fake_core_arrive(enum duo_rx_kind kind, fi_addr_t src, uint64_t tag,
		      const char *text);
/* The same of one from fake_msg_new(), which is freed; addr: the sender. */
void fake_core_deliver(struct fake_msg *msg);
/* Adds an error entry, of a send for example, to this CQ, or to any. */
void fake_core_error(void *context, int err);
void fake_core_error_in(const struct fake_obj *cq, void *context, int err);
/* Reports the completions that were held back. */
void fake_core_release(void);
size_t fake_core_posted(void);
/* Receives posted to one of the core's endpoints; NULL: to any. */
size_t fake_core_posted_to(const struct fake_obj *ep);

/* fake_shm.c */
/* Connects a peer to an endpoint of shm; returns its place in the map. */
int fake_shm_connect(struct fake_obj *ep, const char *name);
/* Returns the name that shm would send to for a fi_addr. */
const char *fake_shm_name(struct fake_obj *ep, fi_addr_t addr);
/* Return shm's and the core's endpoint of one of ofi_duo. */
struct fake_obj *fake_shm_of(struct fid_ep *ep);
struct fake_obj *fake_core_of(struct fid_ep *ep);

/* fake_shm_msg.c */
void fake_shm_check(struct fake_obj *obj);
/* Receives messages to the endpoints with this CQ. */
void fake_shm_progress(struct fake_obj *cq);
/* Receives the first message only. */
void fake_shm_progress_one(struct fake_obj *ep);
void fake_shm_learn(struct fake_obj *av);
void fake_shm_close(struct fake_obj *ep);
extern struct fi_ops_srx_peer fake_shm_srx_ops;
/* Adds a message from the shm endpoint "name" to the first region. */
struct fake_msg *fake_shm_arrive(enum duo_rx_kind kind, const char *name,
				 uint64_t tag, const char *text);
/* Adds one to the region of another endpoint of shm. */
struct fake_msg *fake_shm_arrive_at(struct fake_obj *ep, enum duo_rx_kind kind,
				    const char *name, uint64_t tag,
				    const char *text);

#endif /* FAKE_H */
