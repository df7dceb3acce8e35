/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A thread that sleeps on fx.cq or fx.cntr, over near. The local peer is a
 * second endpoint that shares only the domain with fx.ep; remote is absent.
 */
#ifndef WAIT_FIXTURE_H
#define WAIT_FIXTURE_H

#include "fixture.h"

#define LONG_MS 20000
#define SILENCE_MS 100	/* 200 times the timer's interval */

extern struct fid_ep *peer;

/* attr->near must be set. */
void wait_open(const struct fixture_attr *attr);
void wait_close(void);

extern struct slot slot[2];
/* Returns the object to sleep on: fx.cntr if there is one, else fx.cq. */
struct fid *sleeper(void);
/* Prepares to sleep as an application does: reads all completions first. */
void fall_asleep(void);
/* Prepare to sleep; then a message for slot[0] arrives. */
void local_message(void);
void far_message(void);
/* Posts a receive as another thread would: the core must get it. */
void receive_posted(void);

int trywait(struct fid *fid);
/* True if the descriptor becomes readable within ms. */
int woken(struct fid *fid, int ms);
/* Sends a tagged message from the peer; for pthread_create(), too. */
void *say(void *text);

#endif /* WAIT_FIXTURE_H */
