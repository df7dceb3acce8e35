/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory (FI_HMEM) between local peers, by libfabric's shm: it copies
 * by the device's library, or maps the peer's memory. The application has the
 * core's descriptors; a region of device memory is registered with shm as
 * well, which has descriptors of its own, found by those of the core. Host
 * memory needs none.
 *
 * Cost: a branch for each message where no device memory is; where there may
 * be some, a search of a tree for each buffer with a descriptor.
 */
#ifndef DUO_DEVICE_H
#define DUO_DEVICE_H

#include <stdint.h>
#include <rdma/fi_domain.h>

struct duo_domain;
struct duo_mr;
struct duo_rx;

/*
 * Of a region that the core has registered, with its interface. 0; or what
 * shm says, and then the region is not usable. flags: of fi_mr_regattr(3).
 * These four take the domain's lock.
 */
int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			uint64_t flags);
void duo_device_forget(struct duo_mr *mr);
/*
 * Before and after the core changes the region's descriptor; -FI_ENOMEM. A
 * region without one cannot be found, and is not listed.
 */
void duo_device_unlist(struct duo_mr *mr);
int duo_device_list(struct duo_mr *mr);
/* shm's of the core's; NULL: host memory. Under the domain's lock. */
void *duo_device_desc(const struct duo_domain *domain, void *desc);
/* The same of a receive that shm is about to write to. */
void duo_device_receive(struct duo_rx *rx);

#endif /* DUO_DEVICE_H */
