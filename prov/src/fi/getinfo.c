/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Implements fi_getinfo(): gets infos (struct fi_info) from the core, the
 * provider that ofi_duo wraps, and restricts them to the features of ofi_duo.
 */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/hints.h"
#include "base/log.h"
#include "base/params.h"
#include "core/none.h"
#include "core/traits.h"
#include "fi/api.h"
#include "obj/fabric.h"

/* Arguments of the application's call of fi_getinfo() */
struct duo_query {
	uint32_t version;
	const char *node, *service;
	uint64_t flags;
	const struct fi_info *hints;
	struct duo_opened opened; /* open objects that the hints name by fid */
};

/* Sets the core's name and FI_EP_RDM in the hints. Returns 0 or -FI_ENOMEM. */
static int duo_hints_name(struct fi_info *hints, const char *core)
{
	if (!hints->fabric_attr)
		hints->fabric_attr = calloc(1, sizeof(*hints->fabric_attr));
	if (!hints->ep_attr)
		hints->ep_attr = calloc(1, sizeof(*hints->ep_attr));
	if (!hints->fabric_attr || !hints->ep_attr)
		return -FI_ENOMEM;
	hints->ep_attr->type = FI_EP_RDM;
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(core);
	return hints->fabric_attr->prov_name ? 0 : -FI_ENOMEM;
}

/*
 * Sets all MR modes in the hints for the core if the application requests none.
 * Otherwise efa's infos would lack FI_REMOTE_READ, FI_REMOTE_WRITE, and efa's
 * MR modes. Changes nothing in these cases:
 * - The API version is below 1.5, which introduced MR modes.
 * - The hints request capabilities, but neither RMA nor atomics.
 * - The core is "none", whose infos would require all these modes.
 */
static void duo_hints_mr_modes(struct fi_info *hints, uint32_t version)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) || !hints->domain_attr ||
	    hints->domain_attr->mr_mode ||
	    (hints->caps && !(hints->caps & (FI_RMA | FI_ATOMIC))) ||
	    duo_traits_find(hints->fabric_attr->prov_name).carries_nothing)
		return;
	hints->domain_attr->mr_mode = DUO_MR_ANY;
}

/*
 * Returns the infos of the core that `hints` name. NULL: the core returns none.
 */
static struct fi_info *duo_getinfo_core(const struct duo_query *query,
					const struct fi_info *hints)
{
	const char *core = hints->fabric_attr->prov_name;
	uint64_t flags = query->flags &
			 ~(DUO_GETINFO_INTERNAL | DUO_GETINFO_CORE_ONLY |
			   DUO_GETINFO_HIDDEN);
	struct fi_info *info = NULL;
	int ret;

	if (duo_params.core)
		return duo_none_getinfo(query->node, flags, hints, &info) ?
		       NULL : info;
	flags |= strchr(core, ';') ? DUO_GETINFO_INTERNAL :
				     DUO_GETINFO_CORE_ONLY;
	duo_in_getinfo = true;
	ret = fi_getinfo(query->version, query->node, query->service, flags,
			 hints, &info);
	duo_in_getinfo = false;
	return ret ? NULL : info;
}

static bool duo_info_usable(struct fi_info *info, const struct duo_query *query,
			    bool direct)
{
	if (direct)
		return duo_traits_direct(info->fabric_attr);
	return duo_info_restrict(info) &&
	       duo_info_satisfies(info, query->hints) &&
	       duo_opened_from_core(&query->opened, query->hints, info);
}

/*
 * In the provider near, removes the core's name from the info. libfabric then
 * stores the name of the module's provider, "near".
 */
static void duo_info_drop_name(struct fi_info *info)
{
	if (!duo_params.core)
		return;
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = NULL;
}

/*
 * Appends the usable infos of `list` at *tail, and frees the others. Returns
 * the new tail. direct: false: infos that ofi_duo can wrap are usable; true:
 * only infos of fabrics that ofi_duo never wraps, such as efa-direct, are
 * usable.
 */
static struct fi_info **duo_select(struct fi_info *list,
				   const struct duo_query *query,
				   const char *core, bool direct,
				   struct fi_info **tail)
{
	struct fi_info *info, *next;

	for (info = list; info; info = next) {
		next = info->next;
		info->next = NULL;
		if (!strcasecmp(info->fabric_attr->prov_name, core) &&
		    duo_info_usable(info, query, direct)) {
			duo_info_drop_name(info);
			*tail = info;
			tail = &info->next;
		} else {
			fi_freeinfo(info);
		}
	}
	return tail;
}

static struct fi_info **duo_getinfo_wrapped(const struct duo_query *query,
					    const char *core,
					    struct fi_info **tail)
{
	struct fi_info *hints;

