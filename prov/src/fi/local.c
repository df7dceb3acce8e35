/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint's local side, which is its part at the local transport.
 * fi_enable() opens the local side, and publishes it in the registry. If a step
 * fails, the core carries all messages.
 *
 * Processes that start at the same time hold the lock of the registry's
 * directory in shared mode. If a process then gets -FI_ENOSPC, or
 * -FI_EADDRINUSE because the record exists, it takes the lock in exclusive
 * mode. It sweeps the directory, that is, removes the files of failed
 * processes, and tries again.
 */

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "base/log.h"
#include "base/params.h"
#include "fi/api.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "transport/transport.h"

static int duo_local_reserve(struct duo_ep *ep)
{
	uint8_t addr[DUO_ADDR_MAX];
	size_t len = sizeof(addr);
	int ret;

	ret = fi_getname(&ep->path_ep[FI_DUO_CORE]->fid, addr, &len);
	if (ret)
		return ret;
	ret = ep->domain->peer->open(ep);
	if (ret)
		return ret;
	return duo_registry_reserve(duo_params.registry_dir, addr, len,
				    ep->domain->per_net,
				    &ep->publication);
}

/*
 * Opens the local side. Writes a record to the registry. Exception: the
 * provider near needs no records, because its addresses are those of the local
 * transport. After an error, undoes its steps.
 */
static int duo_local_open(struct duo_ep *ep)
{
	int ret = ep->core.carries_nothing ? 0 : duo_local_reserve(ep);

	if (!ret)
		ret = duo_map_open(ep);
	if (!ret)
		ret = ep->domain->peer->enable(ep);
	if (!ret && !ep->core.carries_nothing)
		ret = duo_registry_ready(&ep->publication);
	if (!ret)
		return 0;

	if (!ep->core.carries_nothing)
		ep->domain->peer->close(ep);
	duo_map_close(ep);
	duo_registry_withdraw(&ep->publication);
	return ret;
}

int duo_ep_name_local(struct duo_ep *ep)
{
	struct fid *core = &ep->path_ep[FI_DUO_CORE]->fid;
	int ret;

	if (!ep->core.carries_nothing)
		return 0;
	ret = ep->domain->peer->open(ep);
	if (!ret)
		ret = fi_setname(core, ep->publication.peer_name,
				 DUO_TRANSPORT_NAME_MAX);
	if (ret)
		ep->domain->peer->close(ep);
	return ret;
}

static const char *duo_local_remedy(int ret)
{
	switch (-ret) {
	case FI_ENOSPC:
		return DUO_ENLARGE_DEV_SHM;
	case FI_EOPNOTSUPP:
		return "Mount /proc, and a tmpfs on " DUO_DEV_SHM;
	case FI_ETIMEDOUT:
	case FI_EBUSY:
		return "A stopped process of this user holds the directory's "
		       "lock: continue or end it (lsof)";
	case FI_EADDRINUSE:
		return "A live process has this address, or the file is not a "
		       "record. In the second case, remove it";
	case FI_EMFILE:
	case ENFILE:
		return "Raise the limit of open files (ulimit -n)";
	case ENOMEM:
		return "Raise the limit of address space (ulimit -v)";
	case EUSERS:
		return "This user has opened 250 endpoints over shm on this "
		       "host; closed ones count until all are closed: use near";
	case EFBIG:
		return "Raise the file size limit (ulimit -f)";
	case FI_ENOSYS:
		return "Permit memfd_create in the seccomp profile of the "
		       "container";
	case FI_EPERM:
		return "The kernel cannot distinguish this user from others: "
		       "map it in this user namespace (uid_map), or use a "
		       "registry on a file system with owners and modes";
	case FI_ENOENT:
	case FI_EACCES:
	case ENOTDIR:
	case EROFS:
		return "Let this user create directories there, or set "
		       "FI_OFI_DUO_REGISTRY_DIR";
	default:
		return "FI_LOG_LEVEL=info prints details";
	}
}

/*
 * Warns that ep has no local side. live: number of other live endpoints that a
 * sweep has found in the registry; 0: none, or no sweep
 */
static void duo_local_warn(const struct duo_ep *ep, size_t live, int ret)
{
	const struct duo_transport *peer = ep->domain->peer;
	bool record = ret == -FI_EADDRINUSE;

	DUO_WARN(EP_CTRL, "ep %p: no shared memory over %s, which needs %s "
		 "per endpoint (%s %s, %zu other live endpoints): %s; the "
		 "core %s carries all messages. %s\n", (void *) ep, peer->name,
		 peer->takes, record ? "record" : "registry",
		 record ? ep->publication.path : duo_params.registry_dir, live,
		 fi_strerror(-ret), ep->domain->fabric->core_name,
		 duo_local_remedy(ret));
}

static int duo_local_open_av(struct duo_ep *ep)
{
	int ret;

	duo_domain_lock(ep->domain);
	ret = duo_local_open(ep);
	if (!ret)
		duo_map_scan(ep);
	duo_domain_unlock(ep->domain);
	return ret;
}

