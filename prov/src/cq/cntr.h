/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Counters. The core counts what it does itself: sends over it, RMA, atomics
 * and targets, by a counter of its own behind ours. Receives of both paths
 * and sends over near are counted by the endpoint already, for its
 * statistics, so that counting them costs nothing on the data path; libfabric's
 * shm calls us. Reading adds it all up. Protected by the domain's lock.
 */
#ifndef DUO_CQ_CNTR_H
#define DUO_CQ_CNTR_H

#include "obj/cntr.h"

struct duo_ep;

int duo_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr_fid, void *context);
int duo_cntr_bind_ep(struct duo_cntr *cntr, struct duo_ep *ep,
		     uint64_t flags);
/* Under the lock: polls what is bound; asks the core, and adds up. */
void duo_cntr_progress(struct duo_cntr *cntr);
void duo_cntr_value(struct duo_cntr *cntr, uint64_t *good, uint64_t *bad);
/* The endpoint goes; what it has counted stays. Takes no lock. */
void duo_cntr_unbind(struct duo_ep *ep);

/* cntr_wait.c */
int duo_cntr_wait_open(struct duo_cntr *cntr, enum fi_wait_obj wait_obj);
/* Under the lock: nobody sleeps for it, so none asks the core for its value. */
void duo_cntr_wait_close(struct duo_cntr *cntr);
/* The endpoint has its CQs: what wakes them wakes its counters, or this one. */
int duo_cntr_wait_ep(struct duo_ep *ep);
int duo_cntr_wait_bind(const struct duo_cntr_bind *bind);
int duo_cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold, int timeout);
int duo_cntr_trywait(struct duo_cntr *cntr);
int duo_cntr_control(struct fid *fid, int command, void *arg);

#endif /* DUO_CQ_CNTR_H */
