/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Defines the provider's name, and the parameters with their defaults. */

#include "base/compat.h"
#include "base/hints.h"
#include "base/log.h"
#include "base/params.h"
#include "near/near.h"

/*
 * The provider's version is computed from libfabric's version, as in
 * libfabric's own providers, because applications compare it with efa's
 * version. Open MPI's btl/ofi needs at least 112.0.
 */
struct fi_provider duo_prov = {
	.version = FI_VERSION(FI_MAJOR_VERSION * 100 + FI_MINOR_VERSION,
			      FI_REVISION_VERSION * 10),
	.fi_version = DUO_FI_VERSION,
	.name = DUO_NAME,
};

struct duo_params duo_params = {
	.local_on = true,
	.local = DUO_TRANSPORT_NEAR,
	.stats = 0,
	.cores = "efa,tcp,verbs;ofi_rxm",
	.registry_dir = DUO_DEV_SHM,
	.defer_polls = 64,
	.defer_us = 200,
	.core_poll_interval = 64,
	.wait_poll_us = 500,
	.ring_memory = NEAR_MEMORY,
	.cma = 1,
	.gpu_ipc = 1,
	.ptracer = 1,
	.yield_mask = 63,
};

__thread bool duo_in_getinfo;
