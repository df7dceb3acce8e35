/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint of ofi_duo over the two fakes, its peers, and the calls that all
 * tests make.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <rdma/fi_errno.h>

#include "fake.h"

#define LAZY_POLLS 8	/* duo_params.defer_polls in these tests */
#define TAG 7

struct fixture_attr {
	const char *core;		/* NULL: "tcp", which needs a
					 * receive when it is polled */
	bool no_shm;
	bool near;			/* local transport: the real near */
	bool device;			/* requests FI_HMEM */
	bool onesided;			/* requests FI_RMA and FI_ATOMIC */
	bool two_cqs;			/* sends complete in fx.tx_cq */
	uint64_t rx_bind_flags;		/* in addition to FI_RECV */
	bool no_cqs;			/* none is bound */
	uint64_t cntr_flags;		/* of the bind of fx.cntr */
	enum fi_wait_obj cntr_wait;	/* wait object of fx.cntr; 0: none */
	uint64_t no_caps;		/* capabilities to leave out */
	uint64_t rx_op_flags;
	uint64_t order;			/* of sends */
	size_t prefix;			/* FI_MSG_PREFIX: its bytes; 0: off */
	enum fi_cq_format format;	/* 0: tagged */
	uint32_t addr_format;		/* of the core; 0: FI_ADDR_EFA */
	enum fi_threading threading;	/* 0: safe */
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

/* A receive buffer; its address is the context. */
struct slot {
	char buf[64];
};

/* Returns the endpoint's info, for fi_freeinfo(). */
struct fi_info *fixture_info(const struct fixture_attr *attr);
/* Opens all objects up to the first error, which it returns. */
int fixture_try(const struct fixture_attr *attr);
void fixture_open(const struct fixture_attr *attr);
/* Opens everything. */
void fixture_start(const struct fixture_attr *attr);
/* Defines name(), for UNIT_CASE(): calls open() with these attributes. */
#define FIXTURE_SETUP(name, open, ...)					\
	static void name(void)						\
	{								\
		static const struct fixture_attr attr_ = { __VA_ARGS__ }; \
									\
		open(&attr_);						\
	}								\
	struct fixture_attr
/* Closes all objects and asserts that none stays open. */
void fixture_close(void);
/* For UNIT_CASE(). */
void fixture_setup(void);

static inline struct duo_ep *fixture_ep(void)
{
	return duo_ep_of(fx.ep);
}

/*
 * Publishes a local endpoint of this core address, as if it were another
 * process's; returns its shm name.
 */
const char *peer_publish(uint64_t core_addr);
/* Ends the last one. */
void peer_withdraw(void);
/* Ends the one of this name. */
void peer_end(const char *peer_name);
/* Inserts a core address; returns its fi_addr. */
fi_addr_t peer_insert(uint64_t core_addr);

/* Two peers: 1, which is local, and 2, of the core. */
extern const char *local_name;	/* over shm */
extern fi_addr_t local, remote;
void pair_insert(void);
/* For UNIT_CASE(): fixture_setup() and both. */
void pair_setup(void);
/* Loops run once per path: an enum fi_duo_path. */
static inline fi_addr_t source(int path)
{
	return path == FI_DUO_LOCAL ? local : remote;
}
/* Delivers a message from one of the two, with TAG if it is tagged. */
void arrive(int path, enum duo_rx_kind kind, const char *text);
static inline void near(const char *text)
{
	arrive(FI_DUO_LOCAL, DUO_TAGGED, text);
}
static inline void far(const char *text)
{
	arrive(FI_DUO_CORE, DUO_TAGGED, text);
}

/* Calls fi_trecv for a whole slot; returns its result. */
ssize_t try_recv(struct slot *slot, fi_addr_t src, uint64_t tag);
void post_recv(struct slot *slot, fi_addr_t src, uint64_t tag);
/* Calls fi_trecvmsg with flags and a buffer of len bytes. */
ssize_t recv_flags(void *context, char *buf, size_t len, fi_addr_t src,
		   uint64_t flags);
void poll_cq(int count);
/* Asserts that a few polls yield one completion: context, text and source. */
void expect_recv(struct slot *slot, const char *text, fi_addr_t src);
/* Returns one completion, which has this context and source. */
struct fi_cq_tagged_entry expect_entry(void *context, fi_addr_t src);
struct fi_cq_err_entry expect_error(void *context, int err);
/* Asserts that many polls yield none. */
void expect_nothing(void);
/* Asserts the path and reason that FI_DUO_OPS return for an address. */
void expect_path(struct fid_ep *ep, fi_addr_t addr, enum fi_duo_path path,
		 enum fi_duo_reason reason);
struct fi_duo_stats stats_now(void);
struct fi_duo_stats stats_of(struct fid_ep *ep);

#endif /* FIXTURE_H */
