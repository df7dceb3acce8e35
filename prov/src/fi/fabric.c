/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/enosys.h"
#include "base/log.h"
#include "base/params.h"
#include "core/none.h"
#include "core/traits.h"
#include "cq/cq.h"
#include "fi/api.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "transport/transport.h"

/*
 * Allocates a fabric, which then owns core_name. If there is no memory, or if
 * core_name is NULL, frees core_name and returns NULL.
 */
static struct duo_fabric *duo_fabric_alloc(char *core_name)
{
	struct duo_fabric *fabric = core_name ? calloc(1, sizeof(*fabric)) :
						NULL;

	if (!fabric) {
		free(core_name);
		return NULL;
	}
	fabric->core_name = core_name;
	fabric->traits = duo_traits_find(core_name);
	return fabric;
}

static void duo_fabric_free(struct duo_fabric *fabric)
{
	free(fabric->name);
	free(fabric->core_name);
	free(fabric);
}

static int duo_fabric_close(struct fid *fid)
{
	struct duo_fabric *fabric =
		duo_container_of(fid, struct duo_fabric, fabric_fid.fid);
	int ret;

	if (atomic_load(&fabric->refs))
		return -FI_EBUSY;
	ret = fi_close(&fabric->path_fabric[FI_DUO_CORE]->fid);
	if (ret)
		return ret;
	if (fabric->path_fabric[FI_DUO_LOCAL])
		fi_close(&fabric->path_fabric[FI_DUO_LOCAL]->fid);
	fi_freeinfo(fabric->shm_info);
	duo_closed_fabric(fabric);
	duo_fabric_free(fabric);
	return 0;
}

/*
 * Opens an event queue of the core, and returns it to the application. ofi_duo
 * need not wrap it, because local transports write no events.
 */
static int duo_eq_open(struct fid_fabric *fabric_fid, struct fi_eq_attr *attr,
		       struct fid_eq **eq, void *context)
{
	struct duo_fabric *fabric = duo_fabric_of(fabric_fid);

	if (attr && attr->wait_obj == FI_WAIT_SET)
		return -FI_ENOSYS;	/* ofi_duo opens no wait sets */
	return fi_eq_open(fabric->path_fabric[FI_DUO_CORE], attr, eq, context);
}

static struct fi_ops duo_fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_fabric_close,
	.bind = duo_no_bind,
	.control = duo_core_control,
	.ops_open = duo_core_ops_open,
};

static struct fi_ops_fabric duo_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = duo_domain_open,
	.passive_ep = duo_no_passive_ep,
	.eq_open = duo_eq_open,
	.wait_open = duo_no_wait_set,
	.trywait = duo_trywait,
};

static int duo_fabric_open_core(struct duo_fabric *fabric,
				const struct fi_fabric_attr *attr)
{
	struct fi_fabric_attr core_attr = *attr;

	core_attr.prov_name = fabric->core_name;
	core_attr.fabric = NULL;
	core_attr.api_version = duo_api_version(attr->api_version);
	if (fabric->traits.carries_nothing)
		return duo_none_open(&core_attr,
				     &fabric->path_fabric[FI_DUO_CORE]);
	return fi_fabric(&core_attr, &fabric->path_fabric[FI_DUO_CORE],
			 DUO_WRAPPED);
}

/*
 * Opens the local transport. If that fails, fabric->peer stays NULL, and the
 * core carries all messages.
 */
static void duo_fabric_open_peer(struct duo_fabric *fabric)
{
	const struct duo_transport *peer = duo_transports[duo_params.local];

	if (!duo_params.local_on)
		DUO_WARN(FABRIC, "FI_OFI_DUO_LOCAL=off: core %s carries all "
			 "messages, those within this host as well\n",
			 fabric->core_name);
	else if (!peer->fabric_open || !peer->fabric_open(fabric))
		fabric->peer = peer;
}

static void duo_fabric_start(struct duo_fabric *fabric, uint32_t api_version,
			     void *context)
{
	duo_fabric_open_peer(fabric);
	fabric->fabric_fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fabric_fid.fid.context = context;
	fabric->fabric_fid.fid.ops = &duo_fabric_fi_ops;
	fabric->fabric_fid.ops = &duo_fabric_ops;
	fabric->fabric_fid.api_version = api_version;
	duo_opened_fabric(fabric);
}

int duo_fabric_hook(struct fid_fabric *core, const char *core_name,
		    struct fi_ops_fabric *ops, struct fid_fabric **fabric_fid)
{
	struct duo_fabric *fabric = duo_fabric_alloc(strdup(core_name));

	if (!fabric)
		return -FI_ENOMEM;
	fabric->path_fabric[FI_DUO_CORE] = core;
	duo_fabric_start(fabric, core->api_version, core->fid.context);
	fabric->fabric_fid.ops = ops;
	*fabric_fid = &fabric->fabric_fid;
	return 0;
}

/*
 * Opens a fabric of the core that ofi_duo does not wrap, such as efa-direct.
 * Returns 0 or an error.
 */
static int duo_fabric_open_direct(const struct fi_fabric_attr *attr,
				  struct fid_fabric **fabric_fid,
				  void *context)
{
	struct fi_fabric_attr core_attr = *attr;
	int ret;

	core_attr.prov_name = duo_core_name(attr->prov_name);
	core_attr.fabric = NULL;
	if (!core_attr.prov_name)
		return -FI_ENOMEM;
	ret = fi_fabric(&core_attr, fabric_fid, context);
	free(core_attr.prov_name);
	return ret;
}

int duo_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_fid,
		    void *context)
{
	struct duo_fabric *fabric;
	int ret;

	if (!duo_params.core && !duo_core_named(attr->prov_name)) {
		DUO_WARN(FABRIC, "provider name %s does not name a core "
			 "provider; use \"<core>;ofi_duo\"\n",
			 attr->prov_name ? attr->prov_name : "(none)");
		return -FI_EINVAL;
	}
	if (duo_traits_direct(attr))
		return duo_fabric_open_direct(attr, fabric_fid, context);
	fabric = duo_fabric_alloc(duo_params.core ? strdup(duo_params.core) :
				  duo_core_name(attr->prov_name));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->name = attr->name ? strdup(attr->name) : NULL;
	ret = attr->name && !fabric->name ? -FI_ENOMEM :
	      duo_fabric_open_core(fabric, attr);
	if (ret) {
		duo_fabric_free(fabric);
		return ret;
	}
	duo_fabric_start(fabric, attr->api_version, context);
	*fabric_fid = &fabric->fabric_fid;
	return 0;
}
