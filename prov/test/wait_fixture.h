/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Somebody who sleeps on fx.cq or fx.cntr, over near, and a peer: a second
 * endpoint, which shares nothing with his but the domain.
 */
#ifndef WAIT_FIXTURE_H
#define WAIT_FIXTURE_H

#include <rdma/fi_errno.h>

#include "fixture.h"

#define LONG_MS 20000
#define SILENCE_MS 100	/* 200 times what the timer would take */

extern struct fid_ep *peer;
extern fi_addr_t local, far;	/* he, of peer; far + 1: the peer, of him */

/* attr->near is to be set. */
void wait_open(const struct fixture_attr *attr);
void wait_close(void);

int trywait(struct fid *fid);
/* Is the descriptor readable, within ms? */
int woken(struct fid *fid, int ms);
/* A tagged message from the peer; for pthread_create(), too. */
void *say(void *text);

#endif /* WAIT_FIXTURE_H */
