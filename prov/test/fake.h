/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A fake core and a fake shm. A test decides when a message arrives or an
 * operation completes. Both fakes count calls and open objects, and can fail
 * the n-th call. The test fails if ofi_duo uses a closed object, calls shm
 * without ofi_duo's lock, or calls a function of shm that it must not use.
 */
#ifndef FAKE_H
#define FAKE_H

#include "unit.h"

#define FAKE_ERROR FI_EIO	/* error of the call with number fail_at */
#define FAKE_REFS 8
#define FAKE_PEERS 512
#define FAKE_CQ_SIZE 2048 /* smallest number of entries of a CQ of the core */
#define FAKE_MSG_MAX 256

/* Object of a fake, of any class */
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
	int refs; /* number of open objects that refer to this one */
	bool closed;
	bool enabled;			/* endpoint of shm: enabled */
	enum fi_hmem_iface iface;	/* memory region: its interface */
	uint64_t device;		/* memory region: its device */
	/*
	 * memory region: number of later registrations that returned the same
	 * region
	 */
	int again;
	struct fake_obj *ref[FAKE_REFS];
	struct fid_peer_cq *peer_cq;
	struct fake_obj *tx_cq, *rx_cq;
	struct fake_table *table;	/* AV of the core: its addresses */
	struct fake_map *map;		/* AV of shm: its peers */
	struct fake_obj *bound_av;	/* endpoint: its AV */
	struct fake_obj *tx_cntr;	/* endpoint: counter of its sends */
	/* counter of shm: the counter of ofi_duo that it increments */
	struct fid_peer_cntr *peer_cntr;
	/* counter of the core: its success and error values */
	uint64_t good, bad;
	int wait_fd;			/* CQ of the core: eventfd; 0: none */
	/*
	 * endpoint or shared receive context of shm: ofi_duo's shared receive
	 * context
	 */
	struct fid_peer_srx *srx;
	char name[DUO_TRANSPORT_NAME_MAX];
	LIST_ENTRY(fake_obj) map_link;	/* endpoint of shm: fake_map.eps */
	LIST_ENTRY(fake_obj) link;
};

/* Addresses of an AV of the core; FAKE_FREE marks an unused entry */
#define FAKE_FREE UINT64_MAX
struct fake_table {
	uint64_t addr[FAKE_PEERS];	/* indexed by fi_addr */
	uint64_t rejected;		/* address that inserts reject */
};

/*
 * The peers of an AV of shm, as in libfabric 2.0 to 2.6. An insert or a
 * connection assigns the next free index to a peer. If none is free, the peer
 * overwrites another one.
 */
#define FAKE_SHM_PEERS 256
struct fake_shm_peer {
	char name[DUO_TRANSPORT_NAME_MAX];
	bool assigned;
	bool dangling; /* its endpoint was in this process, and is closed */
	fi_addr_t addr;		/* FI_ADDR_UNSPEC: not inserted */
};

struct fake_map {
	struct fake_shm_peer peer[FAKE_SHM_PEERS];
	/* index in peer[] at which the search for a free one begins */
	int next;
	/* indexed by fi_addr: index in peer[]; -1: fi_addr not in use */
	int place[FAKE_SHM_PEERS];
	LIST_HEAD(, fake_obj) eps; /* enabled endpoints with this AV */
	LIST_ENTRY(fake_map) link;
};

struct fake_path {
	/* number of calls until now that fail_at could have made fail */
	int calls;
	int fail_at;	/* number of the call that fails, from 1; 0: none */
	int live;	/* number of open objects */
};

/* Message from a peer, or receive posted to the core */
struct fake_msg {
	TAILQ_ENTRY(fake_msg) link;
	enum duo_rx_kind kind;
	fi_addr_t addr;
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;
	uint64_t flags;			/* FI_REMOTE_CQ_DATA or 0 */
	void *context;
	struct iovec iov[DUO_IOV_LIMIT];
	void *desc[DUO_IOV_LIMIT];
	size_t count;
	size_t len;
	size_t reported_len;		/* msg_size that shm reports; 0: len */
	char payload[FAKE_MSG_MAX];
	char name[DUO_TRANSPORT_NAME_MAX]; /* over shm: the sender's name */
	/* receiving endpoint; NULL: any (only over the core) */
	struct fake_obj *to;
	int place; /* over shm: the sender's index in the map */
	struct fi_peer_rx_entry *entry;
};
TAILQ_HEAD(fake_msg_list, fake_msg);

