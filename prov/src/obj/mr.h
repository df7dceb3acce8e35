/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A memory region of the core. near's region table lists it with the core's key
 * (transport/near/onesided.h). A region of device memory is found by its
 * descriptor, or by near through near_region_entry.device (device/device.h).
 * Lock: the domain's, for both.
 */
#ifndef DUO_MR_H
#define DUO_MR_H

#include <stdbool.h>

#include "base/compat.h"
#include "near/near.h"

struct duo_device_iface;
struct duo_domain;

struct duo_mr {
	struct fid_mr mr_fid;	/* key and descriptor are the core's */
	struct duo_domain *domain;
	struct fid_mr *core;
	const struct duo_device_iface *device;	/* NULL: host memory */
	void *device_state;	/* private to the interface */
	struct near_region_entry region;	/* near's entry */
	bool listed;		/* in near's region table */
};

#endif /* DUO_MR_H */
