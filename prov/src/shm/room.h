/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Pages of /dev/shm for an endpoint's region. shm only maps its region, and
 * to use a page that /dev/shm has no room for is SIGBUS. Pure.
 */
#ifndef DUO_ROOM_H
#define DUO_ROOM_H

#include <rdma/fi_endpoint.h>

/* 0, -FI_ENOSPC: no room even now, or -EFBIG: RLIMIT_FSIZE. Takes nothing. */
int duo_room_check(void);
/*
 * Enables an endpoint of shm, which writes to its region, and then gives the
 * region all its pages. -FI_ENOSPC: there is too little room; the endpoint
 * can only be closed. Nobody need be kept from taking room meanwhile.
 */
int duo_room_enable(struct fid_ep *shm, const char *name);

#endif /* DUO_ROOM_H */
