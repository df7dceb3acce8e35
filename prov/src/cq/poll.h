/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Poll sets, fi_poll(3): CQs and counters of any domain, of ofi_duo or the
 * core. Lock: the poll set's, held while members are read. Cost: a read of each
 * member.
 */
#ifndef DUO_CQ_POLL_H
#define DUO_CQ_POLL_H

#include <rdma/fi_domain.h>

int duo_poll_open(struct fid_domain *domain_fid, struct fi_poll_attr *attr,
		  struct fid_poll **poll_fid);

#endif /* DUO_CQ_POLL_H */
