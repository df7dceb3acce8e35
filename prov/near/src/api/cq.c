/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Completion queues. Reading, which drives all progress: progress.c. */

#include <inttypes.h>
#include <stdlib.h>

#include "api/cq.h"
#include "near_xpu.h"

#define NEAR_CQ_MIN 1024
#define NEAR_CQ_MAX (1u << 20)	/* at first; what is in it may need more */

static bool near_cq_grow(struct near_cq *cq)
{
	uint64_t size = cq->mask + 1, i;
	struct near_comp *ring = malloc(2 * size * sizeof(*ring));

	if (!ring) {
		NEAR_WARN(CQ, "no memory for %" PRIu64 " completions: one is "
			  "lost\n", 2 * size);
		return false;
	}
	for (i = cq->head; i != cq->tail; i++)
		ring[i & (2 * size - 1)] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = 2 * size - 1;
	return true;
}

void near_cq_put_other(struct near_cq *cq,
		       const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	struct near_comp *comp;

	if (!cq->out_left) {
		if (cq->tail - cq->head > cq->mask && !near_cq_grow(cq))
			return;
		comp = &cq->ring[cq->tail++ & cq->mask];
		comp->entry = *entry;
		comp->src = src;
		if (near_unlikely(cq->waiter.asleep))
			near_waiter_wake(&cq->waiter);
		return;
	}
	cq->out_left--;
	if (cq->out_src)
		*cq->out_src++ = src;
	memcpy(cq->out, entry, cq->entry_size);
	cq->out += cq->entry_size;
}

static ssize_t near_cq_readerr(struct fid_cq *cq_fid,
			       struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct near_cq *cq = near_cq_of(cq_fid);
	struct near_cq_err *err;

	near_lock(cq->domain);
	err = cq->err_first;
	if (err) {
		cq->err_first = err->next;
		if (!cq->err_first)
			cq->err_last = &cq->err_first;
	}
	near_unlock(cq->domain);
	if (!err)
		return -FI_EAGAIN;
	err->entry.err_data = buf->err_data;
	err->entry.err_data_size = 0;
	memcpy(buf, &err->entry, near_caller_cq_err(
		cq->domain->fabric->fid.api_version));
	free(err);
	return 1;
}

void near_cq_error(struct near_cq *cq, const struct fi_cq_err_entry *entry)
{
	struct near_cq_err *err = malloc(sizeof(*err));

	if (!err) {
		NEAR_WARN(CQ, "no memory for an error entry: %s of context %p "
			  "is lost\n", fi_strerror(entry->err),
			  entry->op_context);
		return;
	}
	err->next = NULL;
	err->entry = *entry;
	err->entry.prov_errno = entry->err;
	*cq->err_last = err;
	cq->err_last = &err->next;
	if (cq->waiter.asleep)
		near_waiter_wake(&cq->waiter);
}

static const char *near_cq_strerror(struct fid_cq *cq, int prov_errno,
				    const void *err_data, char *buf, size_t len)
{
	return fi_strerror(prov_errno);
}

static int near_cq_close(struct fid *fid)
{
	struct near_cq *cq = near_container(fid, struct near_cq, fid.fid);
	struct near_domain *domain = cq->domain;
	struct near_cq_err *err;

	near_lock(domain);
	if (cq->refs) {
		near_unlock(domain);
		return -FI_EBUSY;
	}
	domain->refs--;
	near_unlock(domain);
	while ((err = cq->err_first)) {
		cq->err_first = err->next;
		free(err);
	}
	near_waiter_close(&cq->waiter);
	free(cq->ring);
	free(cq);
	return 0;
}

static struct fi_ops near_cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_cq_close,
	.bind = near_no_bind,
	.control = near_cq_control,
	.ops_open = near_no_ops_open,
};

static struct fi_ops_cq near_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = near_cq_read,
	.readfrom = near_cq_readfrom,
	.readerr = near_cq_readerr,
	.sread = near_cq_sread,
	.sreadfrom = near_cq_sreadfrom,
	.signal = near_cq_signal,
	.strerror = near_cq_strerror,
	NEAR_NO_XPU_CQ
};

static size_t near_cq_entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	case FI_CQ_FORMAT_UNSPEC:	/* as libfabric's own providers */
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return 0;
	}
}

static int near_cq_init(struct near_cq *cq, const struct fi_cq_attr *attr)
{
	size_t size = NEAR_CQ_MIN;
	int ret;

	cq->entry_size = near_cq_entry_size(attr->format);
	if (!cq->entry_size || attr->flags)
		return -FI_ENOSYS;
	while (size < attr->size && size < NEAR_CQ_MAX)
		size *= 2;
	cq->mask = size - 1;
	cq->ring = malloc(size * sizeof(*cq->ring));
	if (!cq->ring)
		return -FI_ENOMEM;
	cq->err_last = &cq->err_first;
	near_list_init(&cq->eps);
	ret = near_cq_wait_open(cq, attr->wait_obj);
	if (ret)
		free(cq->ring);
	return ret;
}

int near_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
		 struct fid_cq **cq_fid, void *context)
{
	static const struct fi_cq_attr common;
	struct near_cq *cq = calloc(1, sizeof(*cq));
	int ret;

	if (!cq)
		return -FI_ENOMEM;
	ret = near_cq_init(cq, attr ? attr : &common);
	if (ret) {
		free(cq);
		return ret;
	}
	cq->domain = near_domain_of(domain_fid);
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &near_cq_fi_ops;
	cq->fid.ops = &near_cq_ops;
	near_lock(cq->domain);
	cq->domain->refs++;
	near_unlock(cq->domain);
	*cq_fid = &cq->fid;
	return 0;
}
