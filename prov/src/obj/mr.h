/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A memory region: the core's; near lists it under the core's key
 * (transport/near/onesided.h), and a device's is found by its descriptor, or by near
 * as near_region_entry.device (device/device.h). Those are under the domain's
 * lock.
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
	void *device_state;	/* the interface's */
	struct near_region_entry region;	/* as near lists it */
	bool listed;
};

#endif /* DUO_MR_H */
