/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory regions. A key is (generation << 16 | index), 24 bits as on the
 * device. Each registration increments the generation, so that the old key of
 * an entry does not match. The data path reads entries without a lock: the key
 * is stored last and loaded first.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softefa.h"

#define SE_MR_INDEX 0xffffu

static struct se_mr_entry *se_mr_find(struct se_dev *dev, uint32_t key)
{
	struct se_mr_entry *entry;
	uint32_t index = key & SE_MR_INDEX;

	if (!index || index > se_cfg.max_mr)
		return NULL;
	entry = &dev->mr[index];
	if (atomic_load_explicit(&entry->key, memory_order_acquire) != key)
		return NULL;
	return entry;
}

static bool se_mr_covers(const struct se_mr_entry *entry, uint64_t addr,
			 uint64_t len)
{
	return addr >= entry->addr && len <= entry->len &&
	       addr - entry->addr <= entry->len - len;
}

bool se_mr_local_ok(struct se_qp *qp, const struct ibv_sge *sge, bool write)
{
	struct se_mr_entry *entry = se_mr_find(qp->dev, sge->lkey);

	return entry && entry->pd == qp->ex.qp_base.pd &&
	       se_mr_covers(entry, sge->addr, sge->length) &&
	       (!write || (entry->access & IBV_ACCESS_LOCAL_WRITE));
}

/*
 * See softefa.h. Store buffering with ibv_dereg_mr(): this function increments
 * users, then loads the key. ibv_dereg_mr() clears the key, then loads users.
 * All four accesses are sequentially consistent, so at least one of the two
 * loads returns the other function's value.
 */
struct se_mr_entry *se_mr_pin(struct se_qp *qp, uint32_t key, uint64_t addr,
			      uint64_t len, uint32_t access)
{
	struct se_mr_entry *entry = se_mr_find(qp->dev, key);

	if (!entry)
		return NULL;
	atomic_fetch_add(&entry->users, 1);
	if (atomic_load(&entry->key) == key &&
	    entry->pd == qp->ex.qp_base.pd &&
	    (entry->access & access) == access &&
	    se_mr_covers(entry, addr, len))
		return entry;
	se_mr_unpin(entry);
	return NULL;
}

void se_mr_unpin(struct se_mr_entry *entry)
{
	atomic_fetch_sub_explicit(&entry->users, 1, memory_order_release);
}

void se_mr_unpin_list(struct se_mr_entry **pins, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		if (pins[i])
			se_mr_unpin(pins[i]);
	}
}

bool se_mr_pin_list(struct se_qp *qp, const struct ibv_sge *sge, int count,
		    uint32_t access, struct se_mr_entry **pins)
{
	int i;

	for (i = 0; i < count; i++) {
		pins[i] = NULL;
		if (!sge[i].length)
			continue;
		pins[i] = se_mr_pin(qp, sge[i].lkey, sge[i].addr,
				    sge[i].length, access);
		if (!pins[i]) {
			se_mr_unpin_list(pins, i);
			return false;
		}
	}
	return true;
}

/* True if the memory's first and last byte are readable. */
static bool se_mr_readable(const char *addr, size_t len)
{
	char byte[2];
	struct iovec local = { byte, 2 };
	struct iovec remote[2] = {
		{ (void *)(uintptr_t)addr, 1 },
		{ (void *)(uintptr_t)(addr + len - 1), 1 },
	};
	ssize_t ret;

	ret = process_vm_readv(getpid(), &local, 1, remote, 2, 0);
	if (ret < 0)
		/* if the kernel permits no copy, assume readable memory */
		return errno != EFAULT;
	return ret == 2;
}

/*
 * True if all pages of the memory are mapped. With MS_ASYNC, msync() writes
 * nothing, but fails if a page is not mapped.
 */
static bool se_mr_mapped(const char *addr, size_t len)
{
	size_t skip = (uintptr_t)addr % (uintptr_t)sysconf(_SC_PAGESIZE);

	return !msync((void *)(uintptr_t)(addr - skip), len + skip, MS_ASYNC) ||
	       errno != ENOMEM;
}

#define SE_ACCESS_OPTIONAL 0x3ff00000u /* hints: the device may ignore them */

/*
 * Checks the access flags: first as ib_check_mr_access() of the kernel does,
 * then as efa_alloc_mr() of its EFA driver does. Returns 0 or an errno.
 */
static int se_mr_access_check(unsigned int access)
{
	unsigned int supported = IBV_ACCESS_LOCAL_WRITE | SE_ACCESS_OPTIONAL;

	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (se_cfg.caps & SE_CAP_RDMA_READ)
		supported |= IBV_ACCESS_REMOTE_READ;
	if (se_cfg.caps & SE_CAP_RDMA_WRITE)
		supported |= IBV_ACCESS_REMOTE_WRITE;
	return access & ~supported ? EOPNOTSUPP : 0;
}

static uint32_t se_mr_insert(const struct ibv_pd *pd, uint64_t addr,
			     uint64_t len, uint32_t access)
{
	struct se_dev *dev = se_dev_of(pd->context);
	uint32_t i, index, key = 0;
	static _Atomic uint32_t generation; /* shared by all devices */
	struct se_mr_entry *entry;

	pthread_mutex_lock(&dev->lock);
	for (i = 0; i < se_cfg.max_mr; i++) {
		index = dev->mr_next;
		dev->mr_next = index == se_cfg.max_mr ? 1 : index + 1;
		entry = &dev->mr[index];
		if (atomic_load_explicit(&entry->key, memory_order_relaxed))
			continue;
		key = (++generation & 0xff) << 16 | index;
		entry->pd = pd;
		entry->addr = addr;
		entry->len = len;
		entry->access = access;
		atomic_store_explicit(&entry->key, key, memory_order_release);
		dev->mr_count++;
		break;
	}
	pthread_mutex_unlock(&dev->lock);
	return key;
}

SE_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					  size_t length, uint64_t iova,
					  unsigned int access)
{
	struct ibv_mr *mr;
	uint32_t key;

	errno = se_mr_access_check(access);
	if (!errno && (!length || length > UINTPTR_MAX - (uintptr_t)addr))
		errno = EINVAL;
	if (!errno && iova != (uintptr_t)addr)
		errno = EOPNOTSUPP;
	if (errno)
		return NULL;
	if (!se_mr_mapped(addr, length) || !se_mr_readable(addr, length)) {
		errno = EFAULT;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	key = se_mr_insert(pd, iova, length, access);
	if (!key) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->handle = key & SE_MR_INDEX;
	mr->lkey = key;
	mr->rkey = key;
	return mr;
}

SE_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
				    size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr,
				(unsigned int)access);
}

SE_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					 size_t length, uint64_t iova,
					 int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

SE_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					   size_t length, uint64_t iova,
					   int fd, int access)
{
	errno = EOPNOTSUPP; /* only host memory is supported */
	return NULL;
}

SE_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct se_dev *dev = se_dev_of(mr->context);
	struct se_mr_entry *entry = &dev->mr[mr->lkey & SE_MR_INDEX];

	pthread_mutex_lock(&dev->lock);
	atomic_store(&entry->key, 0);
	while (atomic_load(&entry->users))
		sched_yield(); /* each user unpins after one packet's copy */
	dev->mr_count--;
	pthread_mutex_unlock(&dev->lock);
	free(mr);
	return 0;
}
