/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Differences between cores, found once per fabric by core/traits.c, unless a
 * call's result shows them, as a failing fi_av_lookup() (duo_av_addr()).
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
	 * Its addresses are the local transport's names, from fi_endpoint() on:
	 * no registry, no second process at an address, always a local side.
	 */
	bool peer_names;
	/* Carries no data: gets no receives, and no operations near rejects. */
	bool carries_nothing;
	/* Matches only in polls: a receive may be posted just before one. */
	bool polled_match;
	/* fi_cancel() of untagged receives with a source crashes util_srx.c. */
	bool cannot_cancel;
	/* A peek's completion by util_srx.c of libfabric has no source. */
	bool peek_no_source;
	/* The target's CPU executes atomics: they are atomic to near's. */
	bool cpu_atomics;
	/* FI_MSG_PREFIX is optional: fi/calls_prefix.c skips prefixes. */
	bool prefix_optional;
};

#endif /* DUO_OBJ_TRAITS_H */
