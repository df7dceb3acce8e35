/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Counters. A read computes the value as a sum: the core's own counter has the
 * sends, RMA, atomics and remote accesses over the core; the endpoint's
 * statistics have the receives of both paths and the sends over near. So
 * counters cost nothing on the data path. libfabric's shm adds to a counter
 * itself. Lock: the domain's.
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
 * Both must be called with the lock held. duo_cntr_progress() polls the
 * endpoints and, if a poll of the core is due, the core. duo_cntr_value() reads
 * the core's counter and returns the sums of successes and of errors.
 */
void duo_cntr_progress(struct duo_cntr *cntr);
void duo_cntr_value(struct duo_cntr *cntr, uint64_t *good, uint64_t *bad);
/*
 * Unbinds all counters of a closing endpoint, whose counts remain in the
 * counters. The caller must hold the lock.
 */
void duo_cntr_unbind(struct duo_ep *ep);

/* cntr_wait.c */
int duo_cntr_wait_open(struct duo_cntr *cntr, enum fi_wait_obj wait_obj);
/*
 * Closes the wait object. From now on duo_lock.watch does not check the
 * counter. The caller must hold the lock.
 */
void duo_cntr_wait_close(struct duo_cntr *cntr);
/*
 * duo_cntr_wait_ep() adds the descriptors of the core's CQs of ep to the wait
 * objects of all counters of ep. duo_cntr_wait_bind() does so for the counter
 * of one binding. Both return 0 or a negative error.
 */
int duo_cntr_wait_ep(struct duo_ep *ep);
int duo_cntr_wait_bind(const struct duo_cntr_bind *bind);
int duo_cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold, int timeout);
int duo_cntr_trywait(struct duo_cntr *cntr);
int duo_cntr_control(struct fid *fid, int command, void *arg);

#endif /* DUO_CQ_CNTR_H */
