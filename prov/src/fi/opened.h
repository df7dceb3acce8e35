/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The open fabrics and domains of this process, for the fids in hints and
 * infos: fi_fabric(3), fi_domain(3). The application gets fids of ofi_duo, the
 * core gets its own.
 *
 * Cost: control path, a walk of the lists. Lock: its own, a leaf.
 */
#ifndef DUO_OPENED_H
#define DUO_OPENED_H

#include <stdbool.h>
#include <rdma/fabric.h>

struct duo_domain;
struct duo_fabric;

/* The instances that the hints name. NULL: any */
struct duo_opened {
	struct duo_fabric *fabric;	/* set if domain is */
	struct duo_domain *domain;
	bool foreign;	/* the hints name another fid */
};

void duo_opened_fabric(struct duo_fabric *fabric);
void duo_opened_domain(struct duo_domain *domain);
void duo_closed_fabric(struct duo_fabric *fabric);
void duo_closed_domain(struct duo_domain *domain);

/*
 * Returns the open instances that the hints name. Compares addresses only: a
 * fid that is not ofi_duo's is never read.
 */
struct duo_opened duo_opened_hinted(const struct fi_info *hints);
/* True if the hints name no foreign fid; otherwise logs that fid. */
bool duo_opened_ours(const struct duo_opened *opened);

/* Stores the core's fids of these instances in hints for the core. */
void duo_opened_to_core(const struct duo_opened *opened, struct fi_info *hints);

/*
 * Replaces the core's fids in an info by ofi_duo's, or by NULL if none fits.
 * False: the info belongs to no instance that the hints name.
 */
bool duo_opened_from_core(const struct duo_opened *opened,
			  const struct fi_info *hints, struct fi_info *info);

#endif /* DUO_OPENED_H */
