/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A thread that sleeps on fx.cq or fx.cntr, over near. The local peer is a second
 * endpoint, which shares nothing with fx.ep but the domain; remote is not there.
 */
#ifndef WAIT_FIXTURE_H
#define WAIT_FIXTURE_H

#include "fixture.h"

#define LONG_MS 20000
#define SILENCE_MS 100	/* 200 times what the timer would take */

extern struct fid_ep *peer;

/* attr->near is to be set. */
void wait_open(const struct fixture_attr *attr);
void wait_close(void);

extern struct slot slot[2];
/* What is slept on: fx.cntr, or without one fx.cq. */
struct fid *sleeper(void);
/* As an application goes to sleep: what had come is read before. */
void fall_asleep(void);
/* Falls asleep, and this happens: the sleeper gets slot[0]. */
void local_message(void);
void far_message(void);
/* What another thread does meanwhile: the core has to get it. */
void receive_posted(void);

int trywait(struct fid *fid);
/* Is the descriptor readable, within ms? */
int woken(struct fid *fid, int ms);
/* A tagged message from the peer; for pthread_create(), too. */
void *say(void *text);

#endif /* WAIT_FIXTURE_H */
