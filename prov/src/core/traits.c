/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <string.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/log.h"
#include "core/none.h"
#include "core/traits.h"
#include "obj/domain.h"
#include "obj/mr.h"

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

static void duo_efa_no_gda(const void *fid)
{
	DUO_WARN(DOMAIN, "domain %p: \"%s\" requires objects of efa itself; "
		 "open the fabric efa-direct\n", fid, DUO_EFA_GDA_OPS);
}

#ifdef FI_EFA_DOMAIN_OPS
static int duo_efa_query_mr(struct fid_mr *mr_fid,
			    struct fi_efa_mr_attr *attr)
{
	struct duo_mr *mr = duo_container_of(mr_fid, struct duo_mr, mr_fid);
	struct fi_efa_ops_domain *ops;
	int ret;

	ret = fi_open_ops(&mr->domain->path_domain[FI_DUO_CORE]->fid,
			  FI_EFA_DOMAIN_OPS, 0, (void **) &ops, NULL);
	return ret ? ret : ops->query_mr(mr->core, attr);
}

/*
 * Takes the place of each function of gda[], and rejects the call. efa's own
 * function would treat fid as an object of efa, and operations on efa's queues
 * would bypass ofi_duo.
 */
static int duo_efa_reject(struct fid *fid)
{
	duo_efa_no_gda(fid);
	return -FI_EOPNOTSUPP;
}

/*
 * Number of functions that libfabric 2.2 has added to efa's table. A program
 * built with 2.2 calls them without a check, even if ofi_duo is built with 2.1.
 */
#define DUO_EFA_OPS_OF_2_2 4

static const struct {
	int (*query_mr)(struct fid_mr *mr, struct fi_efa_mr_attr *attr);
	int (*gda[DUO_EFA_OPS_OF_2_2])(struct fid *fid);
} duo_efa_ops = {
	.query_mr = duo_efa_query_mr,
	.gda = { [0 ... DUO_EFA_OPS_OF_2_2 - 1] = duo_efa_reject },
};
#endif

int duo_traits_domain_ops(struct fid *fid, const char *name, void **ops)
{
#ifdef FI_EFA_DOMAIN_OPS
	if (!strcmp(name, FI_EFA_DOMAIN_OPS)) {
		*ops = (void *) &duo_efa_ops;
		return 0;
	}
#endif
	if (!strcmp(name, DUO_EFA_GDA_OPS)) {
		duo_efa_no_gda(fid);
		return -FI_EOPNOTSUPP;
	}
	return 0;
}
