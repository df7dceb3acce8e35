/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The fake core's memory regions. */

#include "fake.h"

static int fake_core_mr_bind(struct fid *fid, struct fid *bfid,
			     uint64_t flags)
{
	fake_obj_of(fid);
	fake.core.mr_bound = bfid;
	return 0;
}

/* Enables a region: its key and its descriptor change. */
static int fake_core_mr_control(struct fid *fid, int command, void *arg)
{
	struct fake_obj *mr = fake_obj_of(fid);

	if (command != FI_ENABLE)
		return fake_control(fid, command, arg);
	mr->mr.key++;
	mr->mr.mem_desc = &mr->mr.key;
	return 0;
}

static int fake_core_mr_close(struct fid *fid)
{
	struct fake_obj *mr = fake_obj_of(fid);

	return mr->again ? mr->again--, 0 : fake_close(fid);
}

static struct fi_ops fake_core_mr_fid_ops =
	FAKE_FID_OPS(fake_core_mr_close, fake_core_mr_bind,
		     fake_core_mr_control, fake_ops_open);

static int fake_core_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
				uint64_t flags, struct fid_mr **mr)
{
	struct fake_obj *obj = fake.core.cached;
	int ret;

	if (obj) {
		obj->again++;
		*mr = &obj->mr;
		return 0;
	}
	ret = fake_open(fake_obj_of(fid), FI_CLASS_MR, &fake_core_mr_fid_ops,
			&obj);
	if (ret)
		return ret;
	obj->mr.key = attr->requested_key;
	obj->mr.mem_desc = obj;
	obj->iface = attr->iface;
	obj->device = attr->device.cuda;
	fake.core.base_mr = attr->base_mr;
	*mr = &obj->mr;
	return 0;
}

struct fi_ops_mr fake_core_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.regattr = fake_core_mr_regattr,
};
