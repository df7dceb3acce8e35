/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores, the providers that ofi_duo wraps. core/traits.c
 * has the values for each core.
 */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>

struct duo_traits {
	/*
	 * The core is core/none.h, which cannot transfer data. Only the module
	 * libnear-fi.so, the provider near of fi_near(7), has this core.
	 * ofi_duo posts no receive to it, and operations that the local
	 * transport rejects end with an error. An endpoint's address is its
	 * address at the local transport, from fi_endpoint() on, so ofi_duo
	 * needs no registry.
	 */
	bool carries_nothing;
	/*
	 * The core matches messages with receives only while ofi_duo polls it.
	 * ofi_duo therefore need not post a receive to the core in the
	 * application's call: the next poll can post it.
	 */
	bool polled_match;
	/*
	 * The core matches messages by libfabric's util_srx.c, which has two
	 * defects in libfabric 2.0 to 2.6: fi_cancel() crashes if the receive
	 * is untagged and names a source, and the completion of a peek reports
	 * no source.
	 */
	bool util_srx;
	/*
	 * CPUs execute the core's atomics. Atomics over the core and over near
	 * are then atomic with each other.
	 */
	bool cpu_atomics;
	/*
	 * The core also works without FI_MSG_PREFIX. ofi_duo then skips the
	 * prefix of the application's messages: fi/calls_prefix.c.
	 */
	bool prefix_optional;
	/*
	 * A read of any CQ of the core changes lists that all CQs of the core's
	 * domain share. The core locks these lists only with FI_THREAD_SAFE, so
	 * duo_domain_open_core() requests it (docs/upstream.md).
	 */
	bool shares_lists;
};

#endif /* DUO_OBJ_TRAITS_H */