struct fake_event {
	STAILQ_ENTRY(fake_event) link;
	struct fi_cq_err_entry entry;	/* err is 0: a completion */
	fi_addr_t src;
	const struct fake_obj *cq;	/* CQ of the core; NULL: any */
};
STAILQ_HEAD(fake_event_list, fake_event);

/* The last send; count: sends until now */
struct fake_tx {
	int count;
	enum duo_rx_kind kind;
	size_t len;
	fi_addr_t dest;
	uint64_t tag, data, flags;
	void *desc;
	void *context;
	char payload[FAKE_MSG_MAX];
	char name[DUO_TRANSPORT_NAME_MAX]; /* over shm: the receiver's name */
};

/* Arguments of the last RMA or atomic operation */
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
	bool keeps; /* removed addresses stay in the AV, as if in use */
	struct fake_msg_list posted, unexp, claimed;
	struct fake_event_list events, late;
	bool hold; /* delay completions until fake_core_release() */
	/*
	 * fail the test if ofi_duo cancels a directed untagged receive, which
	 * efa's shared receive context (util_srx) does not support
	 */
	bool util_srx;
	bool ends_twice; /* report a truncated receive twice, as efa does */
	int eagain; /* number of receives from now on that return -FI_EAGAIN */
	/* called during a post to the core, as if by another thread */
	void (*on_post)(void);
	int post_err;		/* error of the next receive */
	int send_err;		/* error with which sends end; 0: none */
	int close_err;		/* error of the next fi_close of an endpoint */
	int posts, cancels, polls, peeks, cntr_reads;
	struct fake_obj *cntr;	/* counter opened last */
	bool no_wait;		/* CQs have no wait objects */
	bool no_getwait;	/* CQs do not return their wait objects */
	bool wait_file;	/* wait objects are files, which epoll rejects */
	int wait_fd; /* eventfd of the last CQ with a wait object */
	struct fid *mr_bound;	/* object to which a region was bound last */
	/* open region that further registrations return again; NULL: none */
	struct fake_obj *cached;
	const struct fid_mr *base_mr, *queried_mr;
	struct fake_onesided onesided;
	int onesided_count;
	struct fid *asked;	/* fid of the last fi_open_ops or fi_control */
	size_t min_multi_recv;	/* FI_OPT_MIN_MULTI_RECV; 0: not supported */
	bool shm_off; /* FI_OPT_SHARED_MEMORY_PERMITTED was set to false */
	bool cuda_option;	/* FI_OPT_CUDA_API_PERMITTED is supported */
};

struct fake_shm {
	LIST_HEAD(, fake_map) maps;	/* maps of all open AVs */
	int inserted;		/* number of successful inserts */
	int overwritten; /* number of peers in maps that were overwritten */
	bool full;		/* inserts fail: the map is full */
	struct fake_obj *ep;	/* endpoint enabled first */
	struct fake_msg_list incoming, queued, started;
	bool slow; /* a receive that shm starts completes at the next poll */
	bool send_polls; /* a send polls, and may receive a message */
	int rx_err;		/* error of the next receive */
	bool tx_eagain;
	int polls;
};

/*
 * Device memory: the CPU cannot access it. The fake core finds this memory by
 * its descriptor; near copies it by the functions of fake_device.c.
 */
struct fake_device {
	char *base, *shadow;
	size_t len;
	int open;		/* number of open streams */
	int copies;
	int under_way;		/* number of copies that have not ended */
	int pinned;		/* number of pinned parts of host memory */
	struct iovec host;	/* host memory pinned last */
	/*
	 * number of open mappings of the peer's memory, which begins at base +
	 * len / 2
	 */
	int maps;
	int map_calls;
	int polls;	/* number of polls of a copy that find it unfinished */
	int fail_at; /* number of the call that fails, from 1; 0: none */
	bool fails;		/* every call fails */
};

extern struct fake {
	enum fi_threading core_threading; /* level of the core's last domain */
	struct fake_path path[FI_DUO_PATH_COUNT];
	struct fake_tx tx[FI_DUO_PATH_COUNT];
	struct fake_core core;
	struct fake_shm shm;
	/* lock that ofi_duo must hold when it calls shm */
	struct duo_lock *lock;
	struct fake_device device;
} fake;

void fake_init(void);
/* Frees all objects. The counts of open objects remain. */
void fake_fini(void);

struct fid_fabric *fake_fabric_open(enum fi_duo_path path);

/*
 * Fails the test if the info that ofi_duo passes to a fake has a fabric or a
 * domain: these objects would belong to ofi_duo, not to the fake.
 */
