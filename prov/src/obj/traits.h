/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores that ofi_duo must handle. core/traits.c finds them
 * by the core's name, once for each fabric. A difference that the result of a
 * call shows, such as a failing fi_av_lookup(), needs no trait.
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
 * Calls of a core that is not a provider of libfabric, but part of ofi_duo
 * (core/none.h).
 */
struct duo_core_ops {
	/* fi_getinfo(3); the hints must name this core. */
	int (*getinfo)(const char *node, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*open)(const struct fi_fabric_attr *attr,
		    struct fid_fabric **fabric);
	/* length of each address, bytes; used in place of fi_av_lookup(3) */
	size_t addr_len;
};

struct duo_traits {
	/* NULL: the core is a provider of libfabric */
	const struct duo_core_ops *own;
	/*
	 * The address of an endpoint is its address at the local transport,
	 * from fi_endpoint() on. So each endpoint has a local side, ofi_duo
	 * needs no registry, and no other process ever gets the same address.
	 */
	bool peer_names;
	/*
	 * The core carries no data: no receive is posted to it, and operations
	 * that the local transport rejects fail.
	 */
	bool carries_nothing;
	/*
	 * The core matches messages only in polls, so a receive may be posted
	 * just before the next poll.
	 */
	bool polled_match;
	/*
	 * fi_cancel() of an untagged receive with a source crashes in
	 * util_srx.c of libfabric 2.0 to 2.6.
	 */
	bool cannot_cancel;
	/*
	 * The completion of a peek has no source, because of a defect in
	 * libfabric's util_srx.c.
	 */
	bool peek_no_source;
	/*
	 * The core executes atomics by CPU instructions, as near does. So an
	 * atomic of near and one of the core are atomic to each other.
	 */
	bool cpu_atomics;
	/*
	 * The core works with and without FI_MSG_PREFIX. ofi_duo opens the core
	 * without it, and fi/calls_prefix.c skips the prefix.
	 */
	bool prefix_optional;
	/*
	 * When the core polls any CQ of a domain, it changes lists of the
	 * domain (of packets to send again, for example). The core locks these
	 * lists only with FI_THREAD_SAFE. See FI_THREAD_COMPLETION in
	 * docs/upstream.md.
	 */
	bool shares_lists;
};

#endif /* DUO_OBJ_TRAITS_H */
