/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The open fabrics and domains of this process, for the fids in hints and
 * infos: fi_fabric(3), fi_domain(3). The application sees ours, the core sees
 * its own, and neither sees the other's.
 *
 * Cost: control path, a walk over what is open. One lock of its own, a leaf.
 */
#ifndef DUO_OPENED_H
#define DUO_OPENED_H

#include <stdbool.h>
#include <rdma/fabric.h>

struct duo_domain;
struct duo_fabric;

/* The instances to which hints restrict the answer. NULL: any */
struct duo_opened {
	struct duo_fabric *fabric;	/* set where domain is */
	struct duo_domain *domain;
	bool foreign;	/* the hints name a fid that is not ours */
};

void duo_opened_fabric(struct duo_fabric *fabric);
void duo_opened_domain(struct duo_domain *domain);
void duo_closed_fabric(struct duo_fabric *fabric);
void duo_closed_domain(struct duo_domain *domain);

/*
 * Finds what the hints name among the open instances, by comparing addresses:
 * a fid that is not ours is never read.
 */
struct duo_opened duo_opened_hinted(const struct fi_info *hints);
/* False, and says why nothing is offered, if what they name is not ours. */
bool duo_opened_ours(const struct duo_opened *opened);

/* Puts the core's own fids of these instances into hints for the core. */
void duo_opened_to_core(const struct duo_opened *opened, struct fi_info *hints);

/*
 * Replaces the core's fids in an info by ours, or by NULL where nothing of ours
 * fits. False: the info belongs to none of the instances that hints name.
 */
bool duo_opened_from_core(const struct duo_opened *opened,
			  const struct fi_info *hints, struct fi_info *info);

#endif /* DUO_OPENED_H */
