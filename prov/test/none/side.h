/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The provider near, as its module has it: a fabric with a core that carries
 * nothing, and two endpoints, a receiver and its peer, over real near ports.
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
#define NEAR_INJECT 4096	/* bytes */
#define NEAR_TX_SIZE 65536	/* operations, each way */
#define RECV_CQ 1024	/* size of the CQ, entries */

/* Makes this process's provider near, as entry_near.c does. */
void side_module(void);
/* Opens a fabric of the provider near. */
struct fid_fabric *side_fabric(void);
struct fid_fabric *side_opened(void);	/* the one of the two endpoints */
/* Returns an info with all capabilities, to be freed. */
struct fi_info *side_info(enum fi_threading threading);

extern struct fid_domain *domain;
extern struct fid_av *av;
extern struct fid_cq *cq[2];
extern struct fid_ep *ep[2];	/* the receiver, and its peer */
extern fi_addr_t peer;
extern enum fi_wait_obj recv_wait;	/* of the CQs, before recv_setup() */

/* before: called for each endpoint before fi_enable; NULL: none. */
void recv_setup_as(enum fi_threading threading, void (*before)(int i));
/* The peer is inserted; the test closes it, recv_teardown() the rest. */
void recv_setup(void);
void recv_teardown(void);
void recv_close(int i);
void recv_close_domain(void);
/* Inserts the endpoint into the AV; returns its fi_addr. */
fi_addr_t recv_insert(struct fid_ep *of);
/* Reads the receiver's next completion, which has that context. Returns 0 or
 * its error. */
int recv_end(const void *context);

#endif /* SIDE_H */
