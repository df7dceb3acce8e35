/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/enosys.h"
#include "base/log.h"
#include "base/params.h"
#include "core/traits.h"
#include "cq/cq.h"
#include "device/device.h"
#include "fi/api.h"
#include "near/near.h"
#include "obj/domain.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "transport/near/onesided.h"

static int duo_domain_close(struct fid *fid)
{
	struct duo_domain *domain =
		duo_container_of(fid, struct duo_domain, domain_fid.fid);
	int ret;

	if (atomic_load(&domain->refs))
		return -FI_EBUSY;
	ret = fi_close(&domain->path_domain[FI_DUO_CORE]->fid);
	if (ret)
		return ret;
	duo_auto_stop(domain);
	if (domain->path_domain[FI_DUO_LOCAL])
		fi_close(&domain->path_domain[FI_DUO_LOCAL]->fid);
	duo_near_table_close(domain);
	duo_device_close(domain);
	duo_ranges_fini(&domain->group.rx_ranges);
	duo_closed_domain(domain);
	free(domain->name);
	atomic_fetch_sub(&domain->fabric->refs, 1);
	free(domain);
	return 0;
}

static int duo_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct duo_domain *domain =
		duo_container_of(fid, struct duo_domain, domain_fid.fid);

	/*
	 * the application's event queues are the core's own objects, so an
	 * event queue is bound to the core's domain
	 */
	if (!bfid || bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return fi_domain_bind(domain->path_domain[FI_DUO_CORE], bfid, flags);
}

static int duo_domain_ops_open(struct fid *fid, const char *name,
			       uint64_t flags, void **ops, void *context)
{
	int ret = duo_core_ops_open(fid, name, flags, ops, context);

	return ret ? ret : duo_traits_domain_ops(fid, name, ops);
}

static struct fi_ops duo_domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_domain_close,
	.bind = duo_domain_bind,
	.control = duo_core_control,
	.ops_open = duo_domain_ops_open,
};

static int duo_query_atomic(struct fid_domain *domain,
			    enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, uint64_t flags)
{
	return fi_query_atomic(duo_domain_of(domain)->path_domain[FI_DUO_CORE],
			       datatype, op, attr, flags);
}

static struct fi_ops_domain duo_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = duo_av_open,
	.cq_open = duo_cq_open,
	.endpoint = duo_ep_open,
	.scalable_ep = duo_no_scalable_ep,
	.cntr_open = duo_cntr_open,
	.poll_open = duo_no_poll_open,
	.stx_ctx = duo_no_stx_ctx,
	.srx_ctx = duo_no_srx_ctx,
	.query_atomic = duo_query_atomic,
	DUO_NO_XPU_CTX
};

