/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A fake core and a fake shm: fids whose operations do what the providers
 * do, as far as ofi_duo sees it, one step at a time and when the test says
 * so. Both count their calls, can fail the n-th, and know how many objects
 * are open. Any use of a closed object, and any call that must not reach
 * shm, fails the test.
 */
#ifndef FAKE_H
#define FAKE_H

#include "unit.h"

#define FAKE_ERROR FI_EIO	/* what the call that fail_at names returns */
#define FAKE_REFS 5
#define FAKE_PEERS 512
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
	int refs;			/* by open objects */
	bool closed;
	struct fake_obj *ref[FAKE_REFS];
	struct fid_peer_cq *peer_cq;
	struct fake_obj *tx_cq, *rx_cq;
	struct fake_table *table;	/* of an AV of the core */
	struct fake_obj *bound_av;	/* of an endpoint of the core */
	char name[DUO_SHM_NAME_MAX];
	LIST_ENTRY(fake_obj) link;
};

/* What an AV of the core has; FAKE_FREE: nothing. */
#define FAKE_FREE UINT64_MAX
struct fake_table {
	uint64_t addr[FAKE_PEERS];	/* by fi_addr */
	bool used;			/* an endpoint is or was bound */
	uint64_t refused;		/* an address that it does not take */
};

struct fake_path {
	int calls;	/* that may fail */
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
	size_t count;
	size_t len;
	size_t says;			/* msg_size for its owner; 0: len */
	char payload[FAKE_MSG_MAX];
	char name[DUO_SHM_NAME_MAX];	/* the sender's, of shm */
	struct fi_peer_rx_entry *entry;
};
TAILQ_HEAD(fake_msg_list, fake_msg);

struct fake_event {
	STAILQ_ENTRY(fake_event) link;
	struct fi_cq_err_entry entry;	/* err 0: a completion */
	fi_addr_t src;
};
STAILQ_HEAD(fake_event_list, fake_event);

/* The last send, and how many there were. */
struct fake_tx {
	int count;
	enum duo_rx_kind kind;
	size_t len;
	fi_addr_t dest;
	uint64_t tag, data, flags;
	void *desc;
	void *context;
	char payload[FAKE_MSG_MAX];
};

struct fake_core {
	uint64_t own_addr;
	bool single;		/* an AV takes one endpoint, as efa's do */
	uint64_t refused;	/* an address that AVs opened now refuse */
	struct fake_msg_list posted, unexp, claimed;
	struct fake_event_list events, late;
	bool hold;		/* completions wait for fake_core_release() */
	bool util_srx;		/* it must not be asked to cancel a directed
				 * untagged receive */
	bool ends_twice;	/* truncated receives do, as on efa */
	int eagain;		/* so many receives are refused */
	int post_err;		/* the next receive fails with this */
	int close_err;		/* the next close of the endpoint likewise */
	int posts, cancels, polls, peeks;
	struct fid *mr_bound;	/* to whom the last one was */
	size_t min_multi_recv;	/* 0: it has no such option */
	bool shm_off;		/* FI_OPT_SHARED_MEMORY_PERMITTED false */
};

struct fake_shm {
	char peer[FAKE_PEERS][DUO_SHM_NAME_MAX];	/* by shm address */
	size_t peer_count;
	int removed;		/* calls of remove */
	bool full;		/* no more peers */
	struct fake_obj *ep;
	struct fid_peer_srx *srx;
	struct fake_msg_list incoming, queued, started;
	bool slow;		/* starts complete at the next poll */
	bool send_polls;	/* a send takes in a message, as shm's may */
	int rx_err;		/* the next receive fails with this */
	bool tx_eagain;
	int polls;
};

extern struct fake {
	struct fake_path path[FI_DUO_PATH_COUNT];
	struct fake_tx tx[FI_DUO_PATH_COUNT];
	struct fake_core core;
	struct fake_shm shm;
	struct duo_lock *lock;	/* held around every call into shm */
} fake;

void fake_init(void);
/* Frees all memory; whatever is still open stays counted. */
void fake_fini(void);

/* The fabrics, which the provider gets from libfabric otherwise. */
struct fid_fabric *fake_fabric_open(enum fi_duo_path path);

/* Below: between the parts of the fakes. */
struct fake_obj *fake_obj_of(struct fid *fid);
int fake_enter(enum fi_duo_path path);
int fake_open(struct fake_obj *parent, size_t fclass, struct fi_ops *ops,
	      struct fake_obj **obj);
/* -FI_EBUSY, and the test fails, if something open refers to it. */
int fake_close(struct fid *fid);
void fake_ref(struct fake_obj *obj, struct fake_obj *to);
int fake_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int fake_no_control(struct fid *fid, int command, void *arg);
struct fake_msg *fake_msg_new(enum duo_rx_kind kind, const char *text);
/* Scatters what fits; returns how much did. */
size_t fake_scatter(const struct fake_msg *msg, const struct iovec *iov,
		    size_t count);
extern struct fi_ops_domain fake_core_domain_ops, fake_shm_domain_ops;
extern struct fi_ops_mr fake_core_mr_ops;
extern struct fi_ops_msg fake_msg_ops;
extern struct fi_ops_tagged fake_tagged_ops;

/* fake_core.c */
struct fake_table *fake_core_table(struct fid_av *av);
/* The core gives a number to a sender that it does not know. */
fi_addr_t fake_core_learn(struct fid_av *av, uint64_t addr);

/* fake_core_msg.c */
ssize_t fake_core_recv(const struct fake_msg *recv, uint64_t flags);
ssize_t fake_core_cancel(fid_t fid, void *context);
void fake_core_event(const struct fi_cq_err_entry *entry, fi_addr_t src);
/* A message from src has come over the core. */
void fake_core_arrive(enum duo_rx_kind kind, fi_addr_t src, uint64_t tag,
		      const char *text);
/* The same of one from fake_msg_new(), which is freed; addr: the sender. */
void fake_core_deliver(struct fake_msg *msg);
/* An error entry out of the blue, e.g. of a send. */
void fake_core_error(void *context, int err);
/* Completions that were held back come in. */
void fake_core_release(void);
size_t fake_core_posted(void);

/* fake_shm_msg.c */
void fake_shm_check(struct fake_obj *obj);
void fake_shm_progress(void);
/* Takes in the first message alone. */
void fake_shm_progress_one(void);
void fake_shm_learn(void);
void fake_shm_close(void);
extern struct fi_ops_srx_peer fake_shm_srx_ops;
/* A message from the shm endpoint "name" is in our region. */
struct fake_msg *fake_shm_arrive(enum duo_rx_kind kind, const char *name,
				 uint64_t tag, const char *text);

#endif /* FAKE_H */
