/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Fabrics, and event queues on which nothing happens. */

#include <stdlib.h>

#include "api/near_fi.h"

struct near_eq {
	struct fid_eq fid;
	struct near_fabric *fabric;
};

static int near_eq_close(struct fid *fid)
{
	struct near_eq *eq = near_container(fid, struct near_eq, fid.fid);

	__atomic_fetch_sub(&eq->fabric->refs, 1, __ATOMIC_RELAXED);
	free(eq);
	return 0;
}

static ssize_t near_eq_read(struct fid_eq *eq, uint32_t *event, void *buf,
			    size_t len, uint64_t flags)
{
	return -FI_EAGAIN;
}

static ssize_t near_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf,
			       uint64_t flags)
{
	return -FI_EAGAIN;
}

static ssize_t near_eq_write(struct fid_eq *eq, uint32_t event,
			     const void *buf, size_t len, uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t near_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf,
			     size_t len, int timeout, uint64_t flags)
{
	return -FI_ENOSYS;
}

static const char *near_eq_strerror(struct fid_eq *eq, int prov_errno,
				    const void *err_data, char *buf, size_t len)
{
	return fi_strerror(prov_errno);
}

static struct fi_ops near_eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_eq_close,
	.bind = near_no_bind,
	.control = near_no_control,
	.ops_open = near_no_ops_open,
};

static struct fi_ops_eq near_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = near_eq_read,
	.readerr = near_eq_readerr,
	.write = near_eq_write,
	.sread = near_eq_sread,
	.strerror = near_eq_strerror,
};

/* For applications that always open one; near has no connections. */
int near_eq_open(struct fid_fabric *fabric_fid, struct fi_eq_attr *attr,
		 struct fid_eq **eq_fid, void *context)
{
	struct near_eq *eq = calloc(1, sizeof(*eq));

	if (!eq)
		return -FI_ENOMEM;
	eq->fabric = near_fabric_of(fabric_fid);
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &near_eq_fi_ops;
	eq->fid.ops = &near_eq_ops;
	__atomic_fetch_add(&eq->fabric->refs, 1, __ATOMIC_RELAXED);
	*eq_fid = &eq->fid;
	return 0;
}

static int near_fabric_close(struct fid *fid)
{
	struct near_fabric *fabric = near_container(fid, struct near_fabric,
						    fid.fid);

	if (__atomic_load_n(&fabric->refs, __ATOMIC_RELAXED))
		return -FI_EBUSY;
	near_closed_fabric(fabric);
	free(fabric);
	return 0;
}

static int near_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
			   struct fid_pep **pep, void *context)
{
	return -FI_ENOSYS;
}

static int near_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			  struct fid_wait **waitset)
{
	return -FI_ENOSYS;
}

static struct fi_ops near_fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_fabric_close,
	.bind = near_no_bind,
	.control = near_no_control,
	.ops_open = near_no_ops_open,
};

static struct fi_ops_fabric near_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = near_domain_open,
	.passive_ep = near_passive_ep,
	.eq_open = near_eq_open,
	.wait_open = near_wait_open,
	.trywait = near_trywait,
};

int near_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid,
		     void *context)
{
	struct near_fabric *fabric = calloc(1, sizeof(*fabric));

	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &near_fabric_fi_ops;
	fabric->fid.ops = &near_fabric_ops;
	fabric->fid.api_version = attr->api_version;
	near_opened_fabric(fabric);
	*fid = &fabric->fid;
	return 0;
}
