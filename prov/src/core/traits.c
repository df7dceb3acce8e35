/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <string.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/log.h"
#include "core/none.h"
#include "core/traits.h"

#define DUO_EFA "efa"

/* Traits of cores. The first row that fits the name of a core is used. */
static const struct duo_traits_row {
	const char *name;
	/*
	 * true: the row is for the core whose whole name is `name`; false: for
	 * each stack of providers, such as "tcp;ofi_rxm", that contains `name`
	 */
	bool whole;
	struct duo_traits traits;
} duo_traits_table[] = {
	{ DUO_EFA, true, { .polled_match = true, .util_srx = true,
			   .cpu_atomics = true, .prefix_optional = true,
			   .shares_lists = true } },
	{ "ofi_rxm", false, { .polled_match = true, .util_srx = true,
			      .cpu_atomics = true } },
	{ "ofi_rxd", false, { .polled_match = true, .cpu_atomics = true } },
	{ DUO_NONE, true, { .carries_nothing = true, .cpu_atomics = true } },
	{ "tcp", true, { .polled_match = true } },
	{ "sockets", true, { .polled_match = true, .cpu_atomics = true } },
};

struct duo_traits duo_traits_find(const char *core)
{
	const size_t count = sizeof(duo_traits_table) /
			     sizeof(duo_traits_table[0]);
	const struct duo_traits_row *row;

	for (row = duo_traits_table; row < duo_traits_table + count; row++) {
		if (row->whole ? !strcasecmp(core, row->name) :
				 strcasestr(core, row->name) != NULL)
			return row->traits;
	}
	return (struct duo_traits) { 0 };
}

bool duo_traits_allowed(const char *core)
{
	return strcasecmp(core, "shm") && strcasecmp(core, "sm2") &&
	       strcasecmp(core, "off_coll") && !strcasestr(core, "lnx") &&
	       !strcasestr(core, DUO_NAME);
}

void duo_traits_add_bits(struct fi_info *core)
{
	if (!core->fabric_attr || !core->fabric_attr->prov_name ||
	    strcasecmp(core->fabric_attr->prov_name, DUO_EFA))
		return;
	if (core->caps)
		core->caps |= FI_REMOTE_COMM;
	if (core->tx_attr)
		core->tx_attr->msg_order |= FI_ORDER_SAS;
	if (core->rx_attr)
		core->rx_attr->msg_order |= FI_ORDER_SAS;
}

bool duo_traits_direct(const struct fi_fabric_attr *attr)
{
	return attr && attr->name && !strcasecmp(attr->name, "efa-direct");
}

bool duo_traits_has_direct(const char *core)
{
	return !strcasecmp(core, DUO_EFA);
}

int duo_traits_domain_ops(const struct fid *fid, const char *name)
{
	if (strcmp(name, DUO_EFA_DOMAIN_OPS) && strcmp(name, DUO_EFA_GDA_OPS))
		return 0;
	DUO_WARN(DOMAIN, "domain %p: \"%s\" requires objects of efa itself; "
		 "open the fabric efa-direct\n", (const void *) fid, name);
	return -FI_EOPNOTSUPP;
}
