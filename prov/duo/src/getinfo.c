/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_getinfo: asks the core provider and restricts what it says. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "duo.h"

/*
 * Internal flags of libfabric, unchanged from 1.17 to 2.6; in-tree providers
 * ask for each other with them. All skip the filter of FI_PROVIDER, which
 * would drop a bare "efa" under FI_PROVIDER="efa;ofi_duo".
 */
#define DUO_GETINFO_INTERNAL (1ULL << 58)	/* any layering */
#define DUO_GETINFO_CORE_ONLY (1ULL << 59)	/* no utility provider */
#define DUO_GETINFO_HIDDEN (1ULL << 60)		/* hidden ones as well */

/* fi_getinfo of the core calls every provider, us as well. */
static __thread bool duo_in_getinfo;

static bool duo_core_allowed(const char *core)
{
	return strcasecmp(core, "shm") && strcasecmp(core, "sm2") &&
	       strcasecmp(core, "off_coll") && !strcasestr(core, "lnx") &&
	       !strcasestr(core, DUO_NAME);
}

static int duo_getinfo_core(uint32_t version, const char *node,
			    const char *service, uint64_t flags,
			    const struct fi_info *hints, const char *core,
			    struct fi_info **info)
{
	struct fi_info *core_hints;
	int ret = -FI_ENOMEM;

	core_hints = hints ? duo_info_to_core(hints) : fi_allocinfo();
	if (!core_hints)
		return -FI_ENOMEM;
	if (!core_hints->fabric_attr)
		core_hints->fabric_attr =
			calloc(1, sizeof(*core_hints->fabric_attr));
	if (!core_hints->ep_attr)
		core_hints->ep_attr = calloc(1, sizeof(*core_hints->ep_attr));
	if (!core_hints->fabric_attr || !core_hints->ep_attr)
		goto free_hints;
	core_hints->ep_attr->type = FI_EP_RDM;
	if (!hints)
		core_hints->mode = ~FI_MSG_PREFIX;
	free(core_hints->fabric_attr->prov_name);
	core_hints->fabric_attr->prov_name = strdup(core);
	if (!core_hints->fabric_attr->prov_name)
		goto free_hints;
	duo_info_ask_order(core_hints);

	flags &= ~(DUO_GETINFO_INTERNAL | DUO_GETINFO_CORE_ONLY |
		   DUO_GETINFO_HIDDEN);
	flags |= strchr(core, ';') ? DUO_GETINFO_INTERNAL :
				     DUO_GETINFO_CORE_ONLY;
	duo_in_getinfo = true;
	ret = fi_getinfo(version, node, service, flags, core_hints, info);
	duo_in_getinfo = false;
free_hints:
	fi_freeinfo(core_hints);
	return ret;
}

static bool duo_info_usable(struct fi_info *info, const struct fi_info *hints,
			    const char *core)
{
	return !strcasecmp(info->fabric_attr->prov_name, core) &&
	       !duo_info_restrict(info) && !duo_info_satisfies(info, hints);
}

/* Drops what we cannot use; the rest is appended at *tail. */
static struct fi_info **duo_getinfo_select(struct fi_info *list,
					   const struct fi_info *hints,
					   const char *core,
					   struct fi_info **tail)
{
	struct fi_info *info, *next;

	for (info = list; info; info = next) {
		next = info->next;
		info->next = NULL;
		if (duo_info_usable(info, hints, core)) {
			*tail = info;
			tail = &info->next;
		} else {
			fi_freeinfo(info);
		}
	}
	return tail;
}

/*
 * The provider stacks that are asked for, separated by commas, to be freed:
 * what the hints name; else what FI_PROVIDER names; else the parameter
 * "cores".
 */
static char *duo_wanted(const struct fi_info *hints, bool *named)
{
	const char *hinted = hints && hints->fabric_attr ?
			     hints->fabric_attr->prov_name : NULL;
	const char *env = getenv("FI_PROVIDER");

	*named = true;
	if (hinted && strcasecmp(hinted, DUO_NAME))
		return strdup(hinted);
	if (env && *env && *env != '^' && strcasecmp(env, DUO_NAME))
		return strdup(env);
	*named = false;
	return strdup(duo_params.cores);
}

