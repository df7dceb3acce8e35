/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A thread that sleeps on fx.cq or fx.cntr, with near as local transport. The
 * local peer is an endpoint of the same domain. The address "remote" belongs to
 * no endpoint.
 */
#ifndef WAIT_FIXTURE_H
#define WAIT_FIXTURE_H

#include "fixture.h"

#define LONG_MS 60000
#define SILENCE_MS 100	/* 200 times duo_params.wait_poll_us */

extern struct fid_ep *peer;
extern fi_addr_t to_us;	/* fi_addr of fx.ep in fx.av */

void wait_open(const struct fixture_attr *attr);
void wait_close(void);

extern struct slot slot[2];
/* Returns fx.cntr if it exists, else fx.cq. */
struct fid *sleeper(void);
/*
 * Polls until fi_trywait() permits a sleep. If the thread sleeps on fx.cq,
 * asserts that fx.cq has no entry.
 */
void fall_asleep(void);
/* Post a receive in slot[0] and prepare to sleep; then its message arrives. */
void local_message(void);
void far_message(void);
/*
 * Prepares to sleep, and posts a receive, as another thread would during the
 * sleep. Asserts that the descriptor wakes the sleeping thread, and that the
 * core then gets the receive.
 */
void receive_posted(void);

int trywait(struct fid *fid);
/* Polls the descriptor for at most ms; returns 1 if readable, else 0. */
int woken(struct fid *fid, int ms);
/* Sends a tagged message from the peer; for unit_thread(). */
void *say(void *text);

#endif /* WAIT_FIXTURE_H */
