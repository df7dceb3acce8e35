/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What the provider does not do; none of it is advertised. */

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "duo.h"

int duo_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int duo_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int duo_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	return -FI_ENOSYS;
}

int duo_no_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		       struct fid_ep **sep, void *context)
{
	return -FI_ENOSYS;
}

int duo_no_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **pollset)
{
	return -FI_ENOSYS;
}

int duo_no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr,
		   struct fid_stx **stx, void *context)
{
	return -FI_ENOSYS;
}

int duo_no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr,
		   struct fid_ep **rx_ep, void *context)
{
	return -FI_ENOSYS;
}

/* FI_RMA: every variant ends here. */
static ssize_t duo_no_rma_one(struct fid_ep *ep, void *buf, size_t len,
			      void *desc, fi_addr_t addr, uint64_t raddr,
			      uint64_t key, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_rma_v(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t addr,
			    uint64_t raddr, uint64_t key, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_rma_msg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			      uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_write(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, fi_addr_t addr, uint64_t raddr,
			    uint64_t key, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_rma_inject(struct fid_ep *ep, const void *buf,
				 size_t len, fi_addr_t addr, uint64_t raddr,
				 uint64_t key)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_writedata(struct fid_ep *ep, const void *buf, size_t len,
				void *desc, uint64_t data, fi_addr_t addr,
				uint64_t raddr, uint64_t key, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_inject_writedata(struct fid_ep *ep, const void *buf,
				       size_t len, uint64_t data,
				       fi_addr_t addr, uint64_t raddr,
				       uint64_t key)
{
	return -FI_ENOSYS;
}

struct fi_ops_rma duo_no_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = duo_no_rma_one,
	.readv = duo_no_rma_v,
	.readmsg = duo_no_rma_msg,
	.write = duo_no_write,
	.writev = duo_no_rma_v,
	.writemsg = duo_no_rma_msg,
	.inject = duo_no_rma_inject,
	.writedata = duo_no_writedata,
	.injectdata = duo_no_inject_writedata,
};
