/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sizes of structures that an application passes. They depend on the API
 * version that the application has passed to fi_getinfo(), because newer
 * versions append fields. ofi_duo accesses no field beyond the size of the
 * application's version. The functions of this file are not for the data path.
 */
#ifndef DUO_CALLER_H
#define DUO_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

/* True if this build has the headers of this version or of a newer one. */
#define DUO_HEADERS(major, minor) \
	(FI_MAJOR_VERSION > (major) || \
	 (FI_MAJOR_VERSION == (major) && FI_MINOR_VERSION >= (minor)))

/* size of struct fi_cq_err_entry in API versions 1.5 to 1.19, bytes */
#if DUO_HEADERS(1, 20)
#define DUO_CQ_ERR_OF_1_5 offsetof(struct fi_cq_err_entry, src_addr)
/* initializer of the field src_addr; FI_ADDR_NOTAVAIL: no source */
#define DUO_CQ_ERR_SRC(src) .src_addr = (src),
#else
#define DUO_CQ_ERR_OF_1_5 sizeof(struct fi_cq_err_entry)
/* There is no src_addr. `0 * (src)` avoids a warning about an unused value. */
#define DUO_CQ_ERR_SRC(src) .err_data_size = 0 * (src),
#endif

/* Returns the size of struct fi_cq_err_entry in an API version, bytes. */
static inline size_t duo_caller_cq_err(uint32_t version)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return offsetof(struct fi_cq_err_entry, err_data_size);
	if (FI_VERSION_LT(version, FI_VERSION(1, 20)))
		return DUO_CQ_ERR_OF_1_5;
	return sizeof(struct fi_cq_err_entry);
}

/*
 * Returns the size of struct fi_mr_attr in an API version, bytes, without
 * base_mr. ofi_duo does not support sub-regions, and hooks of libfabric 2.0 to
 * 2.6 leave base_mr uninitialized.
 */
static inline size_t duo_caller_mr(uint32_t version)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return offsetof(struct fi_mr_attr, auth_key_size);
	if (FI_VERSION_LT(version, FI_VERSION(1, 9)))
		return offsetof(struct fi_mr_attr, iface);
#if FI_MAJOR_VERSION >= 2
	if (FI_VERSION_LT(version, FI_VERSION(1, 19)))
		return offsetof(struct fi_mr_attr, hmem_data);
	if (FI_VERSION_LT(version, FI_VERSION(1, 22)))
		return offsetof(struct fi_mr_attr, page_size);
	return offsetof(struct fi_mr_attr, base_mr);
#else
	return offsetof(struct fi_mr_attr, device) +
	       sizeof(((struct fi_mr_attr *)NULL)->device);
#endif
}

/*
 * Copies the attributes of an application with this API version. Fields that
 * the version does not have are 0 in the copy. hmem: the application has
 * requested FI_HMEM. If `hmem` is false, the copy describes host memory.
 */
static inline struct fi_mr_attr
duo_caller_mr_attr(const struct fi_mr_attr *attr, uint32_t version, bool hmem)
{
	struct fi_mr_attr copy = { .iov_count = 0 };

	memcpy(&copy, attr, duo_caller_mr(version));
	if (hmem)
		return copy;
	copy.iface = FI_HMEM_SYSTEM;
	memset(&copy.device, 0, sizeof(copy.device));
#if FI_MAJOR_VERSION >= 2
	copy.hmem_data = NULL;
#endif
	return copy;
}

#endif /* DUO_CALLER_H */
