/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "fi/api.h"
#include "obj/domain.h"
#include "obj/fabric.h"

static pthread_mutex_t duo_opened_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, duo_fabric) duo_fabrics =
	LIST_HEAD_INITIALIZER(duo_fabrics);

static void duo_opened_take(void)
{
	pthread_mutex_lock(&duo_opened_lock);
}

static void duo_opened_give(void)
{
	pthread_mutex_unlock(&duo_opened_lock);
}

/* Makes fork() take the lock, so that the child gets complete lists. */
__attribute__((constructor)) static void duo_opened_loaded(void)
{
	pthread_atfork(duo_opened_take, duo_opened_give, duo_opened_give);
}

void duo_opened_fabric(struct duo_fabric *fabric)
{
	duo_decoy_set(&fabric->decoy);
	duo_opened_take();
	LIST_INSERT_HEAD(&duo_fabrics, fabric, link);
	duo_opened_give();
}

void duo_opened_domain(struct duo_domain *domain)
{
	duo_decoy_set(&domain->decoy);
	duo_opened_take();
	LIST_INSERT_HEAD(&domain->fabric->domains, domain, link);
	duo_opened_give();
}

void duo_closed_fabric(struct duo_fabric *fabric)
{
	duo_opened_take();
	LIST_REMOVE(fabric, link);
	duo_opened_give();
}

void duo_closed_domain(struct duo_domain *domain)
{
	duo_opened_take();
	LIST_REMOVE(domain, link);
	duo_opened_give();
}

struct duo_opened duo_opened_hinted(const struct fi_info *hints)
{
	const struct fid_fabric *fabric_fid = hints && hints->fabric_attr ?
					      hints->fabric_attr->fabric : NULL;
	const struct fid_domain *domain_fid = hints && hints->domain_attr ?
					      hints->domain_attr->domain : NULL;
	struct duo_opened opened = { NULL, NULL, false };
	struct duo_fabric *fabric;
	struct duo_domain *domain;

	duo_opened_take();
	LIST_FOREACH(fabric, &duo_fabrics, link) {
		if (&fabric->fabric_fid == fabric_fid)
			opened.fabric = fabric;
		LIST_FOREACH(domain, &fabric->domains, link) {
			if (&domain->domain_fid == domain_fid)
				opened.domain = domain;
		}
	}
	duo_opened_give();
	opened.foreign = (fabric_fid && !opened.fabric) ||
			 (domain_fid && !opened.domain);
	if (opened.domain && !opened.fabric)
		opened.fabric = opened.domain->fabric;
	else if (opened.domain && opened.domain->fabric != opened.fabric)
		opened.foreign = true;
	return opened;
}

bool duo_opened_ours(const struct duo_opened *opened)
{
	if (opened->foreign)
		DUO_INFO(CORE, "no info returned: the fabric or domain in the "
			 "hints is not an open one of %s\n", duo_prov.name);
	return !opened->foreign;
}

void duo_opened_to_core(const struct duo_opened *opened, struct fi_info *hints)
{
	if (opened->fabric)
		hints->fabric_attr->fabric =
			opened->fabric->path_fabric[FI_DUO_CORE];
	if (opened->domain)
		hints->domain_attr->domain =
			opened->domain->path_domain[FI_DUO_CORE];
}

/*
 * True if attr has the name of this fabric, and either the name of its core or
 * no provider name.
 */
static bool duo_opened_is_fabric(const struct duo_fabric *fabric,
				 const struct fi_fabric_attr *attr)
{
	return fabric->name && attr->name &&
	       !strcmp(fabric->name, attr->name) &&
	       (!attr->prov_name ||
		!strcasecmp(fabric->core_name, attr->prov_name));
}

/*
 * True if a domain that was opened with threading level `has` is safe for an
 * info with level `needs`.
 */
static bool duo_opened_threads(enum fi_threading has, enum fi_threading needs)
{
	switch (has) {
	case FI_THREAD_UNSPEC:
	case FI_THREAD_SAFE:
		return true;
	default:
		return needs == has || needs == FI_THREAD_DOMAIN;
	}
}

/*
 * True if an endpoint of this info can be opened in the domain. If attr->domain
 * is the core's domain, the core has already compared capabilities and MR
 * modes, and this function does not. It always compares FI_HMEM, because the
 * domain's local transport depends on it.
 */
static bool duo_opened_is_domain(const struct duo_domain *domain,
				 const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	if (!domain->name || !attr->name || strcmp(domain->name, attr->name) ||
	    !duo_opened_threads(domain->threading, attr->threading) ||
	    info->caps & FI_HMEM & ~domain->caps)
		return false;
	if (attr->domain == domain->path_domain[FI_DUO_CORE])
		return true;
	return !((info->caps | attr->caps) & ~domain->caps) &&
	       !(domain->mr_mode & ~attr->mr_mode);
}

/* Returns the oldest fabric (the last in the list) that fits; NULL: none. */
static struct duo_fabric *duo_opened_first_fabric(const struct fi_info *info)
{
	struct duo_fabric *fabric, *first = NULL;

	LIST_FOREACH(fabric, &duo_fabrics, link) {
		if (duo_opened_is_fabric(fabric, info->fabric_attr))
			first = fabric;
	}
	return first;
}

/*
 * Returns the oldest domain that fits the info and has the info's mr_mode.
 * NULL: there is none.
 */
static struct duo_domain *
duo_opened_first_domain(const struct duo_fabric *fabric,
			const struct fi_info *info)
{
	struct duo_domain *domain, *first = NULL;

	LIST_FOREACH(domain, &fabric->domains, link) {
		if (duo_opened_is_domain(domain, info) &&
		    domain->mr_mode == info->domain_attr->mr_mode)
			first = domain;
	}
	return first;
}

bool duo_opened_from_core(const struct duo_opened *opened,
			  const struct fi_info *hints, struct fi_info *info)
{
	struct duo_fabric *fabric = opened->fabric;
	struct duo_domain *domain = opened->domain;

	if (fabric && !duo_opened_is_fabric(fabric, info->fabric_attr))
		return false;
	if (domain) {
		if (hints->domain_attr->threading == FI_THREAD_UNSPEC)
			info->domain_attr->threading = domain->threading;
		if (!duo_opened_is_domain(domain, info)) {
			DUO_INFO(CORE, "no info returned: domain %p in the "
				 "hints lacks attributes that the hints "
				 "request\n",
				 (const void *) domain);
			return false;
		}
	}
	duo_opened_take();
	if (!fabric)
		fabric = duo_opened_first_fabric(info);
	if (fabric && !domain)
		domain = duo_opened_first_domain(fabric, info);
	duo_opened_give();
	info->fabric_attr->fabric = fabric ? &fabric->fabric_fid : NULL;
	info->domain_attr->domain = domain ? &domain->domain_fid : NULL;
	return true;
}