/*
 * Opens the local side, with the lock of the registry's directory. In exclusive
 * mode, first sweeps the directory, and stores the number of live endpoints in
 * *live. In shared mode, continues without the lock if it does not get it in
 * time: the process that holds the lock is probably stopped. The caller must
 * not hold the domain's locks. Returns 0 or an error.
 */
static int duo_local_open_locked(struct duo_ep *ep,
				 enum duo_registry_lock_mode mode, size_t *live)
{
	bool exclusive = mode == DUO_REGISTRY_EXCLUSIVE;
	int ret, lock = duo_registry_lock(duo_params.registry_dir, mode);

	if (lock < 0 && (exclusive || lock != -FI_ETIMEDOUT))
		return lock;
	if (exclusive)
		*live = duo_registry_sweep(lock, duo_transports);
	ret = duo_local_open_av(ep);
	if (lock >= 0)
		duo_registry_unlock(lock);
	return ret;
}

/*
 * True if the local transport keeps FI_FENCE and the orders between messages
 * and RMA that ep requests, or if ep requests none of them. Otherwise warns.
 */
static bool duo_local_ordered(const struct duo_ep *ep)
{
	const struct duo_domain *domain = ep->domain;

	if (!ep->opts.mixed_order ||
	    (domain->peer == &duo_transport_near &&
	     (domain->onesided || !(ep->caps & (FI_RMA | FI_ATOMIC))) &&
	     (ep->core.cpu_atomics || !(ep->caps & FI_ATOMIC))))
		return true;
	DUO_WARN(EP_CTRL, "ep %p: FI_FENCE or an order between messages and "
		 "RMA (0x%" PRIx64 ") is in force, which %s with the core %s "
		 "does not support; the core carries all messages. Request "
		 "less in fi_info if it is not needed\n", (void *) ep,
		 ep->tx.order, domain->peer->name, domain->fabric->core_name);
	return false;
}

static bool duo_local_permitted(const struct duo_ep *ep)
{
	if (ep->opts.in_order)	/* duo_ep_set_in_order() has logged a message */
		return false;
	if (!ep->opts.local_permitted) {
		DUO_INFO(EP_CTRL, "ep %p: FI_OPT_SHARED_MEMORY_PERMITTED is "
			 "false; the core %s carries all messages\n",
			 (void *) ep, ep->domain->fabric->core_name);
		return false;
	}
	if (!ep->opts.cuda_denied || !ep->domain->device)
		return true;
	DUO_INFO(EP_CTRL, "ep %p: FI_OPT_CUDA_API_PERMITTED is false, and %s "
		 "calls CUDA for device memory; the core %s carries all "
		 "messages\n", (void *) ep, ep->domain->peer->name,
		 ep->domain->fabric->core_name);
	return false;
}

int duo_ep_open_local(struct duo_ep *ep)
{
	enum duo_registry_lock_mode mode;
	size_t live = 0;
	int ret, again;

	if (ep->core.carries_nothing)
		return duo_local_open_av(ep);
	if (!ep->domain->peer || !ep->opts.wants_local ||
	    !duo_local_permitted(ep) || !duo_local_ordered(ep))
		return 0;
	duo_registry_tidy(duo_params.registry_dir, duo_transports);
	mode = ep->domain->peer->exclusive_start ? DUO_REGISTRY_EXCLUSIVE :
						   DUO_REGISTRY_SHARED;
	ret = duo_local_open_locked(ep, mode, &live);
	if (mode == DUO_REGISTRY_SHARED &&
	    (ret == -FI_ENOSPC || ret == -FI_EADDRINUSE)) {
		again = duo_local_open_locked(ep, DUO_REGISTRY_EXCLUSIVE,
					      &live);
		if (again != -FI_ETIMEDOUT)
			ret = again;
	}
	if (ret)
		duo_local_warn(ep, live, ret);
	return 0;
}

/* Empties a list of receive entries that group->pending counts. */
static void duo_local_empty(struct duo_ep *ep, struct duo_rx_list *list)
{
	while (!TAILQ_EMPTY(list)) {
		TAILQ_REMOVE(list, TAILQ_FIRST(list), link);
		ep->group->pending--;
	}
}

void duo_ep_close_local(struct duo_ep *ep)
{
	if (!ep->path_ep[FI_DUO_LOCAL]) {
		/*
		 * fi_endpoint() of the provider near has opened near's
		 * endpoint, by duo_ep_name_local()
		 */
		if (ep->core.carries_nothing)
			ep->domain->peer->close(ep);
		return;
	}
	duo_registry_hide(&ep->publication);
	ep->domain->peer->close(ep);
	duo_registry_withdraw(&ep->publication);
	duo_map_close(ep);
	duo_local_empty(ep, &ep->rx.unresolved);
	duo_local_empty(ep, &ep->multi.ready);
}
