/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory for the fakes: pages that nobody may touch, and a second view
 * of them, which is what a device's library would reach.
 */

#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "fake.h"

void fake_device_open(size_t len)
{
	int fd = memfd_create("fake device", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, len), 0);
	fake.device.base = mmap(NULL, len, PROT_NONE, MAP_SHARED, fd, 0);
	fake.device.shadow = mmap(NULL, len, PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);
	fake.device.len = len;
	ck_assert_ptr_ne(fake.device.base, MAP_FAILED);
	ck_assert_ptr_ne(fake.device.shadow, MAP_FAILED);
	close(fd);
}

void fake_device_close(void)
{
	munmap(fake.device.base, fake.device.len);
	munmap(fake.device.shadow, fake.device.len);
	memset(&fake.device, 0, sizeof(fake.device));
}

char *fake_reach(enum fi_duo_path path, void *buf, void *desc)
{
	uintptr_t at = (uintptr_t) buf - (uintptr_t) fake.device.base;
	const struct fake_obj *mr = desc;

	if (at >= fake.device.len) {
		ck_assert_msg(path == FI_DUO_CORE || !desc,
			      "a descriptor of host memory was given to shm");
		return buf;
	}
	ck_assert_msg(desc, "path %d: device memory without descriptor", path);
	ck_assert_uint_eq(mr->mr.fid.fclass, FI_CLASS_MR);
	ck_assert_msg(!mr->closed && mr->path == path,
		      "path %d was given a descriptor of path %d", path,
		      mr->path);
	ck_assert_int_eq(mr->iface, FI_HMEM_CUDA);
	return fake.device.shadow + at;
}

static int fake_shm_mr_close(struct fid *fid)
{
	fake_shm_check(fake_obj_of(fid));
	return fake_close(fid);
}

static struct fi_ops fake_shm_mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fake_shm_mr_close,
	.bind = fake_no_bind,
	.control = fake_control,
};

static int fake_shm_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			       uint64_t flags, struct fid_mr **mr)
{
	struct fake_obj *obj;
	int ret;

	fake_shm_check(fake_obj_of(fid));
	ck_assert_ptr_null(attr->base_mr);
	ret = fake_open(fake_obj_of(fid), FI_CLASS_MR, &fake_shm_mr_fid_ops,
			&obj);
	if (ret)
		return ret;
	obj->mr.mem_desc = obj;
	obj->iface = attr->iface;
	obj->device = attr->device.cuda;
	obj->mr.key = attr->requested_key;
	*mr = &obj->mr;
	return 0;
}

/* Host memory is never registered with shm. */
struct fi_ops_mr fake_shm_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.regattr = fake_shm_mr_regattr,
};