	if (!duo_opened_ours(&query->opened) ||
	    !duo_hints_supported(query->hints))
		return tail;
	hints = query->hints ? duo_info_to_core(query->hints) :
			       fi_allocinfo();
	if (!hints)
		return tail;
	if (!query->hints)
		hints->mode = ~FI_MSG_PREFIX;
	if (!duo_hints_name(hints, core)) {
		duo_hints_mr_modes(hints, query->version);
		duo_traits_add_bits(hints);
		duo_opened_to_core(&query->opened, hints);
		tail = duo_select(duo_getinfo_core(query, hints), query, core,
				  false, tail);
	}
	fi_freeinfo(hints);
	return tail;
}

/*
 * Appends infos of the core's fabrics that ofi_duo never wraps, such as
 * efa-direct. If the hints have a fid of ofi_duo, appends none, because the
 * core cannot use the fid. Returns the new tail.
 */
static struct fi_info **duo_getinfo_direct(const struct duo_query *query,
					   const char *core,
					   struct fi_info **tail)
{
	struct fi_info *hints;

	if (!query->hints || query->opened.fabric ||
	    !duo_traits_has_direct(core) || !duo_hints_rdm(query->hints))
		return tail;
	hints = fi_dupinfo(query->hints);
	if (!hints)
		return tail;
	if (!duo_hints_name(hints, core))
		tail = duo_select(duo_getinfo_core(query, hints), query, core,
				  true, tail);
	fi_freeinfo(hints);
	return tail;
}

/*
 * Returns the names of the requested providers, separated by commas. The caller
 * must free the text. NULL: no memory. The names come from the first of these
 * sources that exists:
 * 1. the provider name in the hints, unless it is "ofi_duo"
 * 2. FI_PROVIDER, unless it is "ofi_duo" or a list of excluded providers (^)
 * 3. the core of the fabric in the hints
 * 4. the parameter "cores"
 *
 * For 1 and 2, sets *named to true: the names are those of stacks, such as
 * "efa;ofi_duo". For 3 and 4, sets *named to false: the names are those of
 * cores, such as "efa".
 */
static char *duo_wanted(const struct duo_query *query, bool *named)
{
	const struct fi_info *hints = query->hints;
	const char *hinted = hints && hints->fabric_attr ?
			     hints->fabric_attr->prov_name : NULL;
	const char *env = getenv("FI_PROVIDER");

	*named = true;
	if (hinted && strcasecmp(hinted, DUO_NAME))
		return strdup(hinted);
	if (env && *env && *env != '^' && strcasecmp(env, DUO_NAME))
		return strdup(env);
	*named = false;
	return strdup(query->opened.fabric ? query->opened.fabric->core_name :
					     duo_params.cores);
}

/*
 * Returns the name of the core for `stack`, one of the names in the result of
 * duo_wanted(). `named` is *named of duo_wanted(). The caller must free the
 * result. NULL: this module does not provide `stack` (it provides
 * "CORE;ofi_duo"; the module near provides "near"), or there is no memory.
 */
static char *duo_wanted_core(const char *stack, bool named)
{
	if (!named)
		return strdup(stack);
	if (!duo_params.core)
		return duo_core_name(stack);
	return strcasecmp(stack, duo_prov.name) ? NULL :
						  strdup(duo_params.core);
}

/*
 * Appends infos of the core's fabrics that ofi_duo wraps. If there are none,
 * appends infos of the core's other fabrics. Returns the new tail.
 */
static struct fi_info **duo_getinfo_one(const struct duo_query *query,
					const char *core,
					struct fi_info **tail)
{
	struct fi_info **end = tail;

	if (query->opened.fabric &&
	    strcasecmp(query->opened.fabric->core_name, core))
		return tail;
	/*
	 * If the hints name the fabric efa-direct, ofi_duo must not return
	 * infos of other fabrics. duo_getinfo_wrapped() would append such
	 * infos, because efa ignores the name "efa-direct" in hints.
	 */
	if (!query->hints || !duo_traits_direct(query->hints->fabric_attr))
		end = duo_getinfo_wrapped(query, core, tail);
	return end == tail ? duo_getinfo_direct(query, core, tail) : end;
}

int duo_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	const struct duo_query query = { duo_api_version(version), node,
					 service, flags, hints,
					 duo_opened_hinted(hints) };
	const char *between = duo_params.core ? ",;" : ",";
	char *wanted, *word, *core, *save = NULL;
	struct fi_info **tail = info;
	bool named;

	*info = NULL;
	if (duo_in_getinfo)
		return -FI_ENODATA;
	wanted = duo_wanted(&query, &named);
	if (!wanted)
		return -FI_ENOMEM;

	for (word = strtok_r(wanted, between, &save); word;
	     word = strtok_r(NULL, between, &save)) {
		core = duo_wanted_core(word, named);
		if (core && duo_traits_allowed(core))
			tail = duo_getinfo_one(&query, core, tail);
		free(core);
	}
	free(wanted);
	return *info ? 0 : -FI_ENODATA;
}
