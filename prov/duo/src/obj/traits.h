/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What a core does differently from others, as far as it concerns us; found
 * once per fabric, by core/traits.c. What can be found by trying is not here:
 * which addresses it does not look up (av->kept), and, but where the trial
 * itself crashes, whether its AVs take several endpoints (domain->av_single).
 */
#ifndef DUO_OBJ_TRAITS_H
#define DUO_OBJ_TRAITS_H

#include <stdbool.h>

struct duo_traits {
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
	/* Its AVs take several endpoints. Not to be tried: under
	 * FI_THREAD_COMPLETION, closing one that was not enabled crashes. */
	bool shares_avs;
};

#endif /* DUO_OBJ_TRAITS_H */
