/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Differences between the headers of libfabric 1.17 to 2.7. */
#ifndef DUO_COMPAT_H
#define DUO_COMPAT_H

#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>
#if __has_include(<rdma/fi_ext_efa.h>)	/* exists only if efa was built */
#include <rdma/fi_ext_efa.h>
#endif

#include "base/caller.h"
/* fi_ext.h of 1.17 is left out: it defines types that are defined below */
#if DUO_HEADERS(1, 18)
#include <rdma/fi_ext.h>
#endif

#define DUO_EFA_GDA_OPS "efa gda ops"	/* FI_EFA_GDA_OPS of 2.2 and later */

/* values of FI_MR_BASIC and FI_MR_SCALABLE, deprecated in newer headers */
#define DUO_MR_BASIC 1
#define DUO_MR_SCALABLE 2
/*
 * All MR modes but FI_MR_LOCAL. If the hints for efa had FI_MR_LOCAL, efa's
 * infos would require it of the application, although efa works without it.
 */
#define DUO_MR_ANY (FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | \
		    FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | \
		    FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_COLLECTIVE)

#define DUO_FI_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/*
 * Returns the API version for calls of libfabric: `version`, but at most the
 * version of the headers of this build. With a newer version, libfabric might
 * use structures that are larger than in these headers.
 */
static inline uint32_t duo_api_version(uint32_t version)
{
	return FI_VERSION_LT(version, DUO_FI_VERSION) ? version :
							DUO_FI_VERSION;
}

/*
 * Options that older headers lack. #ifdef cannot test for them, because the
 * headers define options as enumerators, not as macros.
 */
#if DUO_HEADERS(1, 18)
#define DUO_OPT_CUDA_PERMITTED FI_OPT_CUDA_API_PERMITTED
#else
#define DUO_OPT_CUDA_PERMITTED (-2)	/* matches no option */
#endif
#if DUO_HEADERS(1, 21)
#define DUO_OPT_SHM_PERMITTED FI_OPT_SHARED_MEMORY_PERMITTED
#else
#define DUO_OPT_SHM_PERMITTED (-1)	/* matches no option */
#endif

/* True for the options that make efa write blocks of 128 bytes in order. */
#if DUO_HEADERS(1, 18)
#define DUO_OPT_IN_ORDER(option) \
	((option) == FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES || \
	 (option) == FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES)
#else
#define DUO_OPT_IN_ORDER(option) false
#endif

#if FI_MAJOR_VERSION >= 2
#include <rdma/providers/fi_peer.h>

#else
/*
 * With libfabric 1.x, ofi_duo does not support libfabric's shm, because the
 * peer API (fi_peer(3)) of 1.x differs from that of 2.x. The build then has
 * shm/none.c. But structures of ofi_duo have members of types of this API, so
 * these types are declared here.
 */
#ifndef FI_EPROTO
#define FI_EPROTO EPROTO
#endif

struct fid_peer_srx {
	struct fid_ep ep_fid;
};

struct fid_peer_cq {
	struct fid fid;
};

struct fid_peer_cntr {
	struct fid fid;
};

struct fi_peer_rx_entry {
	struct fid_peer_srx *srx;
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
	uint64_t cq_data;
	uint64_t flags;
	void *context;
	size_t count;
	void **desc;
	void *peer_context;
	void *owner_context;
	struct iovec *iov;
};
#endif

/*
 * duo_cq_attr_copy() and duo_cntr_attr_copy() copy attributes without wait_set
 * and xpu_ctx, which ofi_duo does not support. The structures of older
 * applications end before xpu_ctx, which is new in libfabric 2.7.
 */
static inline struct fi_cq_attr duo_cq_attr_copy(const struct fi_cq_attr *attr)
{
	struct fi_cq_attr copy = { 0 };

	memcpy(&copy, attr, offsetof(struct fi_cq_attr, wait_set));
	return copy;
}

static inline struct fi_cntr_attr
duo_cntr_attr_copy(const struct fi_cntr_attr *attr)
{
	struct fi_cntr_attr copy = {
		.events = attr->events,
		.wait_obj = attr->wait_obj,
		.flags = attr->flags,
	};

	return copy;
}

#ifdef FI_MR_DMABUF
#define DUO_MR_DMABUF FI_MR_DMABUF
/*
 * If flags has FI_MR_DMABUF, stores the memory of attr->dmabuf in *iov, and
 * makes attr->mr_iov point to *iov.
 */
static inline void duo_mr_attr_iov(struct fi_mr_attr *attr, uint64_t flags,
				   struct iovec *iov)
{
	if (!(flags & FI_MR_DMABUF))
		return;
	iov->iov_base = (char *) attr->dmabuf->base_addr +
			attr->dmabuf->offset;
	iov->iov_len = attr->dmabuf->len;
	attr->mr_iov = iov;
}
#else
#define DUO_MR_DMABUF 0
#define duo_mr_attr_iov(attr, flags, iov) ((void) (attr), (void) (iov))
#endif

#endif /* DUO_COMPAT_H */
