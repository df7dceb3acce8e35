/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores that ofi_duo must handle. core/traits.c determines
 * them once per fabric. Differences that a call can detect are not here, such
 * as an address for which fi_av_lookup() fails (duo_av_addr).
 */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_fabric_attr;
struct fi_info;
struct fid_fabric;

/* A core that is not a provider of libfabric. */
struct duo_core_ops {
	/* As fi_getinfo(3), with the core's name in the hints. */
	int (*getinfo)(const char *node, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*open)(const struct fi_fabric_attr *attr,
		    struct fid_fabric **fabric);
	size_t addr_len;	/* of an address, bytes: no fi_av_lookup(3) */
};

struct duo_traits {
	const struct duo_core_ops *own;	/* NULL: a provider of libfabric */
	/*
	 * Addresses are the local transport's names, from fi_endpoint() on. No
	 * registry is needed, an address never names another process later, and
	 * each endpoint has a local side.
	 */
	bool peer_names;
	/*
	 * The core carries nothing: operations that the local transport rejects
	 * fail, no receive is posted to the core, and it is not polled.
	 */
	bool carries_nothing;
	/* The core matches messages in software and only in a poll: a receive
	 * may be posted just before that poll. */
	bool polled_match;
	/* fi_cancel() of an untagged directed receive crashes: util_srx.c,
	 * libfabric 2.0 to 2.6. */
	bool cannot_cancel;
	/* The completion of a peek has no source: util_srx.c. */
	bool peek_no_source;
	/*
	 * The target's CPU executes atomics, not a network card, so they are
	 * atomic with respect to near's.
	 */
	bool cpu_atomics;
	/*
	 * The core supports FI_MSG_PREFIX without need of it: ofi_duo does not
	 * request the mode, and calls_prefix.c skips the application's prefix.
	 */
	bool prefix_optional;
};

#endif /* DUO_OBJ_TRAITS_H */
