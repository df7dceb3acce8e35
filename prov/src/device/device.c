/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dlfcn.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/log.h"
#include "base/params.h"
#include "device/device.h"
#include "device/stream.h"
#include "obj/av.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/mr.h"

/* size of the bounce buffer, bytes */
#define DUO_DEVICE_PART ((size_t) 256 << 10)
/* length of the shortest host region that is pinned, bytes */
#define DUO_DEVICE_PIN_MIN ((size_t) 64 << 10)

static const struct duo_device_iface duo_neuron_iface = {
	.id = FI_HMEM_NEURON, .name = "Neuron", .library = "libnrt.so.1",
};

static const struct duo_device_iface duo_synapse_iface = {
	.id = FI_HMEM_SYNAPSEAI, .name = "SynapseAI",
	.library = "libSynapse.so",
};

static const struct duo_device_iface *const duo_device_table[] = {
	&duo_cuda_iface, &duo_rocr_iface, &duo_ze_iface, &duo_neuron_iface,
	&duo_synapse_iface, NULL,
};

const struct duo_device_iface *const *duo_device_ifaces = duo_device_table;

static bool duo_device_loaded(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle;
}

const char *duo_device_unsupported(void)
{
	const struct duo_device_iface *const *iface;

	for (iface = duo_device_ifaces; *iface; iface++) {
		if ((*iface)->library && duo_device_loaded((*iface)->library))
			return (*iface)->name;
	}
	return NULL;
}

static int duo_device_compare(const void *a, const void *b)
{
	const struct duo_mr *one = a, *other = b;
	uintptr_t desc = (uintptr_t) one->mr_fid.mem_desc;
	uintptr_t other_desc = (uintptr_t) other->mr_fid.mem_desc;

	return (desc > other_desc) - (desc < other_desc);
}

bool duo_device_unlist(struct duo_mr *mr)
{
	struct duo_mr **found;
	bool last;

	if (!mr->device || !mr->mr_fid.mem_desc)
		return true;
	duo_lock(&mr->domain->group.lock);
	last = !mr->again;
	mr->again -= !last;
	found = tfind(mr, &mr->domain->device_mrs, duo_device_compare);
	/* the tree might have another struct with the same descriptor */
	if (last && found && *found == mr)
		tdelete(mr, &mr->domain->device_mrs, duo_device_compare);
	duo_unlock(&mr->domain->group.lock);
	return last;
}

/*
 * Makes all endpoints of the domain take the slow paths, because the fast paths
 * ignore descriptors.
 */
static void duo_device_attend(struct duo_domain *domain)
{
	struct duo_av *av;
	struct duo_ep *ep;

	LIST_FOREACH(av, &domain->avs, link)
		LIST_FOREACH(ep, &av->eps, av_link)
			duo_ep_attend(ep);
}

int duo_device_list(struct duo_mr *mr, struct duo_mr **open)
{
	struct duo_domain *domain = mr->domain;
	struct duo_mr **node;
	bool first;

	if (!mr->device || !mr->mr_fid.mem_desc)
		return 0;
	duo_lock(&domain->group.lock);
	first = !domain->device_mrs;
	node = tsearch(mr, &domain->device_mrs, duo_device_compare);
	if (first && node)
		duo_device_attend(domain);
	if (open && node && *node != mr && (*node)->core == mr->core) {
		*open = *node;
		(*open)->again++;
	}
	duo_unlock(&domain->group.lock);
	return node ? 0 : -FI_ENOMEM;
}

static int duo_device_open(struct duo_mr *mr, const struct fi_mr_attr *attr)
{
	const struct duo_device_iface *const *iface = duo_device_ifaces;
	int ret;

	while (*iface && (*iface)->id != attr->iface)
		iface++;
	if (!*iface || !(*iface)->open || !attr->iov_count)
		return -FI_ENOSYS;
	ret = (*iface)->open(attr, attr->mr_iov->iov_base, &mr->stream);
	if (!ret)
		mr->device = *iface;
	return ret;
}

