/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Every difference between libfabric 2.0 and 2.6 that concerns us: the floor.
 * fi_peer_rx_entry lost its links in 2.3, but we use our own; what else has
 * changed is behaviour, and the version gate in init.c keeps a module to the
 * libfabric that it was built for.
 */
#ifndef DUO_COMPAT_H
#define DUO_COMPAT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_peer.h>

#define DUO_FI_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

#if FI_MAJOR_VERSION < 2
#error "libfabric >= 2.0 is needed: the peer CQ cannot be opened before"
#endif

#endif /* DUO_COMPAT_H */
