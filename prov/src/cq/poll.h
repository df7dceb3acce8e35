/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Poll sets, fi_poll(3): lists of CQs and counters of one domain. fi_poll()
 * polls all members and returns the contexts of those that have events. Lock:
 * the domain's. Cost: a read of each member.
 */
#ifndef DUO_CQ_POLL_H
#define DUO_CQ_POLL_H

#include <rdma/fi_domain.h>

struct duo_domain;

int duo_poll_open(struct fid_domain *domain_fid, struct fi_poll_attr *attr,
		  struct fid_poll **poll_fid);
/* Removes a closing CQ or counter from all poll sets. Needs the lock. */
void duo_poll_forget(struct duo_domain *domain, const struct fid *fid);

#endif /* DUO_CQ_POLL_H */
