/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What the entry files have in common. A module is all of the objects and one
 * entry file, which has the one exported symbol: entry_duo.c has a core by the
 * fabric's name, entry_near.c one that carries nothing. Two modules of one
 * process share nothing: all other symbols are hidden.
 *
 * Cost: once, when libfabric loads the module. No lock.
 */
#ifndef DUO_ENTRY_H
#define DUO_ENTRY_H

#include "fi/api.h"
#include "base/log.h"
#include "base/params.h"
#include "base/abi.h"
#include "base/param.h"

#define DUO_PARAM_MAX 1000000	/* of polls and microseconds */

typedef int (*duo_getinfo_fn)(uint32_t version, const char *node,
			      const char *service, uint64_t flags,
			      const struct fi_info *hints,
			      struct fi_info **info);

struct fi_provider *fi_prov_ini(void);

static inline void duo_entry_cleanup(void)
{
}

static inline struct fi_provider *duo_entry(duo_getinfo_fn getinfo)
{
	duo_prov.getinfo = getinfo;
	duo_prov.fabric = duo_fabric_open;
	duo_prov.cleanup = duo_entry_cleanup;
	return &duo_prov;
}

/* Any libfabric with our public structures will do. */
static inline bool duo_entry_version_ok(void)
{
	uint32_t running = fi_version();

	if (duo_abi_same(DUO_FI_VERSION, running))
		return true;
	DUO_WARN(CORE, "built for libfabric %d.%d, loaded by %d.%d: not "
		 "offered. Build it against the libfabric that runs\n",
		 FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_MAJOR(running),
		 FI_MINOR(running));
	return false;
}

/* One in so many empty reads yields; 0: none. */
static inline void duo_param_yield(const char *name)
{
	size_t polls = (size_t) duo_params.yield_mask + 1;

	if (!duo_param_number(&duo_prov, name, &polls))
		return;
	if (polls > DUO_PARAM_MAX)
		polls = DUO_PARAM_MAX;
	duo_params.yield_mask = duo_param_mask(polls);
	duo_params.yield_always = true;
}

#endif /* DUO_ENTRY_H */
