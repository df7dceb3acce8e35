/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Opens an endpoint of ofi_duo as MPI does; sends a message to each rank. */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "mpi.h"

struct mpi_message {
	/* must come first: entries of the CQ have its address */
	struct fi_context2 context;
	bool posted, done, failed;
	uint64_t word;
};

static int mpi_ep_failed(const struct info_fabric *fabric, char *error,
			 size_t size, const char *call, const char *provider,
			 int ret)
{
	snprintf(error, size, "%s of \"%s\": %s", call, provider,
		 ret ? fabric->strerror(-ret) : "not a provider of ofi_duo");
	return -1;
}

/* Calls fi_getinfo() with the hints of Open MPI's mtl/ofi. */
static int mpi_ep_info(struct mpi_ep *ep, const struct info_fabric *fabric,
		       const char *provider)
{
	struct fi_info *hints = fabric->dupinfo(NULL);
	int ret = -FI_ENOMEM;

	if (!hints)
		return ret;
	hints->caps = FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM |
		      FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	if (hints->fabric_attr->prov_name)
		ret = fabric->getinfo(fabric->version, NULL, NULL, 0, hints,
				      &ep->info);
	fabric->freeinfo(hints);
	return ret;
}

static int mpi_ep_objects(struct mpi_ep *ep)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	int ret;

	ret = fi_domain(ep->fabric, ep->info, &ep->domain, NULL);
	if (!ret)
		ret = fi_av_open(ep->domain, &av, &ep->av, NULL);
	if (!ret)
		ret = fi_cq_open(ep->domain, &cq, &ep->cq, NULL);
	if (!ret)
		ret = fi_endpoint(ep->domain, ep->info, &ep->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(ep->ep, &ep->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(ep->ep, &ep->cq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(ep->ep);
}

int mpi_ep_open(struct mpi_ep *ep, const struct info_fabric *fabric,
		const char *provider, char *error, size_t size)
{
	int ret;

	if (!fabric->version) {
		snprintf(error, size, "no supported libfabric was found");
		return -1;
	}
	ret = mpi_ep_info(ep, fabric, provider);
	if (ret)
		return mpi_ep_failed(fabric, error, size, "fi_getinfo",
				     provider, ret);
	ret = fabric->fabric(ep->info->fabric_attr, &ep->fabric, NULL);
	if (!ret)
		ret = mpi_ep_objects(ep);
	fabric->freeinfo(ep->info);
	if (ret)
		return mpi_ep_failed(fabric, error, size, "an endpoint",
				     provider, ret);
	if (fi_open_ops(&ep->ep->fid, FI_DUO_OPS, 0, (void **) &ep->ops, NULL))
		return mpi_ep_failed(fabric, error, size, "fi_open_ops",
				     provider, 0);
	return 0;
}

size_t mpi_ep_address(struct mpi_ep *ep, void *addr, size_t size)
{
	return fi_getname(&ep->ep->fid, addr, &size) ? 0 : size;
}

void mpi_ep_progress(struct mpi_ep *ep)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_entry entries[64];
	ssize_t count, i;

	if (!ep->cq)
		return;
	count = fi_cq_read(ep->cq, entries, 64);
	for (i = 0; i < count; i++)
		((struct mpi_message *) entries[i].op_context)->done = true;
	if (count == -FI_EAVAIL && fi_cq_readerr(ep->cq, &error, 0) == 1 &&
	    error.op_context) {
		((struct mpi_message *) error.op_context)->done = true;
		((struct mpi_message *) error.op_context)->failed = true;
	}
	if (count <= 0)
		sched_yield();
}

/*
 * Posts receives and sends that are not posted yet. Returns the number of
 * receives and sends that are not complete.
 */
static int mpi_ep_post(struct mpi_ep *ep, const struct mpi_job *job)
{
	int size = job->launch.size, left = 0, i, peer;
	struct mpi_message *to, *from;
	ssize_t ret;

	for (i = 1; i < size; i++) {
		peer = (job->launch.rank + i) % size;
		if (ep->addrs[peer] == FI_ADDR_NOTAVAIL)
			continue;
		from = &ep->messages[peer];
		to = &ep->messages[size + peer];
		if (!from->posted) {
			ret = fi_trecv(ep->ep, &from->word, sizeof(from->word),
				       NULL, ep->addrs[peer], (uint64_t) peer,
				       0, from);
			from->posted = ret != -FI_EAGAIN;
			from->done = from->failed = ret && from->posted;
		}
		if (!to->posted) {
			ret = fi_tsend(ep->ep, &to->word, sizeof(to->word),
				       NULL, ep->addrs[peer],
				       (uint64_t) job->launch.rank, to);
			to->posted = ret != -FI_EAGAIN;
			to->done = to->failed = ret && to->posted;
		}
		left += !from->done + !to->done;
	}
	return left;
}

/* Inserts the addresses of ranks with the same provider, hence same format. */
static void mpi_ep_insert(struct mpi_ep *ep, const struct mpi_job *job)
{
	const struct mpi_rank *me = &job->ranks[job->launch.rank], *rank;
	int i;

	for (i = 0; i < job->launch.size; i++) {
		rank = &job->ranks[i];
		ep->addrs[i] = FI_ADDR_NOTAVAIL;
		if (!rank->addr || strcmp(rank->provider, me->provider))
			continue;
		if (fi_av_insert(ep->av, rank->addr, 1, &ep->addrs[i], 0,
				 NULL) != 1)
			ep->addrs[i] = FI_ADDR_NOTAVAIL;
	}
}

int mpi_ep_exchange(struct mpi_ep *ep, const struct mpi_job *job,
		    struct mpi_cell *row)
{
	int size = job->launch.size, i;
	time_t end = time(NULL) + job->launch.timeout;
	struct mpi_message *from;

	ep->addrs = calloc((size_t) size, sizeof(*ep->addrs));
	ep->messages = calloc(2 * (size_t) size, sizeof(*ep->messages));
	if (!ep->addrs || !ep->messages)
		return -1;
	mpi_ep_insert(ep, job);
	for (i = 0; i < size; i++)
		ep->messages[size + i].word = (uint64_t) job->launch.rank;
	while (mpi_ep_post(ep, job) && time(NULL) <= end)
		mpi_ep_progress(ep);
	for (i = 0; i < size; i++) {
		from = &ep->messages[i];
		row[i].received = from->done && !from->failed &&
				  from->word == (uint64_t) i ? '+' : '-';
	}
	return 0;
}

void mpi_ep_paths(struct mpi_ep *ep, struct mpi_job *job,
		  struct mpi_cell *row)
{
	enum fi_duo_reason reason;
	enum fi_duo_path path;
	int i;

	for (i = 0; i < job->launch.size; i++) {
		if (i == job->launch.rank ||
		    ep->addrs[i] == FI_ADDR_NOTAVAIL ||
		    ep->ops->path(ep->ep, ep->addrs[i], &path, &reason) ||
		    reason >= FI_DUO_REASON_COUNT)
			continue;
		row[i].path = path == FI_DUO_LOCAL ? MPI_CELL_SHM :
						   MPI_CELL_CORE;
		row[i].reason = (char) ('a' + reason);
		snprintf(job->reasons[reason], sizeof(job->reasons[reason]),
			 "%s", ep->ops->reason_str(reason));
	}
}

void mpi_ep_close(struct mpi_ep *ep)
{
	struct fid *fids[] = {
		ep->ep ? &ep->ep->fid : NULL, ep->cq ? &ep->cq->fid : NULL,
		ep->av ? &ep->av->fid : NULL,
		ep->domain ? &ep->domain->fid : NULL,
		ep->fabric ? &ep->fabric->fid : NULL,
	};
	size_t i;

	for (i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		if (fids[i])
			fi_close(fids[i]);
	free(ep->addrs);
	free(ep->messages);
}
