/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores. core/traits.c finds the traits by the core's name.
 * A difference that ofi_duo finds by the result of a call needs no trait.
 */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_fabric_attr;
struct fi_info;
struct fid_fabric;

/*
 * Functions of a core that is part of ofi_duo (core/none.h), and not a provider
 * of libfabric.
 */
struct duo_core_ops {
	/* Implements fi_getinfo(3). The hints must name this core. */
	int (*getinfo)(const char *node, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*open)(const struct fi_fabric_attr *attr,
		    struct fid_fabric **fabric);
	/* length of each address of this core, bytes */
	size_t addr_len;
};

struct duo_traits {
	/*
	 * functions of a core that is part of ofi_duo; NULL: the core is a
	 * provider of libfabric
	 */
	const struct duo_core_ops *own;
	/*
	 * From fi_endpoint() on, the address of an endpoint is its address at
	 * the local transport. No other endpoint ever has the same address, so
	 * ofi_duo needs no registry.
	 */
	bool peer_names;
	/*
	 * The core cannot transfer data: it is the core of the provider near
	 * (core/none.h). ofi_duo posts no receive to the core. Operations that
	 * near rejects end with an error.
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
