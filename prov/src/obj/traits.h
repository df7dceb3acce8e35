/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What a core does differently from others, as far as it concerns us; found
 * once per fabric, by core/traits.c. What can be found by trying is not here:
 * which addresses it does not look up (duo_av_addr).
 */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_fabric_attr;
struct fi_info;
struct fid_fabric;

/* A core that is not of libfabric's. */
struct duo_core_ops {
	/* fi_getinfo(3); the hints name it. */
	int (*getinfo)(const char *node, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*open)(const struct fi_fabric_attr *attr,
		    struct fid_fabric **fabric);
	/* Bytes of an address. fi_av_lookup(3) is not to be had. */
	size_t addr_len;
};

struct duo_traits {
	const struct duo_core_ops *own;	/* NULL: it is libfabric's */
	/*
	 * It has no names of its own: an address is what the local peer calls
	 * an endpoint, from fi_endpoint on. No registry is needed, no address
	 * ever names another process, and no endpoint is without a local side.
	 */
	bool peer_names;
	/*
	 * It carries nothing: what the local peer cannot do fails, receives
	 * are never posted to it, and it is never worth a poll.
	 */
	bool carries_nothing;
	/* It looks for receives in software, and only while it is polled: it
	 * needs one when it is polled, not before. */
	bool polled_match;
	/* fi_cancel of an untagged receive that names its source crashes:
	 * util_srx.c, libfabric 2.0 to 2.6. */
	bool cannot_cancel;
	/* A peek is reported without its source: util_srx.c. */
	bool peek_no_source;
	/*
	 * Atomics are done by the target's processor, by instructions that
	 * near's are atomic to; not by a network card.
	 */
	bool cpu_atomics;
	/*
	 * It offers FI_MSG_PREFIX and needs no prefix: ofi_duo does not request
	 * the mode of it, and calls_prefix.c skips the application's prefix.
	 */
	bool prefix_optional;
};

#endif /* DUO_OBJ_TRAITS_H */
