/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Is there a shm provider that can be our peer? Its fabric and domain. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/getinfo.h"
#include "base/log.h"
#include "obj/domain.h"
#include "obj/fabric.h"
#include "shm/shm.h"

/*
 * What makes the shm provider unusable as a peer although it is there:
 * FI_PROVIDER may exclude it, hooks lose the peer contexts, and structures of
 * another version differ.
 */
static const char *duo_shm_excluded(void)
{
	const char *env = getenv("FI_PROVIDER");

	if (env && *env == '^' && strstr(env, "shm"))
		return "FI_PROVIDER excludes shm";
	env = getenv("FI_HOOK");
	if (env && *env)
		return "hooks (FI_HOOK) cannot forward peer objects";
	if (fi_version() != DUO_FI_VERSION)
		return "libfabric's shm is of another version than ofi_duo was "
		       "built for";
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

	if (ret == -FI_ENODATA && !statvfs(DUO_DEV_SHM, &st) &&
	    (uint64_t) st.f_bavail * st.f_bsize < want)
		DUO_WARN(FABRIC, "shm provider: %" PRIu64 " KiB are free in "
			 "%s, shm wants %" PRIu64 " (%d for each processor); "
			 "the core carries all messages. " DUO_ENLARGE_DEV_SHM
			 "\n", (uint64_t) st.f_bavail * st.f_bsize / 1024,
			 DUO_DEV_SHM, want / 1024, DUO_SHM_REGION / 1024);
	else
		DUO_WARN(FABRIC, "shm provider: %s; the core carries all "
			 "messages. Use a libfabric that has it; if it has, "
			 "room was short for a moment: " DUO_ENLARGE_DEV_SHM
			 "; FI_LOG_LEVEL=info tells\n",
			 fi_strerror(-ret));
}

/* The shm provider as a peer, or NULL with a warning. */
static struct fi_info *duo_shm_getinfo(void)
{
	struct fi_info *hints, *info = NULL;
	const char *why = duo_shm_excluded();
	int ret;

	if (why) {
		DUO_WARN(FABRIC, "%s; the core carries all messages. Change "
			 "that\n", why);
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
		/* room.c knows the room that these need */
		if (info->tx_attr->size > DUO_SHM_QUEUE)
			info->tx_attr->size = DUO_SHM_QUEUE;
		if (info->rx_attr->size > DUO_SHM_QUEUE)
			info->rx_attr->size = DUO_SHM_QUEUE;
		return info;
	}
	duo_shm_warn_missing(ret);
	return NULL;
}

int duo_shm_fabric_open(struct duo_fabric *fabric)
{
	int ret;

	fabric->shm_info = duo_shm_getinfo();
	if (!fabric->shm_info)
		return -FI_ENODATA;
	ret = fi_fabric(fabric->shm_info->fabric_attr,
			&fabric->path_fabric[FI_DUO_LOCAL], NULL);
	if (!ret)
		return 0;
	DUO_WARN(FABRIC, "shm fabric: %s; the core %s carries all messages\n",
		 fi_strerror(-ret), fabric->core_name);
	fabric->path_fabric[FI_DUO_LOCAL] = NULL;
	fi_freeinfo(fabric->shm_info);
	fabric->shm_info = NULL;
	return ret;
}

int duo_shm_domain_open(struct duo_domain *domain)
{
	struct duo_fabric *fabric = domain->fabric;
	int ret = fi_domain(fabric->path_fabric[FI_DUO_LOCAL],
			    fabric->shm_info,
			    &domain->path_domain[FI_DUO_LOCAL], NULL);

	if (!ret)
		return 0;
	domain->path_domain[FI_DUO_LOCAL] = NULL;
	DUO_WARN(DOMAIN, "shm domain: %s; the core %s carries all messages\n",
		 fi_strerror(-ret), fabric->core_name);
	return ret;
}
