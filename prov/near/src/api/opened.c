/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The open fabrics and domains of this process. A fid in hints is compared
 * with their addresses and is not read unless it is one of them.
 */

#include "api/near_fi.h"

static pthread_mutex_t near_opened_lock = PTHREAD_MUTEX_INITIALIZER;
static struct near_fabric *near_fabrics;

void near_opened_fabric(struct near_fabric *fabric)
{
	near_decoy_set(&fabric->decoy);
	pthread_mutex_lock(&near_opened_lock);
	fabric->next = near_fabrics;
	near_fabrics = fabric;
	pthread_mutex_unlock(&near_opened_lock);
}

void near_opened_domain(struct near_domain *domain)
{
	near_decoy_set(&domain->decoy);
	pthread_mutex_lock(&near_opened_lock);
	domain->next = domain->fabric->domains;
	domain->fabric->domains = domain;
	pthread_mutex_unlock(&near_opened_lock);
}

void near_closed_fabric(struct near_fabric *fabric)
{
	struct near_fabric **at = &near_fabrics;

	pthread_mutex_lock(&near_opened_lock);
	while (*at != fabric)
		at = &(*at)->next;
	*at = fabric->next;
	pthread_mutex_unlock(&near_opened_lock);
}

void near_closed_domain(struct near_domain *domain)
{
	struct near_domain **at = &domain->fabric->domains;

	pthread_mutex_lock(&near_opened_lock);
	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	pthread_mutex_unlock(&near_opened_lock);
}

static bool near_opened_is_domain(const struct near_fabric *fabric,
				  const struct fid_domain *fid)
{
	const struct near_domain *domain = fabric->domains;

	while (domain && &domain->fid != fid)
		domain = domain->next;
	return domain;
}

/* NULL: not one of ours. */
static const struct near_fabric *near_opened_find(const struct fi_info *hints)
{
	const struct fid_fabric *fabric = hints->fabric_attr ?
					  hints->fabric_attr->fabric : NULL;
	const struct fid_domain *domain = hints->domain_attr ?
					  hints->domain_attr->domain : NULL;
	const struct near_fabric *open;

	pthread_mutex_lock(&near_opened_lock);
	for (open = near_fabrics; open; open = open->next) {
		if ((!fabric || &open->fid == fabric) &&
		    (!domain || near_opened_is_domain(open, domain)))
			break;
	}
	pthread_mutex_unlock(&near_opened_lock);
	return open;
}

enum near_opened near_opened_hinted(const struct fi_info *hints)
{
	if (!hints || ((!hints->fabric_attr || !hints->fabric_attr->fabric) &&
		       (!hints->domain_attr || !hints->domain_attr->domain)))
		return NEAR_OPENED_ANY;
	return near_opened_find(hints) ? NEAR_OPENED_OURS : NEAR_OPENED_OTHER;
}
