/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The module of the hook, which libfabric puts above the core: docs/hook.md. If
 * the application opens a fabric of the core, the hook wraps this fabric.
 */

#include "config.h"

#include <string.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/params.h"
#include "core/traits.h"
#include "cq/cq.h"
#include "fi/api.h"
#include "fi/entry.h"
#include "obj/domain.h"
#include "obj/fabric.h"

/* the hook's name in FI_HOOK; libfabric prepends DUO_HOOK_PREFIX to it */
#define DUO_HOOK "duo"
#define DUO_HOOK_PREFIX "ofi_hook_"

static const char duo_ident[] __attribute__((used)) =
	DUO_IDENT(DUO_HOOK_PREFIX DUO_HOOK, PACKAGE_VERSION);

/*
 * True while this thread opens a domain. The core may then open fabrics and
 * domains for its own use, for which libfabric also calls the hook. The hook
 * must not wrap them.
 */
static __thread bool duo_hook_inside;

static struct fid_fabric *duo_hook_core(struct fid_fabric *fabric)
{
	return duo_fabric_of(fabric)->path_fabric[FI_DUO_CORE];
}

/*
 * Opens a domain of ofi_duo. If this domain has no local transport, the core
 * would carry all its messages. In this case closes the domain, and opens a
 * domain of the core, which ofi_duo does not wrap.
 */
static int duo_hook_domain_ours(struct fid_fabric *fabric,
				struct fi_info *info,
				struct fid_domain **domain, void *context)
{
	int ret = duo_domain_open(fabric, info, domain, context);

	if (ret || duo_domain_of(*domain)->peer)
		return ret;
	ret = fi_close(&(*domain)->fid);
	return ret ? ret :
	       fi_domain(duo_hook_core(fabric), info, domain, context);
}

static int duo_hook_domain(struct fid_fabric *fabric, struct fi_info *info,
			   struct fid_domain **domain, void *context)
{
	bool inside = duo_hook_inside;
	int ret;

	if (!info)
		return -FI_EINVAL;
	duo_hook_inside = true;
	if (inside || !duo_info_kept(info))
		ret = fi_domain(duo_hook_core(fabric), info, domain, context);
	else
		ret = duo_hook_domain_ours(fabric, info, domain, context);
	duo_hook_inside = inside;
	return ret;
}

/*
 * Opens a domain of the core, which ofi_duo does not wrap. libfabric calls this
 * function only if fi_domain2() has flags. Only providers pass flags, to open
 * domains for their own use.
 */
static int duo_hook_domain2(struct fid_fabric *fabric, struct fi_info *info,
			    struct fid_domain **domain, uint64_t flags,
			    void *context)
{
	return fi_domain2(duo_hook_core(fabric), info, domain, flags, context);
}

static int duo_hook_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
			       struct fid_pep **pep, void *context)
{
	return fi_passive_ep(duo_hook_core(fabric), info, pep, context);
}

static int duo_hook_eq(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		       struct fid_eq **eq, void *context)
{
	return fi_eq_open(duo_hook_core(fabric), attr, eq, context);
}

static int duo_hook_wait(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			 struct fid_wait **wait)
{
	struct fid_fabric *core = duo_hook_core(fabric);

	return core->ops->wait_open(core, attr, wait);
}

static struct fi_ops_fabric duo_hook_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = duo_hook_domain,
	.passive_ep = duo_hook_passive_ep,
	.eq_open = duo_hook_eq,
	.wait_open = duo_hook_wait,
	.trywait = duo_trywait,
	.domain2 = duo_hook_domain2,
};

/*
 * Wraps a fabric of the core that the application has opened. libfabric calls
 * this function. attr: only `fabric`, the core's fabric, is set. context: the
 * core's struct fi_provider. If this function returns an error, libfabric
 * passes the core's fabric to the application.
 */
static int duo_hook_fabric(struct fi_fabric_attr *attr,
			   struct fid_fabric **fabric, void *context)
{
	const struct fi_provider *core = context;

	if (duo_hook_inside || !duo_params.local_on ||
	    !strcasecmp(core->name, "near") || /* already uses near */
	    !duo_traits_allowed(core->name) ||
	    attr->fabric->fid.context == DUO_WRAPPED)
		return -FI_ENODEV;
	return duo_fabric_hook(attr->fabric, core->name, &duo_hook_ops, fabric);
}

/*
 * True if FI_HOOK names the hook. Otherwise fi_prov_ini() returns no provider,
 * and defines no parameters.
 */
static bool duo_hook_wanted(void)
{
	char *hooks = NULL;

	return !fi_param_get_str(NULL, "hook", &hooks) && hooks &&
	       strcasestr(hooks, DUO_HOOK);
}

/*
 * Returns the hook; NULL: it is not wanted, or does not support this version of
 * libfabric. libfabric treats a provider as a hook if its getinfo is NULL.
 */
struct fi_provider *fi_prov_ini(void)
{
	struct fi_provider *hook = duo_hook_wanted() ? duo_entry_core() : NULL;

	if (!hook)
		return NULL;
	duo_params.hook = true;
	hook->name = DUO_HOOK_PREFIX DUO_HOOK;
	hook->getinfo = NULL;
	hook->fabric = duo_hook_fabric;
	return hook;
}
