/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* An endpoint of ofi_duo over the fakes, its peers, and common assertions. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <rdma/fi_errno.h>

#include "fake.h"

#define LAZY_POLLS 8	/* duo_params.defer_polls in these tests */
#define TAG 7

struct fixture_attr {
	/*
	 * name of the core; NULL: "tcp", which matches messages only in polls
	 */
	const char *core;
	bool no_shm;
	bool near; /* the local transport is near, not the fake shm */
	bool device;			/* request FI_HMEM */
	bool onesided;			/* request FI_RMA and FI_ATOMIC */
	bool two_cqs;			/* bind fx.tx_cq for sends */
	/* flags of the bind of fx.cq, besides FI_RECV */
	uint64_t rx_bind_flags;
	bool no_cqs;			/* bind no CQ */
	uint64_t cntr_flags; /* bind flags of fx.cntr; 0: no counter */
	enum fi_wait_obj cntr_wait;	/* wait object of fx.cntr; 0: none */
	uint64_t no_caps; /* capabilities that the test does not request */
	uint64_t rx_op_flags;
	uint64_t order;			/* tx_attr->msg_order */
	size_t prefix; /* msg_prefix_size, bytes; 0: no FI_MSG_PREFIX */
	enum fi_cq_format format;	/* 0: FI_CQ_FORMAT_TAGGED */
	uint32_t addr_format;	/* the core's address format; 0: FI_ADDR_EFA */
	enum fi_threading threading;	/* 0: FI_THREAD_SAFE */
	enum fi_wait_obj wait_obj;
};

extern struct fixture {
	struct duo_fabric fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq, *tx_cq;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
} fx;

/* A receive buffer. Its address is the context of the receive. */
struct slot {
	char buf[64];
};

/* Returns an endpoint's info with these attributes; the caller frees it. */
struct fi_info *fixture_info(const struct fixture_attr *attr);
/*
 * Opens and enables the objects of fx, after fixture_open(). Returns 0, or the
 * first error; objects after the failed one stay closed.
 */
int fixture_try(const struct fixture_attr *attr);
void fixture_open(const struct fixture_attr *attr);
/* Calls fixture_open() and fixture_try(); asserts success. */
void fixture_start(const struct fixture_attr *attr);
/* Returns an endpoint that is bound to nothing. */
struct fid_ep *fixture_unbound(const struct fixture_attr *attr);
/*
 * Returns a second endpoint, which has another core address and is not enabled
 * yet. Binds fx.av and, if cq_flags is not 0, fx.cq.
 */
struct fid_ep *fixture_another(const struct fixture_attr *attr,
			       uint64_t cq_flags);
/*
 * Defines name(), a setup for UNIT_CASE(). It calls open() with the attributes
 * that follow.
 */
#define FIXTURE_SETUP(name, open, ...)					\
	static void name(void)						\
	{								\
		static const struct fixture_attr attr_ = { __VA_ARGS__ }; \
									\
		open(&attr_);						\
	}								\
	struct fixture_attr
/* Sets an option of an endpoint; returns the result of fi_setopt(). */
#define ep_set(ep, name, value)						\
	fi_setopt(&(ep)->fid, FI_OPT_ENDPOINT, name, &(value), sizeof(value))
/* Closes fx.ep alone. */
void fixture_close_ep(void);
/* Closes all objects and asserts that none stays open. */
void fixture_close(void);
/* fixture_start() with default attributes; a setup for UNIT_CASE(). */
void fixture_setup(void);

static inline struct duo_ep *fixture_ep(void)
{
	return duo_ep_of(fx.ep);
}

/* Publishes a local endpoint as another process would. Returns its shm name. */
const char *peer_publish(uint64_t core_addr);
/* Withdraws the peer that was published last. */
void peer_withdraw(void);
/* Withdraws the peer with this name. */
void peer_end(const char *peer_name);
fi_addr_t peer_insert(uint64_t core_addr);

/*
 * pair_insert() publishes and inserts the peer "local", with core address 1. It
 * inserts the peer "remote", with core address 2, without a record.
 */
extern const char *local_name;	/* shm name of "local" */
extern fi_addr_t local, remote;
void pair_insert(void);
/* fixture_start() and pair_insert(). */
void pair_open(const struct fixture_attr *attr);
/* fixture_setup() and pair_insert(); a setup for UNIT_CASE(). */
void pair_setup(void);
/* Returns the fi_addr of the peer with this path: "local" or "remote". */
static inline fi_addr_t source(int path)
{
	return path == FI_DUO_LOCAL ? local : remote;
}
/*
 * Delivers a message over this path, from source(path); a tagged one has TAG.
 */
void arrive(int path, enum duo_rx_kind kind, const char *text);
static inline void near(const char *text)
{
	arrive(FI_DUO_LOCAL, DUO_TAGGED, text);
}
static inline void far(const char *text)
{
	arrive(FI_DUO_CORE, DUO_TAGGED, text);
}

/* Sends "x" with TAG; returns the result of fi_tsend(). */
ssize_t send_x(struct fid_ep *ep, fi_addr_t to, void *context);

/* Calls fi_trecv for a whole slot; returns the result. */
ssize_t try_recv(struct slot *slot, fi_addr_t src, uint64_t tag);
void post_recv(struct slot *slot, fi_addr_t src, uint64_t tag);
/* Posts an untagged receive. */
void post_untagged(struct slot *slot, fi_addr_t src);
/* Calls fi_trecvmsg with one buffer of len bytes; returns the result. */
ssize_t recv_flags(void *context, char *buf, size_t len, fi_addr_t src,
		   uint64_t flags);
void poll_cq(int count);
/*
 * Polls longer than ofi_duo defers receives. Asserts how many receives the core
 * has.
 */
void expect_posted(uint32_t count);
/* Polls; asserts one completion of this slot, with text and source. */
void expect_recv(struct slot *slot, const char *text, fi_addr_t src);
/* Polls; asserts context and source of one completion, and returns it. */
struct fi_cq_tagged_entry expect_entry(void *context, fi_addr_t src);
struct fi_cq_err_entry expect_error(void *context, int err);
/* Polls many times; asserts that there is no completion. */
void expect_nothing(void);
struct fi_ops_duo *ops_of(struct fid_ep *ep);
/* Asserts the results of fi_ops_duo.path() for an address. */
void expect_path(struct fid_ep *ep, fi_addr_t addr, enum fi_duo_path path,
		 enum fi_duo_reason reason);
struct fi_duo_stats stats_now(void);
struct fi_duo_stats stats_of(struct fid_ep *ep);

#endif /* FIXTURE_H */
