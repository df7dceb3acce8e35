/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_close of a tcp endpoint that was never enabled, in a domain with
 * FI_THREAD_COMPLETION: crashes, because the endpoint gets its locks only in
 * fi_enable (xnet_rdm_resolve_domains()).
 */

#include "repro.h"

static void test(void)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;

	repro_open_domain("tcp", 0);
	repro_info->domain_attr->threading = FI_THREAD_COMPLETION;
	repro_must(fi_fabric(repro_info->fabric_attr, &fabric, NULL),
		   "fi_fabric");
	repro_must(fi_domain(fabric, repro_info, &domain, NULL), "fi_domain");
	repro_must(fi_endpoint(domain, repro_info, &ep, NULL), "fi_endpoint");
	repro_must(fi_close(&ep->fid), "fi_close");
}

int main(void)
{
	return repro_run("tcp: fi_close of an endpoint that is not enabled",
			 test);
}
