/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Counters: docs/completions.md. Lock: the domain's. */
#ifndef DUO_CQ_CNTR_H
#define DUO_CQ_CNTR_H

#include "obj/cntr.h"

struct duo_ep;

int duo_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr_fid, void *context);
int duo_cntr_bind_ep(struct duo_cntr *cntr, struct duo_ep *ep,
		     uint64_t flags);
/* Binds the core's counters to the core's endpoint. Needs the domain's lock. */
int duo_cntr_bind_core(const struct duo_ep *ep);
/* Unbinds ep's counters; their values remain. Needs the domain's lock. */
void duo_cntr_unbind(struct duo_ep *ep);
/*
 * Executes fi_trywait() for a counter. Returns 0 if the application may sleep;
 * -FI_EAGAIN: the counter has changed since the previous fi_trywait().
 */
int duo_cntr_trywait(struct duo_cntr *cntr);

#endif /* DUO_CQ_CNTR_H */