static size_t duo_addr_len(const struct duo_fabric *fabric,
			   uint32_t addr_format)
{
	if (fabric->traits.carries_nothing)
		return sizeof(struct near_addr);
	switch (addr_format) {
	case FI_SOCKADDR_IN:
		return sizeof(struct sockaddr_in);
	case FI_SOCKADDR_IN6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/*
 * True if endpoints in different network namespaces of a host may have the same
 * address, as with IP. An endpoint then uses the local transport only with
 * endpoints in its own network namespace.
 */
static bool duo_addr_per_net(uint32_t addr_format)
{
	switch (addr_format) {
	case FI_ADDR_EFA:
	case FI_ADDR_IB_UD:
	case FI_SOCKADDR_IB:
		return false;
	default:
		return true;
	}
}

static int duo_domain_open_core(struct duo_domain *domain,
				const struct fi_info *info, void *context)
{
	struct fi_info *core = duo_info_to_core(info);
	int ret;

	if (!core)
		return -FI_ENOMEM;
	/*
	 * With FI_THREAD_SAFE the core locks its data. This is necessary in two
	 * cases:
	 * - The thread of cq/auto.c calls the core while the application does.
	 * - Reads of two CQs change the same lists of the core's domain
	 *   (shares_lists). Threads may read both CQs at the same time, because
	 *   each CQ of ofi_duo has a lock of its own.
	 */
	if (duo_auto_needed(info) ||
	    (domain->fabric->traits.shares_lists &&
	     core->domain_attr->threading != FI_THREAD_DOMAIN))
		core->domain_attr->threading = FI_THREAD_SAFE;
	ret = fi_domain(domain->fabric->path_fabric[FI_DUO_CORE], core,
			&domain->path_domain[FI_DUO_CORE], context);
	fi_freeinfo(core);
	return ret;
}

/*
 * True if endpoints with FI_HMEM can use the local transport:
 * - The local transport supports device memory.
 * - It supports all kinds of device memory that this process can have.
 *   Otherwise the core would have to carry some messages to a local peer, and
 *   all messages to a peer must take one path. If the core carries no data,
 *   this function does not check the kinds.
 * - The application registers device memory (FI_MR_HMEM).
 *
 * If one of them is not true, logs the reason and returns false.
 */
static bool duo_domain_supports_device(const struct duo_domain *domain,
				       const struct fi_info *info)
{
	const char *core_name = domain->fabric->core_name;
	const char *name = duo_device_unsupported();

	if (!domain->fabric->peer->device) {
		DUO_INFO(DOMAIN, "FI_HMEM: %s does not support device memory; "
			 "the core %s carries all messages\n",
			 domain->fabric->peer->name, core_name);
		return false;
	}
	if (name && !domain->fabric->traits.carries_nothing) {
		DUO_INFO(DOMAIN, "FI_HMEM: %s is loaded, and near cannot copy "
			 "its memory; the core %s carries all messages\n", name,
			 core_name);
		return false;
	}
	if (info->domain_attr->mr_mode & FI_MR_HMEM)
		return true;
	DUO_WARN(DOMAIN, "FI_HMEM without FI_MR_HMEM: near requires "
		 "registered device memory; the core %s carries all messages. "
		 "Set FI_MR_HMEM in the hints\n", core_name);
	return false;
}

static void duo_domain_open_peer(struct duo_domain *domain,
				 const struct fi_info *info)
{
	const struct duo_transport *peer = domain->fabric->peer;
	bool device = info->caps & FI_HMEM; /* buffers may be device memory */

	if (!peer || (device && !duo_domain_supports_device(domain, info)))
		return;
	if (duo_auto_start(domain, info) ||
	    (peer->domain_open && peer->domain_open(domain)))
		return;
	domain->peer = peer;
	domain->device = device;
}

/*
 * Stores the attributes that fi/opened.c compares with infos. Returns 0 or
 * -FI_ENOMEM.
 */
static int duo_domain_describe(struct duo_domain *domain,
			       const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	domain->caps = info->caps | attr->caps;
	domain->mr_mode = attr->mr_mode;
	domain->threading = attr->threading;
	if (!attr->name)
		return 0;
	domain->name = strdup(attr->name);
	return domain->name ? 0 : -FI_ENOMEM;
}

int duo_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info,
		    struct fid_domain **domain_fid, void *context)
{
	struct duo_domain *domain;
	int ret;

	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->fabric = duo_fabric_of(fabric_fid);
	domain->addr_len = duo_addr_len(domain->fabric, info->addr_format);
	domain->per_net = duo_addr_per_net(info->addr_format);
	ret = duo_domain_describe(domain, info);
	if (ret)
		goto free_domain;
	duo_lock_init(&domain->group.lock,
		      info->domain_attr->threading != FI_THREAD_DOMAIN ||
		      duo_auto_needed(info));
	domain->single = info->domain_attr->threading ==
				 FI_THREAD_COMPLETION && duo_lock_prepare();
	ret = duo_domain_open_core(domain, info, context);
	if (ret)
		goto free_domain;
	duo_domain_open_peer(domain, info);
	ret = duo_near_table_open(domain, info);
	if (ret)
		goto stop;

	domain->domain_fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->domain_fid.fid.context = context;
	domain->domain_fid.fid.ops = &duo_domain_fi_ops;
	domain->domain_fid.ops = &duo_domain_ops;
	domain->domain_fid.mr = &duo_mr_ops;
	atomic_fetch_add(&domain->fabric->refs, 1);
	duo_opened_domain(domain);
	*domain_fid = &domain->domain_fid;
	return 0;

stop:
	duo_auto_stop(domain);
	fi_close(&domain->path_domain[FI_DUO_CORE]->fid);
free_domain:
	free(domain->name);
	free(domain);
	return ret;
}
