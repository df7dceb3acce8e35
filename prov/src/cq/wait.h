/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What waiting for completions and for counters have in common: wait.c. */
#ifndef DUO_CQ_WAIT_H
#define DUO_CQ_WAIT_H

#include <stdbool.h>

#include "obj/waiter.h"

struct duo_cq;
struct duo_domain;
struct duo_ep;
struct duo_nap;

/* A peer of near that closes rings no bell: so often it is looked for. */
#define DUO_SLEEP_MS 1000

/* Who carries local messages can wake who sleeps. */
bool duo_domain_peer_signals(const struct duo_domain *domain);

/*
 * Before and after sleeping for what the endpoint does, under the lock.
 * -FI_EAGAIN: something has come; duo_cq_stir() has the next polls look.
 */
int duo_ep_arm(struct duo_ep *ep);
void duo_ep_woken(struct duo_ep *ep);
int duo_cq_arm_core(struct duo_cq *cq);
void duo_cq_stir(struct duo_cq *cq);

/* Until it rings, the time is over, or DUO_SLEEP_MS. */
void duo_waiter_sleep(const struct duo_waiter *waiter,
		      const struct duo_nap *nap);
/* Where nobody signals. */
void duo_waiter_nap(const struct duo_waiter *waiter);

#endif /* DUO_CQ_WAIT_H */
