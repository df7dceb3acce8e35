/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Two endpoints of the provider: a receiver and its peer. */
#ifndef RECV_SIDE_H
#define RECV_SIDE_H

#include "api/near_fi.h"
#include "unit.h"

#define RECV_CQ 1024	/* completions that there is room for */

extern struct fid_domain *domain;
extern struct fid_av *av;
extern struct fid_cq *cq[2];
extern struct fid_ep *ep[2];	/* the receiver, and its peer */
extern fi_addr_t peer;
extern enum fi_wait_obj recv_wait;	/* of the CQs, before recv_setup() */

/* before: what is done with either before it is enabled; NULL: nothing. */
void recv_setup_as(enum fi_threading threading, void (*before)(int i));
/* The peer is inserted; the test closes it, recv_teardown() the rest. */
void recv_setup(void);
void recv_teardown(void);
void recv_close(int i);
void recv_close_domain(void);
/* What the receiver and its peer call that endpoint. */
fi_addr_t recv_insert(struct fid_ep *of);
/* Reads until the receiver's next completion, which has that context; returns 0,
 * or its error. */
int recv_end(const void *context);

#endif /* RECV_SIDE_H */
