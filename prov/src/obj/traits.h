/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores that ofi_duo must handle. core/traits.c finds them
 * once for each fabric. Differences that a call's result shows, such as a
 * failing fi_av_lookup(), are not here.
 */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_fabric_attr;
struct fi_info;
struct fid_fabric;

/* Calls of a core that is not a provider of libfabric. */
struct duo_core_ops {
	/* fi_getinfo(3); the hints must name this core. */
	int (*getinfo)(const char *node, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*open)(const struct fi_fabric_attr *attr,
		    struct fid_fabric **fabric);
	size_t addr_len; /* length of an address, bytes; no fi_av_lookup(3) */
};

struct duo_traits {
	const struct duo_core_ops *own;	/* NULL: a provider of libfabric */
	/*
	 * The core's addresses are the names of the local transport. An
	 * endpoint has its name from fi_endpoint() on. So each endpoint has a
	 * local side, no registry is needed, and an address never passes to
	 * another process.
	 */
	bool peer_names;
	/*
	 * The core carries no data. So receives are not posted to it, and
	 * operations that the local transport rejects fail.
	 */
	bool carries_nothing;
	/*
	 * The core matches messages only in polls, so it is early enough to
	 * post a receive just before a poll.
	 */
	bool polled_match;
	/*
	 * fi_cancel() of an untagged receive that names its source crashes in
	 * util_srx.c of libfabric 2.0 to 2.6.
	 */
	bool cannot_cancel;
	/* A peek's completion by util_srx.c of libfabric has no source. */
	bool peek_no_source;
	/*
	 * The target's CPU executes the core's atomics, so that the core's and
	 * near's are atomic to each other.
	 */
	bool cpu_atomics;
	/*
	 * The core works with and without FI_MSG_PREFIX. It is opened without
	 * it, and fi/calls_prefix.c skips the prefix.
	 */
	bool prefix_optional;
};

#endif /* DUO_OBJ_TRAITS_H */
