/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* near behind struct duo_peer: what several of its files need. */
#ifndef DUO_PEER_NEAR_PEER_H
#define DUO_PEER_NEAR_PEER_H

#include "obj/cq.h"

struct duo_recv;
struct duo_rx;

/* All endpoints of the CQ; returns how much has come. */
uint32_t duo_near_poll(struct duo_cq *cq);
/* 0: what comes to the endpoint wakes who sleeps; -FI_EAGAIN. */
int duo_near_arm(struct duo_ep *ep);
bool duo_near_woken(struct duo_ep *ep);
/* duo_recv_start() for a message of near. -FI_EAGAIN: nothing has changed. */
int duo_near_start(struct duo_rx *rx, const struct duo_recv *recv);

#endif /* DUO_PEER_NEAR_PEER_H */