/* Pins a host region if possible, so that a device can copy from and to it. */
static void duo_device_pin_host(struct duo_mr *mr, const struct iovec *iov)
{
	const struct duo_device_iface *const *iface = duo_device_ifaces;

	while (*iface && !(*iface)->pinned)
		iface++;
	if (*iface && duo_params.gpu_ipc && iov->iov_len >= DUO_DEVICE_PIN_MIN)
		mr->pin = (*iface)->pin(NULL, iov->iov_base, iov->iov_len);
}

int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			struct duo_mr **open)
{
	int ret;

	*open = mr;
	if (!mr->domain->device)
		return 0;
	if (attr->iface == FI_HMEM_SYSTEM) {
		if (attr->iov_count == 1)
			duo_device_pin_host(mr, attr->mr_iov);
		return 0;
	}
	ret = duo_device_open(mr, attr);
	if (ret) {
		DUO_WARN(MR, "memory region with interface %d: near cannot "
			 "copy from and to it: %s. Set FI_OFI_DUO_LOCAL=off, "
			 "so that the core %s carries all messages\n",
			 (int) attr->iface, fi_strerror(-ret),
			 mr->domain->fabric->core_name);
		return ret;
	}
	ret = duo_device_list(mr, open);
	if (ret)
		duo_device_forget(mr);
	return ret;
}

void duo_device_release(void *handle)
{
	((struct duo_device_handle *) handle)->release(handle);
}

void duo_device_forget(struct duo_mr *mr)
{
	if (mr->pin)
		duo_device_release(mr->pin);
	if (!mr->device)
		return;
	duo_stream_close(mr->stream);
	mr->device = NULL;
}

struct duo_mr *duo_device_find(const struct duo_domain *domain, void *desc)
{
	const struct duo_mr key = { .mr_fid.mem_desc = desc };
	struct duo_mr **found;

	if (!desc)
		return NULL;
	found = tfind(&key, &domain->device_mrs, duo_device_compare);
	return found ? *found : NULL;
}

bool duo_device_handles(const struct duo_domain *domain, void *const *desc,
			size_t count, void **handle)
{
	struct duo_mr *mr;
	bool any = false;
	size_t i;

	for (i = 0; domain->device && desc && i < count; i++) {
		mr = duo_device_find(domain, desc[i]);
		any = any || mr;
		if (handle)
			handle[i] = mr;
	}
	return any;
}

static int duo_device_start(void *device, void *to, const void *from,
			    size_t len, void **copy)
{
	const struct duo_mr *mr = device;

	return duo_stream_start(mr->stream, to, from, len, copy);
}

static void *duo_device_pin(void *device, void *memory, size_t len)
{
	const struct duo_mr *mr = device;

	return mr->device->pin ? mr->device->pin(mr->stream, memory, len) :
				 NULL;
}

int duo_device_export(const struct duo_mr *mr, const struct iovec *iov,
		      struct near_export *export)
{
	if (!duo_params.gpu_ipc || !mr->device->export)
		return -FI_ENOSYS;
	return mr->device->export(mr->stream, iov->iov_base, iov->iov_len,
				  export);
}

static const void *duo_device_queue(void *device)
{
	const struct duo_mr *mr = device;

	return duo_params.gpu_ipc && mr->device->map ? mr->stream : NULL;
}

/*
 * Implements near_device.host(): returns the region of device memory at the
 * root of the domain's tree, if the device of this region can access the host
 * memory; otherwise NULL. Does not test other regions.
 */
static void *duo_device_host(void *ctx, const void *memory, size_t len)
{
	const struct duo_domain *domain = ((const struct duo_ep *) ctx)->domain;
	/* a node of tsearch() begins with the pointer to its region */
	struct duo_mr *const *root = domain->device_mrs;

	return root && (*root)->device->pinned &&
	       (*root)->device->pinned((*root)->stream, memory, len) ?
	       *root : NULL;
}

static int duo_device_share(void *device)
{
	const struct duo_mr *mr = device;

	return mr->device->share((void *) (uintptr_t) mr->region.memory);
}

static bool duo_device_lend(void *device, const void *memory, size_t len,
			    uint64_t *key, uint64_t *addr)
{
	return duo_mr_name(device, NEAR_MAY_LEND, memory, len, key, addr);
}

