/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Differences between cores; core/traits.c has those of each core. */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>

struct duo_traits {
	/*
	 * The core is that of the provider near (core/none.h), and cannot
	 * transfer data: ofi_duo posts no receive to it, and operations that
	 * near rejects end with an error. An endpoint's address is its address
	 * at the local transport, from fi_endpoint() on, so ofi_duo needs no
	 * registry.
	 */
	bool carries_nothing;
	/*
	 * The core matches only in polls: a post can wait until the next one.
	 */
	bool polled_match;
	/*
	 * fi_cancel() of an untagged receive that names a source crashes: a
	 * defect of util_srx.c in libfabric 2.0 to 2.6.
	 */
	bool cannot_cancel;
	/* The completion of a peek has no source: defect of util_srx.c. */
	bool peek_no_source;
	/* CPUs execute the core's atomics, so near's are atomic with them. */
	bool cpu_atomics;
	/* The core can work without FI_MSG_PREFIX: see fi/calls_prefix.c. */
	bool prefix_optional;
	/*
	 * A read of a CQ changes lists of the core's domain, which the core
	 * locks only with FI_THREAD_SAFE (docs/upstream.md).
	 */
	bool shares_lists;
};

#endif /* DUO_OBJ_TRAITS_H */