int duo_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	struct fi_info *list, **tail = info;
	char *wanted, *word, *core, *save = NULL;
	bool named;

	*info = NULL;
	if (duo_in_getinfo || duo_hints_supported(hints))
		return -FI_ENODATA;
	wanted = duo_wanted(hints, &named);
	if (!wanted)
		return -FI_ENOMEM;

	for (word = strtok_r(wanted, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		core = named ? duo_core_name(word) : strdup(word);
		list = NULL;
		if (core && duo_core_allowed(core) &&
		    !duo_getinfo_core(version, node, service, flags, hints,
				      core, &list))
			tail = duo_getinfo_select(list, hints, core, tail);
		free(core);
	}
	free(wanted);
	return *info ? 0 : -FI_ENODATA;
}

/*
 * What makes the shm provider unusable as a peer although it is there:
 * FI_PROVIDER may exclude it, and hooks lose the peer contexts.
 */
static const char *duo_shm_excluded(void)
{
	const char *env = getenv("FI_PROVIDER");

	if (env && *env == '^' && strstr(env, "shm"))
		return "FI_PROVIDER excludes shm";
	env = getenv("FI_HOOK");
	if (env && *env)
		return "hooks (FI_HOOK) cannot forward peer objects";
	return NULL;
}

static struct fi_info *duo_shm_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	hints->mode = ~0ULL;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	hints->domain_attr->caps = FI_LOCAL_COMM | FI_PEER;
	/* we serialise all calls into shm */
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup("shm");
	return hints;
}

/*
 * shm is offered only if its directory has room for an endpoint of each
 * processor; but whatever it says, libfabric makes -FI_ENODATA of it.
 */
static void duo_shm_warn_missing(int ret)
{
	uint64_t want = (uint64_t) DUO_SHM_REGION *
			sysconf(_SC_NPROCESSORS_ONLN);
	struct statvfs st;

	if (ret == -FI_ENODATA && !statvfs(DUO_SHM_DIR, &st) &&
	    (uint64_t) st.f_bavail * st.f_bsize < want)
		DUO_WARN(FABRIC, "shm provider: %" PRIu64 " KiB are free in "
			 "%s, shm wants %" PRIu64 " (%d for each processor); "
			 "the core carries all messages. " DUO_SHM_ENLARGE
			 "\n", (uint64_t) st.f_bavail * st.f_bsize / 1024,
			 DUO_SHM_DIR, want / 1024, DUO_SHM_REGION / 1024);
	else
		DUO_WARN(FABRIC, "shm provider: %s; the core carries all "
			 "messages. Use a libfabric that has it; "
			 "FI_LOG_LEVEL=info tells why it refuses\n",
			 fi_strerror(-ret));
}

/* The shm provider as a peer, or NULL with a warning. */
struct fi_info *duo_shm_getinfo(void)
{
	struct fi_info *hints, *info = NULL;
	const char *why = duo_shm_excluded();
	int ret;

	if (why) {
		DUO_WARN(FABRIC, "%s; the core carries all messages. Change "
			 "or unset it\n", why);
		return NULL;
	}
	hints = duo_shm_hints();
	if (!hints)
		return NULL;
	duo_in_getinfo = true;
	ret = fi_getinfo(DUO_FI_VERSION, NULL, NULL, DUO_GETINFO_HIDDEN, hints,
			 &info);
	duo_in_getinfo = false;
	fi_freeinfo(hints);
	if (!ret) {
		/* with FI_THREAD_DOMAIN, shm then takes no lock at all */
		info->domain_attr->control_progress =
			FI_PROGRESS_CONTROL_UNIFIED;
		/* ep_shm.c knows the room that these need */
		if (info->tx_attr->size > DUO_SHM_QUEUE)
			info->tx_attr->size = DUO_SHM_QUEUE;
		if (info->rx_attr->size > DUO_SHM_QUEUE)
			info->rx_attr->size = DUO_SHM_QUEUE;
		return info;
	}
	duo_shm_warn_missing(ret);
	return NULL;
}
