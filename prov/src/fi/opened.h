/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The list of open fabrics and domains. fi_getinfo() uses it to translate fids
 * in hints and infos. Cost: a walk through the lists. Lock: a mutex; no other
 * lock is taken under it.
 */
#ifndef DUO_OPENED_H
#define DUO_OPENED_H

#include <stdbool.h>
#include <rdma/fabric.h>

struct duo_domain;
struct duo_fabric;

/*
 * The open objects that the hints name by fid. NULL: the hints have no fid of
 * this class.
 */
struct duo_opened {
	struct duo_fabric *fabric;	/* set whenever domain is set */
	struct duo_domain *domain;
	/*
	 * a fid in the hints belongs to no open object of ofi_duo, or the
	 * domain does not belong to the fabric
	 */
	bool foreign;
};

void duo_opened_fabric(struct duo_fabric *fabric);
void duo_opened_domain(struct duo_domain *domain);
void duo_closed_fabric(struct duo_fabric *fabric);
void duo_closed_domain(struct duo_domain *domain);

/*
 * Returns the open objects that the hints name. Compares fids by their address
 * only, because they may belong to other providers.
 */
struct duo_opened duo_opened_hinted(const struct fi_info *hints);
/*
 * True if all objects in `opened` are open objects of ofi_duo. Otherwise logs a
 * message.
 */
bool duo_opened_ours(const struct duo_opened *opened);

/*
 * Stores the fids of the core's objects that these objects wrap in the hints
 * for the core.
 */
void duo_opened_to_core(const struct duo_opened *opened, struct fi_info *hints);

/*
 * Replaces the core's fids in an info by the fids of open objects of ofi_duo
 * that fit the info; or by NULL if no open object fits. False: the hints name
 * an object that does not fit the info.
 */
bool duo_opened_from_core(const struct duo_opened *opened,
			  const struct fi_info *hints, struct fi_info *info);

#endif /* DUO_OPENED_H */
