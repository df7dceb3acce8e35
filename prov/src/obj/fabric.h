/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A fabric of ofi_duo: has the fabrics of both paths. A mutex of fi/opened.c
 * protects the list of fabrics, and each fabric's list of domains.
 */
#ifndef DUO_FABRIC_H
#define DUO_FABRIC_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/decoy.h"
#include "base/util.h"
#include "obj/traits.h"

/*
 * Context with which ofi_duo opens the core's fabric. By this context the hook
 * detects that ofi_duo has opened the fabric, and does not wrap it again. No
 * application passes this function as a context, and its address is the same in
 * all modules.
 */
#define DUO_WRAPPED ((void *) fi_strerror)

struct duo_domain;
struct duo_transport;

struct duo_fabric {
	struct fid_fabric fabric_fid;
	struct duo_decoy decoy;
	struct fid_fabric *path_fabric[FI_DUO_PATH_COUNT];
	/* local transport; NULL: none */
	const struct duo_transport *peer;
	/* info of shm; NULL: the local transport is not shm */
	struct fi_info *shm_info;
	char *core_name;
	char *name;	/* name of the core's fabric; NULL: none */
	LIST_ENTRY(duo_fabric) link; /* in fi/opened.c's list, latest first */
	LIST_HEAD(, duo_domain) domains;	/* open domains, latest first */
	struct duo_traits traits;	/* traits of the core */
	atomic_int refs;
};

static inline struct duo_fabric *duo_fabric_of(struct fid_fabric *fabric_fid)
{
	return duo_container_of(fabric_fid, struct duo_fabric, fabric_fid);
}

#endif /* DUO_FABRIC_H */