void fake_no_fids(const struct fi_info *info);

/* The declarations below are only for the sources of the fakes. */
struct fake_obj *fake_obj_of(struct fid *fid);
int fake_enter(enum fi_duo_path path);
int fake_open(struct fake_obj *parent, size_t fclass, struct fi_ops *ops,
	      struct fake_obj **obj);
/* Closes an object; fails the test if an open object refers to it. */
int fake_close(struct fid *fid);
void fake_ref(struct fake_obj *obj, struct fake_obj *to);
int fake_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* The only fi_open_ops name and fi_control command that the fakes accept */
#define FAKE_OPS "fake ops"
#define FAKE_COMMAND 1000
extern int fake_ops;
int fake_ops_open(struct fid *fid, const char *name, uint64_t flags,
		  void **ops, void *context);
int fake_control(struct fid *fid, int command, void *arg);
/* Initializes a struct fi_ops with these functions. */
#define FAKE_FID_OPS(close_, bind_, control_, ops_open_) {		\
	.size = sizeof(struct fi_ops), .close = close_, .bind = bind_,	\
	.control = control_, .ops_open = ops_open_,			\
}
struct fake_msg *fake_msg_new(enum duo_rx_kind kind, const char *text);
/* fake_device.c */
void fake_device_open(size_t len);
void fake_device_close(void);
char *fake_reach(enum fi_duo_path path, void *buf, void *desc);
/* Copies the message's bytes that fit into the iov; returns their number. */
size_t fake_scatter(enum fi_duo_path path, const struct fake_msg *msg,
		    const struct iovec *iov, void *const *desc, size_t count);
extern struct fi_ops fake_fid_ops; /* for objects without their own bind */
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
/* Returns the fi_addr of a sender; assigns one if there is none. */
fi_addr_t fake_core_learn(struct fid_av *av, uint64_t addr);

/* fake_core_msg.c */
ssize_t fake_core_recv(const struct fake_msg *recv, uint64_t flags);
ssize_t fake_core_cancel(fid_t fid, void *context);
/* Returns the first event of the CQ; NULL: none. */
struct fake_event *fake_core_next(const struct fake_obj *cq);
void fake_core_event(const struct fake_obj *cq,
		     const struct fi_cq_err_entry *entry, fi_addr_t src);
/* Delivers a message over the core, to no particular endpoint. */
void fake_core_arrive(enum duo_rx_kind kind, fi_addr_t src, uint64_t tag,
		      const char *text);
/* Delivers a message of fake_msg_new(), then frees it. */
void fake_core_deliver(struct fake_msg *msg);
/* Adds an error entry, which any CQ of the core returns. */
void fake_core_error(void *context, int err);
/* Reports the completions that fake.core.hold has delayed. */
void fake_core_release(void);
size_t fake_core_posted(void);
/* Returns the number of receives posted to an endpoint; NULL: to all. */
size_t fake_core_posted_to(const struct fake_obj *ep);

/* fake_shm.c */
/*
 * Connects a peer to an endpoint of shm; returns the peer's index in the map.
 */
int fake_shm_connect(struct fake_obj *ep, const char *name);
/* Returns the name of the peer that shm would reach for a fi_addr. */
const char *fake_shm_name(struct fake_obj *ep, fi_addr_t addr);
/* Return the shm or core endpoint of an endpoint of ofi_duo. */
struct fake_obj *fake_shm_of(struct fid_ep *ep);
struct fake_obj *fake_core_of(struct fid_ep *ep);

/* fake_shm_msg.c */
void fake_shm_check(struct fake_obj *obj);
/* Receives all messages for the endpoints with this CQ. */
void fake_shm_progress(struct fake_obj *cq);
/* Receives the endpoint's first message only. */
void fake_shm_progress_one(struct fake_obj *ep);
void fake_shm_learn(struct fake_obj *av);
void fake_shm_close(struct fake_obj *ep);
extern struct fi_ops_srx_peer fake_shm_srx_ops;
/* Delivers a message from the shm endpoint "name" to the first endpoint. */
struct fake_msg *fake_shm_arrive(enum duo_rx_kind kind, const char *name,
				 uint64_t tag, const char *text);
/* Delivers a message from the shm endpoint "name" to ep. */
struct fake_msg *fake_shm_arrive_at(struct fake_obj *ep, enum duo_rx_kind kind,
				    const char *name, uint64_t tag,
				    const char *text);

#endif /* FAKE_H */
