/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_setname() and fi_getname(). Calls for connections are not supported. */

#include "fi/api.h"
#include "base/enosys.h"
#include "base/util.h"
#include "obj/ep.h"

static int duo_ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	return fi_setname(&ep->path_ep[FI_DUO_CORE]->fid, addr, addrlen);
}

static int duo_ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	return fi_getname(&ep->path_ep[FI_DUO_CORE]->fid, addr, addrlen);
}

struct fi_ops_cm duo_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = duo_ep_setname,
	.getname = duo_ep_getname,
	.getpeer = duo_no_getpeer,
	.connect = duo_no_connect,
	.listen = duo_no_listen,
	.accept = duo_no_accept,
	.reject = duo_no_reject,
	.shutdown = duo_no_shutdown,
	.join = duo_no_join,
};
