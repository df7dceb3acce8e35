/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Two endpoints of the provider: a receiver and its peer. */
#ifndef RECV_SIDE_H
#define RECV_SIDE_H

#include "api/near_fi.h"
#include "unit.h"

#define RECV_CQ 1024	/* completions that there is room for */

extern struct fid_av *av;
extern struct fid_cq *cq[2];
extern struct fid_ep *ep[2];	/* the receiver, and its peer */
extern fi_addr_t peer;

void recv_setup(void);
void recv_teardown(void);
/* What the receiver and its peer call that endpoint. */
fi_addr_t recv_insert(struct fid_ep *of);

#endif /* RECV_SIDE_H */
