/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A thread that sleeps on fx.cq or fx.cntr, with near as local transport. The
 * local peer is another endpoint of the same domain. The address "remote"
 * belongs to no endpoint.
 */
#ifndef WAIT_FIXTURE_H
#define WAIT_FIXTURE_H

#include "fixture.h"

#define LONG_MS 60000
#define SILENCE_MS 100	/* 200 times the interval of the timer */

extern struct fid_ep *peer;

/* Opens fx and the peer; attr->near must be set. */
void wait_open(const struct fixture_attr *attr);
void wait_close(void);

extern struct slot slot[2];
/* Returns the object on which to sleep: fx.cntr if it exists, else fx.cq. */
struct fid *sleeper(void);
/*
 * Reads all completions, then calls fi_trywait, as an application does before
 * it sleeps.
 */
void fall_asleep(void);
/*
 * Post a receive in slot[0] and prepare to sleep; then its message arrives,
 * from the local peer or over the core.
 */
void local_message(void);
void far_message(void);
/*
 * Prepares to sleep, then posts a receive as another thread would; asserts that
 * the thread wakes and the core gets the receive.
 */
void receive_posted(void);

int trywait(struct fid *fid);
/* Polls the descriptor for at most ms; returns 1 if it is readable, else 0. */
int woken(struct fid *fid, int ms);
/* Sends a tagged message from the peer. Usable with pthread_create(). */
void *say(void *text);

#endif /* WAIT_FIXTURE_H */
