/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores. core/traits.c finds the traits by the core's name.
 * A difference that ofi_duo finds by the result of a call needs no trait.
 */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>

struct duo_traits {
	/*
	 * The core is that of the provider near (core/none.h), and cannot
	 * transfer data. ofi_duo posts no receive to the core. Operations that
	 * near rejects end with an error. From fi_endpoint() on, the address of
	 * an endpoint is its address at the local transport. No other endpoint
	 * ever has the same address, so ofi_duo needs no registry.
	 */
	bool carries_nothing;
	/*
	 * The core matches messages only while ofi_duo polls it. So the post of
	 * a receive to the core can wait until the next poll.
	 */
	bool polled_match;
	/*
	 * fi_cancel() of an untagged receive that names a source crashes: a
	 * defect of util_srx.c in libfabric 2.0 to 2.6.
	 */
	bool cannot_cancel;
	/* The completion of a peek has no source: defect of util_srx.c. */
	bool peek_no_source;
	/*
	 * The core executes atomics by CPU instructions. So its atomics and
	 * those of near are atomic with respect to each other.
	 */
	bool cpu_atomics;
	/* The core can work without FI_MSG_PREFIX: see fi/calls_prefix.c. */
	bool prefix_optional;
	/*
	 * Each read of one of the core's CQs changes lists of the core's
	 * domain. The core locks these lists only if the domain has
	 * FI_THREAD_SAFE (docs/upstream.md, FI_THREAD_COMPLETION).
	 */
	bool shares_lists;
};

#endif /* DUO_OBJ_TRAITS_H */
