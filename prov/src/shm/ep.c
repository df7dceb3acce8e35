/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* libfabric's shm as a peer provider: fabric, domain, and endpoint. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/hints.h"
#include "base/params.h"
#include "base/util.h"
#include "obj/cntr.h"
#include "obj/domain.h"
#include "obj/fabric.h"
#include "shm/shm.h"

/*
 * number of polls of shm before its endpoint is closed: fi_close() drops the
 * operations that are still queued in shm
 */
#define DUO_SHM_DRAIN 64

static const int duo_shm_signals[] = { SIGBUS, SIGSEGV, SIGTERM, SIGINT };
#define DUO_SIGNAL_COUNT (sizeof(duo_shm_signals) / sizeof(int))

/* Returns the reason why shm cannot be used; NULL: it can. */
static const char *duo_shm_excluded(void)
{
	const char *env = getenv("FI_PROVIDER");

	if (env && *env == '^' && strstr(env, "shm"))
		return "FI_PROVIDER excludes shm";
	env = getenv("FI_HOOK");
	if (env && *env)
		return "hooks (FI_HOOK) cannot forward peer objects";
	/* the structures of fi_peer(3) differ between versions */
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
	/* ofi_duo serializes all calls to shm */
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup("shm");
	if (hints->fabric_attr->prov_name)
		return hints;
	/* without the name, fi_getinfo() could return any provider's info */
	fi_freeinfo(hints);
	return NULL;
}

/*
 * Warns that fi_getinfo() has returned no info of shm. The probable reason is
 * that /dev/shm is too small.
 */
static void duo_shm_warn_missing(int ret)
{
	struct statvfs st = { 0 };

	statvfs(DUO_DEV_SHM, &st);
	DUO_WARN(FABRIC, "shm provider: %s; the core carries all messages. shm "
		 "requires %ld MiB in " DUO_DEV_SHM ", %" PRIu64 " KiB are "
		 "free. " DUO_ENLARGE_DEV_SHM ", or use a libfabric with the "
		 "provider; FI_LOG_LEVEL=info prints details\n",
		 fi_strerror(-ret),
		 (DUO_SHM_REGION >> 20) * sysconf(_SC_NPROCESSORS_ONLN),
		 (uint64_t) st.f_bavail * st.f_bsize / 1024);
}

/*
 * Returns the info with which ofi_duo opens shm. NULL: shm cannot be used, and
 * this function has logged a warning; or there is no memory.
 */
static struct fi_info *duo_shm_getinfo(void)
{
	struct fi_info *hints, *info = NULL;
	const char *why = duo_shm_excluded();
	int ret;

	if (why) {
		DUO_WARN(FABRIC, "%s; the core carries all messages. Remove "
			 "the cause, or set FI_OFI_DUO_LOCAL=near\n", why);
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
	if (ret) {
		duo_shm_warn_missing(ret);
		return NULL;
	}
	/* with this value and FI_THREAD_DOMAIN, shm takes no lock */
	info->domain_attr->control_progress = FI_PROGRESS_CONTROL_UNIFIED;
	/* larger queues do not fit in DUO_SHM_REGION */
	info->tx_attr->size = duo_min(info->tx_attr->size, DUO_LOCAL_QUEUE);
	info->rx_attr->size = duo_min(info->rx_attr->size, DUO_LOCAL_QUEUE);
	return info;
}

static int duo_shm_fabric_open(struct duo_fabric *fabric)
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
	return ret;
}

static int duo_shm_domain_open(struct duo_domain *domain)
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

/*
 * Opens shm's endpoint. shm then replaces the handlers of some signals, so this
 * function restores the application's handlers.
 */
static int duo_shm_endpoint(struct duo_ep *ep, struct fi_info *info)
{
	struct sigaction saved[DUO_SIGNAL_COUNT];
	size_t i;
	int ret;

	for (i = 0; i < DUO_SIGNAL_COUNT; i++)
		sigaction(duo_shm_signals[i], NULL, &saved[i]);
	ret = fi_endpoint(ep->domain->path_domain[FI_DUO_LOCAL], info,
			  &ep->path_ep[FI_DUO_LOCAL], NULL);
	for (i = 0; i < DUO_SIGNAL_COUNT; i++)
		sigaction(duo_shm_signals[i], &saved[i], NULL);
	return ret;
}

static int duo_shm_open_ep(struct duo_ep *ep)
{
	struct fi_info *info = fi_dupinfo(ep->domain->fabric->shm_info);
	int ret;

	if (!info)
		return -FI_ENOMEM;
	info->tx_attr->op_flags = ep->tx.op_flags &
				  (FI_COMPLETION | FI_INJECT_COMPLETE |
				   FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE);
	info->rx_attr->op_flags = 0;
	ret = duo_shm_endpoint(ep, info);
	fi_freeinfo(info);
	return ret;
}

/*
 * Opens a shared receive context (SRX) of shm, and binds it to shm's endpoint
 * at once. No other SRX may be opened in between, because shm's domain refers
 * only to the SRX that was opened last.
 */
static int duo_shm_bind_srx(struct duo_ep *ep)
{
	struct fi_rx_attr attr = {
		.op_flags = FI_PEER,
		.size = DUO_LOCAL_QUEUE,
		.iov_limit = DUO_IOV_LIMIT,
	};
	struct fi_peer_srx_context peer = {
		.size = sizeof(peer),
		.srx = &ep->peer_srx,
	};
	int ret;

	ret = fi_srx_context(ep->domain->path_domain[FI_DUO_LOCAL], &attr,
			     &ep->shm->srx, &peer);
	return ret ? ret : fi_ep_bind(ep->path_ep[FI_DUO_LOCAL],
				      &ep->shm->srx->fid, 0);
}

