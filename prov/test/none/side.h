/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The provider near, as its module registers it. The fabric's core is the one
 * that is named "none" (core/none.h), and carries no messages. The two
 * endpoints, a receiver and its peer, have real ports.
 */
#ifndef SIDE_H
#define SIDE_H

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "fi/api.h"
#include "base/log.h"
#include "base/params.h"
#include "near/link/port.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "transport/near/near_ep.h"
#include "unit.h"

#define NEAR_NAME "near"
#define NEAR_INJECT 4096	/* limit of an injected message, bytes */
#define NEAR_TX_SIZE 65536	/* size in the info, for sends and receives */
#define RECV_CQ 1024	/* size of the CQ, entries */

/* Sets the provider's name and its parameters, as fi/entry_near.c does. */
void side_module(void);
struct fid_fabric *side_fabric(void);
struct fid_fabric *side_opened(void);	/* returns the fabric of ep[] */
/* Returns an info with all capabilities; the caller frees it. */
struct fi_info *side_info(enum fi_threading threading);

extern struct fid_domain *domain;
extern struct fid_av *av;
extern struct fid_cq *cq[2];
extern struct fid_ep *ep[2];	/* the receiver and its peer */
extern fi_addr_t peer;
/* wait object of the CQs; set it before recv_setup() */
extern enum fi_wait_obj recv_wait;

/* Opens both endpoints and inserts the peer's address. */
void recv_setup(void);
void recv_teardown(void);
void recv_close(int i);	/* closes an endpoint and its CQ */
/* Inserts the endpoint's address; returns its fi_addr. */
fi_addr_t recv_insert(struct fid_ep *of);
/*
 * Waits for the receiver's next completion, which must have this context.
 * Returns 0 or the completion's error.
 */
int recv_end(const void *context);
/*
 * Polls both CQs until the peer has a completion; returns its context. Aborts
 * after an error.
 */
void *recv_sent(void);
/* Posts a multi-receive buffer with the context buf. Returns 0 or an error. */
int recv_multi(void *buf, size_t len, fi_addr_t addr);

#endif /* SIDE_H */
