/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The shm side of an endpoint: opened as a whole when the endpoint is
 * enabled, and published in the registry once it works. If any step fails,
 * the endpoint lives without it and the core carries everything.
 *
 * All of it runs between duo_registry_lock() and duo_registry_unlock(), so
 * that processes starting together do not promise each other's room.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "duo.h"

#define DUO_SHM_DRAIN 64		/* polls of shm before it is closed */

/* shm only maps its region: to use pages that are not there is SIGBUS. */
static int duo_shm_check_room(void)
{
	int ret, fd = open(DUO_SHM_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	ret = posix_fallocate(fd, 0, DUO_SHM_REGION);
	close(fd);
	return -ret;
}

/* Gives the region of an enabled endpoint its pages. */
static int duo_shm_allocate(const char *name)
{
	struct stat st;
	int ret, fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : -posix_fallocate(fd, 0, st.st_size);
	close(fd);
	return ret;
}

static const int duo_shm_signals[] = { SIGBUS, SIGSEGV, SIGTERM, SIGINT };
#define DUO_SIGNAL_COUNT (sizeof(duo_shm_signals) / sizeof(int))

/* shm's endpoint installs signal handlers; the application keeps its own. */
static int duo_shm_endpoint(struct duo_ep *ep, struct fi_info *info)
{
	struct sigaction saved[DUO_SIGNAL_COUNT];
	size_t i;
	int ret;

	for (i = 0; i < DUO_SIGNAL_COUNT; i++)
		sigaction(duo_shm_signals[i], NULL, &saved[i]);
	ret = fi_endpoint(ep->domain->path_domain[FI_DUO_SHM], info,
			  &ep->path_ep[FI_DUO_SHM], NULL);
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
	info->tx_attr->op_flags = ep->tx_op_flags &
				  (FI_COMPLETION | FI_INJECT_COMPLETE |
				   FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE);
	info->rx_attr->op_flags = 0;
	ret = duo_shm_endpoint(ep, info);
	fi_freeinfo(info);
	return ret;
}

/* The srx of a domain of shm is a single slot: open and bind together. */
static int duo_shm_bind_srx(struct duo_ep *ep)
{
	struct fi_rx_attr attr = {
		.op_flags = FI_PEER,
		.size = 1024,
		.iov_limit = DUO_IOV_LIMIT,
	};
	struct fi_peer_srx_context peer = {
		.size = sizeof(peer),
		.srx = &ep->peer_srx,
	};
	int ret;

	ret = fi_srx_context(ep->domain->path_domain[FI_DUO_SHM], &attr,
			     &ep->shm_srx, &peer);
	if (ret)
		return ret;
	ret = fi_ep_bind(ep->path_ep[FI_DUO_SHM], &ep->shm_srx->fid, 0);
	if (ret) {
		fi_close(&ep->shm_srx->fid);
		ep->shm_srx = NULL;
	}
	return ret;
}

static int duo_shm_bind(struct duo_ep *ep)
{
	struct fid_ep *shm = ep->path_ep[FI_DUO_SHM];
	int ret;

	ret = fi_ep_bind(shm, &ep->av->path_av[FI_DUO_SHM]->fid, 0);
	if (ret)
		return ret;
	if (ep->tx_cq == ep->rx_cq && ep->tx_bind_flags == FI_TRANSMIT)
		return fi_ep_bind(shm, &ep->tx_cq->path_cq[FI_DUO_SHM]->fid,
				  FI_TRANSMIT | FI_RECV);
	ret = fi_ep_bind(shm, &ep->tx_cq->path_cq[FI_DUO_SHM]->fid,
			 ep->tx_bind_flags);
	if (ret)
		return ret;
	return fi_ep_bind(shm, &ep->rx_cq->path_cq[FI_DUO_SHM]->fid, FI_RECV);
}

static int duo_shm_enable(struct duo_ep *ep)
{
	struct fid_ep *shm = ep->path_ep[FI_DUO_SHM];
	char *name = ep->publication.shm_name;
	int ret;

	ret = fi_setname(&shm->fid, name, DUO_SHM_NAME_MAX);
	if (ret)
		return ret;
	ret = fi_enable(shm);
	if (ret)
		return ret;
	return duo_shm_allocate(name);
}

static void duo_shm_close_fids(struct duo_ep *ep)
{
	if (ep->path_ep[FI_DUO_SHM])
		fi_close(&ep->path_ep[FI_DUO_SHM]->fid);
	ep->path_ep[FI_DUO_SHM] = NULL;
	if (ep->shm_srx)
		fi_close(&ep->shm_srx->fid);
	ep->shm_srx = NULL;
}

static int duo_shm_reserve(struct duo_ep *ep)
{
	uint8_t addr[DUO_ADDR_MAX];
	size_t len = sizeof(addr);
	int ret;

	ret = fi_getname(&ep->path_ep[FI_DUO_CORE]->fid, addr, &len);
	if (ret)
		return ret;
	ret = duo_shm_check_room();
	if (ret)
		return ret;
	return duo_registry_reserve(duo_params.registry_dir, addr, len,
				    ep->domain->sockaddr_len > 0,
				    &ep->publication);
}

static int duo_shm_open(struct duo_ep *ep)
{
	int ret;

	ret = duo_shm_reserve(ep);
	if (ret)
		return ret;
	ret = duo_shm_open_ep(ep);
	if (ret)
		goto withdraw;
	ret = duo_shm_bind_srx(ep);
	if (!ret)
		ret = duo_shm_bind(ep);
	if (!ret)
		ret = duo_shm_enable(ep);
	if (!ret)
		ret = duo_registry_ready(&ep->publication);
	if (!ret)
		return 0;

	duo_shm_close_fids(ep);
withdraw:
	duo_registry_withdraw(&ep->publication);
	return ret;
}

static const char *duo_shm_remedy(int ret)
{
	switch (-ret) {
	case FI_ENOSPC:
		return DUO_SHM_ENLARGE;
	case FI_EOPNOTSUPP:
		return "Mount /proc, and a tmpfs on " DUO_SHM_DIR;
	case FI_EADDRINUSE:
		return "A live process has this address, or else the file in "
		       "its place is no record: remove it";
	case FI_ETIMEDOUT:
		return "A process that has stopped holds the registry's lock: "
		       "end it";
	case FI_EMFILE:
	case ENFILE:
		return "Raise the limit of open files (ulimit -n)";
	case FI_ENOENT:
	case FI_EACCES:
	case ENOTDIR:
	case EROFS:
		return "The registry must be a directory that this user may "
		       "write (FI_OFI_DUO_REGISTRY_DIR)";
	default:
		return "FI_LOG_LEVEL=info tells more";
	}
}

/* live: endpoints of this user that have a region already. */
static void duo_shm_warn(struct duo_ep *ep, size_t live, int ret)
{
	const char *dir = duo_params.registry_dir;

	DUO_WARN(EP_CTRL, "ep %p: no shared memory (%d bytes in %s, beside "
		 "%zu live endpoints; %s %s): %s; the core %s carries all "
		 "messages. %s\n", (void *) ep, DUO_SHM_REGION, DUO_SHM_DIR,
		 live, ret == -FI_EADDRINUSE ? "record" : "registry",
		 ret == -FI_EADDRINUSE ? ep->publication.path : dir,
		 fi_strerror(-ret), ep->domain->fabric->core_name,
		 duo_shm_remedy(ret));
}

/* Other processes are waited for before the domain's lock is taken. */
static int duo_shm_open_locked(struct duo_ep *ep, size_t *live)
{
	int ret, lock = duo_registry_lock(duo_params.registry_dir);

	if (lock < 0)
		return lock;
	*live = duo_registry_sweep(duo_params.registry_dir);
	duo_lock(&ep->domain->lock);
	ret = duo_shm_open(ep);
	if (!ret)
		duo_av_add_ep(ep->av, ep);
	duo_unlock(&ep->domain->lock);
	duo_registry_unlock(lock);
	return ret;
}

void duo_ep_open_shm(struct duo_ep *ep)
{
	size_t live = 0;
	int ret;

	if (!ep->domain->path_domain[FI_DUO_SHM] || !ep->shm_permitted)
		return;
	if (!ep->tx_cq || !ep->rx_cq) {
		DUO_INFO(EP_CTRL, "ep %p: one CQ only: no shm\n", (void *) ep);
		return;
	}
	ret = duo_shm_open_locked(ep, &live);
	if (ret)
		duo_shm_warn(ep, live, ret);
}

/*
 * What we have sent must still leave: shm forgets what it has queued when it
 * is closed. The endpoint is closing, so nothing is matched meanwhile.
 */
void duo_ep_drain_shm(struct duo_ep *ep)
{
	int i;

	for (i = 0; ep->path_ep[FI_DUO_SHM] && i < DUO_SHM_DRAIN; i++)
		fi_cq_read(ep->tx_cq->path_cq[FI_DUO_SHM], NULL, 0);
}

void duo_ep_close_shm(struct duo_ep *ep)
{
	if (!ep->path_ep[FI_DUO_SHM])
		return;
	duo_registry_withdraw(&ep->publication);
	duo_av_del_ep(ep->av, ep);
	duo_av_shm_leaves(ep->domain, ep->publication.shm_name);
	duo_shm_close_fids(ep);
	duo_av_shm_left(ep->domain, ep->publication.shm_name);
	while (!TAILQ_EMPTY(&ep->held)) {
		TAILQ_REMOVE(&ep->held, TAILQ_FIRST(&ep->held), link);
		ep->domain->held--;
	}
	while (!TAILQ_EMPTY(&ep->ready)) {
		TAILQ_REMOVE(&ep->ready, TAILQ_FIRST(&ep->ready), link);
		ep->domain->held--;
	}
}