static int duo_shm_bind(struct duo_ep *ep)
{
	struct fid_ep *shm = ep->path_ep[FI_DUO_LOCAL];
	int ret = fi_ep_bind(shm, &ep->shm->av->fid, 0);

	if (!ret)
		ret = fi_ep_bind(shm, &ep->tx_cq->path_cq[FI_DUO_LOCAL]->fid,
				 ep->tx.bind_flags);
	return ret ? ret : fi_ep_bind(shm,
				      &ep->rx_cq->path_cq[FI_DUO_LOCAL]->fid,
				      FI_RECV);
}

static int duo_shm_enable(struct duo_ep *ep)
{
	struct fid_ep *shm = ep->path_ep[FI_DUO_LOCAL];
	char *name = ep->publication.peer_name;
	int ret;

	ret = fi_setname(&shm->fid, name, DUO_TRANSPORT_NAME_MAX);
	if (ret)
		return ret;
	/*
	 * shm creates the region in fi_enable(), and writes to pages before
	 * duo_shm_allocate() can allocate them. If other files have used the
	 * space since duo_shm_check_space(), SIGBUS may kill the process. This
	 * cannot be avoided, and also happens without ofi_duo.
	 */
	ret = fi_enable(shm);
	return ret ? ret : duo_shm_allocate(name);
}

static void duo_shm_peer_close(struct duo_ep *ep)
{
	struct duo_shm *shm = ep->shm;

	if (!shm)
		return;
	if (ep->path_ep[FI_DUO_LOCAL])
		fi_close(&ep->path_ep[FI_DUO_LOCAL]->fid);
	ep->path_ep[FI_DUO_LOCAL] = NULL;
	if (shm->srx)
		fi_close(&shm->srx->fid);
	if (shm->av)
		fi_close(&shm->av->fid);
	ep->shm = NULL;
	free(shm);
}

static int duo_shm_count(const struct duo_cntr_bind *bind)
{
	if (!(bind->flags & FI_SEND))
		return 0;
	return fi_ep_bind(bind->ep->path_ep[FI_DUO_LOCAL],
			  &bind->cntr->path_cntr[FI_DUO_LOCAL]->fid, FI_SEND);
}

static int duo_shm_bind_cntrs(struct duo_ep *ep)
{
	const struct duo_cntr_bind *bind;
	int ret = 0;

	LIST_FOREACH(bind, &ep->cntrs, ep_link)
		ret = ret ? ret : duo_shm_count(bind);
	return ret;
}

/*
 * Adds 1 to the number of endpoints over shm that the registry counts. Returns
 * 0; -EUSERS: the number is now above DUO_SHM_ENDPOINTS; or another error.
 */
static int duo_shm_count_ep(uint64_t compat_id)
{
	int count, dir = duo_registry_open(duo_params.registry_dir, NULL);

	if (dir < 0)
		return dir;
	count = duo_registry_count_ep(dir, compat_id);
	close(dir);
	if (count < 0)
		return count;
	return count > DUO_SHM_ENDPOINTS ? -EUSERS : 0;
}

static int duo_shm_peer_open(struct duo_ep *ep)
{
	int ret = duo_shm_check_space();

	if (!ret)
		ret = duo_shm_publish(&ep->publication);
	if (!ret)
		ret = duo_shm_count_ep(ep->publication.compat_id);
	if (ret)
		return ret;
	ep->shm = calloc(1, sizeof(*ep->shm));
	if (!ep->shm)
		return -FI_ENOMEM;
	duo_shm_srx_init(ep);
	return 0;
}

static int duo_shm_peer_enable(struct duo_ep *ep)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	int ret = fi_av_open(ep->domain->path_domain[FI_DUO_LOCAL], &attr,
			     &ep->shm->av, NULL);

	if (!ret)
		ret = duo_shm_open_ep(ep);
	if (!ret)
		ret = duo_shm_bind_cntrs(ep);
	if (!ret)
		ret = duo_shm_bind_srx(ep);
	if (!ret)
		ret = duo_shm_bind(ep);
	return ret ? ret : duo_shm_enable(ep);
}

static void duo_shm_peer_drain(struct duo_ep *ep)
{
	int i;

	for (i = 0; ep->path_ep[FI_DUO_LOCAL] && i < DUO_SHM_DRAIN; i++)
		fi_cq_read(ep->tx_cq->path_cq[FI_DUO_LOCAL], NULL, 0);
}

const struct duo_transport duo_transport_shm = {
	.name = "shm",
	.takes = DUO_SHM_TAKES,
	.exclusive_start = true,
	.fabric_open = duo_shm_fabric_open,
	.domain_open = duo_shm_domain_open,
	.cq_open = duo_shm_cq_open,
	.cntr_open = duo_shm_cntr_open,
	.open = duo_shm_peer_open,
	.enable = duo_shm_peer_enable,
	.count = duo_shm_count,
	.poll = duo_shm_poll,
	.oversubscribed = duo_shm_oversubscribed,
	.drain = duo_shm_peer_drain,
	.close = duo_shm_peer_close,
	.start = duo_shm_start,
	.connect = duo_shm_connect,
	.exists = duo_shm_exists,
	.reap = duo_shm_reap,
	.sweep = duo_shm_sweep,
};