static int duo_device_map(void *device, const struct near_export *export,
			  int fd, struct near_map *map)
{
	const struct duo_mr *mr = device;

	return mr->device->map(mr->stream, export, fd, map);
}

const struct near_device duo_device_near = {
	.start = duo_device_start,
	.done = duo_stream_done,
	.pin = duo_device_pin,
	.unpin = duo_device_release,
	.queue = duo_device_queue,
	.host = duo_device_host,
	.share = duo_device_share,
	.lend = duo_device_lend,
	.map = duo_device_map,
};

/*
 * The bounce buffer of a domain: host memory of DUO_DEVICE_PART bytes, through
 * which duo_device_out() and duo_device_in() copy.
 */
struct duo_device_bounce {
	char *memory;
	void *pin;		/* NULL: the memory is not pinned */
};

/*
 * Returns the bounce buffer; NULL: no memory. The first call creates the
 * buffer, and pins it for the device of mr if possible.
 */
static struct duo_device_bounce *duo_device_bounce(struct duo_domain *domain,
						   struct duo_mr *mr)
{
	struct duo_device_bounce *bounce = domain->device_bounce;

	if (bounce)
		return bounce;
	bounce = calloc(1, sizeof(*bounce));
	if (!bounce)
		return NULL;
	bounce->memory = mmap(NULL, DUO_DEVICE_PART, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bounce->memory == MAP_FAILED) {
		free(bounce);
		return NULL;
	}
	bounce->pin = duo_device_pin(mr, bounce->memory, DUO_DEVICE_PART);
	domain->device_bounce = bounce;
	return bounce;
}

void duo_device_close(struct duo_domain *domain)
{
	struct duo_device_bounce *bounce = domain->device_bounce;

	if (!bounce)
		return;
	if (bounce->pin)
		duo_device_release(bounce->pin);
	munmap(bounce->memory, DUO_DEVICE_PART);
	free(bounce);
}

/* Copies, and waits for the end of the copy. Returns 0 or an error. */
static int duo_device_copy_now(struct duo_mr *mr, void *to, const void *from,
			       size_t len)
{
	void *copy;
	int ret = duo_device_start(mr, to, from, len, &copy);

	if (ret)
		return ret;
	do
		ret = duo_stream_done(copy);
	while (ret == -FI_EAGAIN);
	return ret;
}

/*
 * Copies between device memory and host memory through the bounce buffer. If
 * `out` is true, copies from `device` to `host`, otherwise from `host` to
 * `device`.
 */
static int duo_device_copy(struct duo_domain *domain, struct duo_mr *mr,
			   bool out, char *device, char *host, size_t len)
{
	struct duo_device_bounce *bounce = duo_device_bounce(domain, mr);
	int ret = bounce ? 0 : -FI_ENOMEM;
	size_t n;

	for (; len && !ret; len -= n, device += n, host += n) {
		n = duo_min(len, DUO_DEVICE_PART);
		if (!out)
			memcpy(bounce->memory, host, n);
		ret = duo_device_copy_now(mr, out ? bounce->memory : device,
					  out ? device : bounce->memory, n);
		if (out && !ret)
			memcpy(host, bounce->memory, n);
	}
	return ret;
}

static int duo_device_move(struct duo_domain *domain, bool out, char *host,
			   const struct iovec *iov, void *const *desc,
			   size_t len)
{
	struct duo_mr *mr;
	int ret = 0;
	size_t n;

	for (; !ret && len; iov++, desc++, host += n, len -= n) {
		n = duo_min(iov->iov_len, len);
		mr = duo_device_find(domain, *desc);
		if (mr && n)
			ret = duo_device_copy(domain, mr, out, iov->iov_base,
					      host, n);
		else if (n)
			memcpy(out ? host : iov->iov_base,
			       out ? iov->iov_base : host, n);
	}
	return ret;
}

int duo_device_out(struct duo_domain *domain, void *host,
		   const struct iovec *iov, void *const *desc, size_t len)
{
	return duo_device_move(domain, true, host, iov, desc, len);
}

int duo_device_in(struct duo_domain *domain, const struct iovec *iov,
		  void *const *desc, const void *host, size_t len)
{
	return duo_device_move(domain, false, (char *) host, iov, desc, len);
}
