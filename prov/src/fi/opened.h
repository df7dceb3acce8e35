/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The list of open fabrics and domains, by which fi_getinfo() translates fids
 * in hints and infos. Cost: a walk through the lists. Lock: a mutex, under
 * which no other lock is taken.
 */
#ifndef DUO_OPENED_H
#define DUO_OPENED_H

#include <stdbool.h>
#include <rdma/fabric.h>

struct duo_domain;
struct duo_fabric;

/* Open objects that the hints name by fid; NULL: no fid of this class */
struct duo_opened {
	struct duo_fabric *fabric;	/* set whenever domain is set */
	struct duo_domain *domain;
	/* true: a fid is not ofi_duo's, or domain is not of this fabric */
	bool foreign;
};

void duo_opened_fabric(struct duo_fabric *fabric);
void duo_opened_domain(struct duo_domain *domain);
void duo_closed_fabric(struct duo_fabric *fabric);
void duo_closed_domain(struct duo_domain *domain);

/*
 * Returns the open objects that the hints name. Does not dereference the hints'
 * fids, because they may belong to other providers.
 */
struct duo_opened duo_opened_hinted(const struct fi_info *hints);
/* True if opened->foreign is not set. Otherwise logs a message. */
bool duo_opened_ours(const struct duo_opened *opened);

/* Replaces ofi_duo's fids in the hints by the fids of the core's objects. */
void duo_opened_to_core(const struct duo_opened *opened, struct fi_info *hints);

/*
 * Stores in an info of the core the fids of an open fabric and domain of
 * ofi_duo that fit the info. Stores NULL if none fits. Returns false if the
 * hints name a fabric or domain that does not fit.
 */
bool duo_opened_from_core(const struct duo_opened *opened,
			  const struct fi_info *hints, struct fi_info *info);

#endif /* DUO_OPENED_H */
