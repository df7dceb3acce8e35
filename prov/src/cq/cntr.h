/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Counters. A read computes a sum of three parts:
 * - the core's counter: sends, RMA, atomics and remote accesses over the core
 * - the endpoints' statistics: receives, and sends over near
 * - own[]: near's RMA, atomics and remote accesses, all that libfabric's shm
 *   counts, values that the application sets or adds, and the counts of closed
 *   endpoints
 *
 * So counters cost nothing on the data path of messages. Lock: the domain's.
 */
#ifndef DUO_CQ_CNTR_H
#define DUO_CQ_CNTR_H

#include "obj/cntr.h"

struct duo_ep;

int duo_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr_fid, void *context);
int duo_cntr_bind_ep(struct duo_cntr *cntr, struct duo_ep *ep,
		     uint64_t flags);
/*
 * Both need the domain's lock. duo_cntr_progress() polls the endpoints, and the
 * core if a poll of the core is due. duo_cntr_value() stores the numbers of
 * operations that have succeeded (*good) and failed (*bad).
 */
void duo_cntr_progress(struct duo_cntr *cntr);
void duo_cntr_value(struct duo_cntr *cntr, uint64_t *good, uint64_t *bad);
/*
 * Returns the number of failed operations, without a poll. The core's part of
 * this number is the value that the last read of the core's errors has found.
 * Takes the domain's lock.
 */
uint64_t duo_cntr_known_bad(struct duo_cntr *cntr);
/*
 * For each counter of the endpoint, binds the core's counter to the core's
 * endpoint. Needs the domain's lock. Returns 0 or an error.
 */
int duo_cntr_bind_core(const struct duo_ep *ep);
/*
 * Unbinds the counters of an endpoint that closes. The values of the counters
 * do not change. Needs the domain's lock.
 */
void duo_cntr_unbind(struct duo_ep *ep);

/* cntr_wait.c */
int duo_cntr_wait_open(struct duo_cntr *cntr, enum fi_wait_obj wait_obj);
/*
 * Both add descriptors to the wait objects of counters. These are the
 * descriptors of the core's CQs that belong to an endpoint's CQs.
 * duo_cntr_wait_ep() adds them for all counters of the endpoint,
 * duo_cntr_wait_bind() for the counter of one binding. Both return 0 or an
 * error.
 */
int duo_cntr_wait_ep(struct duo_ep *ep);
int duo_cntr_wait_bind(const struct duo_cntr_bind *bind);
int duo_cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold, int timeout);
int duo_cntr_trywait(struct duo_cntr *cntr);
int duo_cntr_control(struct fid *fid, int command, void *arg);

#endif /* DUO_CQ_CNTR_H */
