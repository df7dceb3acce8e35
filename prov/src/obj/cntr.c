/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "obj/cntr.h"
#include "obj/ep.h"

bool duo_cntr_counts(const struct duo_ep *ep, uint64_t flags)
{
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		if (bind->flags & flags)
			return true;
	}
	return false;
}

void duo_cntr_add_ep(struct duo_ep *ep, uint64_t flag, int err)
{
	struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		if (bind->flags & flag)
			bind->cntr->own[!!err]++;
	}
}
