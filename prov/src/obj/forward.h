/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Passes fi_open_ops() and fi_control() to the core's object. Lock: none. */
#ifndef DUO_FORWARD_H
#define DUO_FORWARD_H

#include <stdint.h>
#include <rdma/fabric.h>

int duo_core_ops_open(struct fid *fid, const char *name, uint64_t flags,
		      void **ops, void *context);
int duo_core_control(struct fid *fid, int command, void *arg);

#endif /* DUO_FORWARD_H */
