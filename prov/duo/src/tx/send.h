/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sends: one decision, one call. The path of a fi_addr is one load (route.h);
 * the message goes to that path's endpoint as it is. Over the core no lock is
 * taken, over shared memory the domain's. onesided.h is for RMA and atomics.
 *
 * Cost: some 20 instructions beside the path's own.
 */
#ifndef DUO_SEND_H
#define DUO_SEND_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/ep.h"

/* After each send, RMA or atomic that the core was given. Takes no lock. */
static inline void duo_tx_core_called(struct duo_ep *ep)
{
	if (ep->tx_cq)	/* or it only receives, or has only counters */
		duo_cq_core_active(ep->tx_cq);
	if (__builtin_expect(ep->counted, false))
		duo_cntr_rouse(ep);
}

ssize_t duo_send(struct fid_ep *ep_fid, const void *buf, size_t len,
		 void *desc, fi_addr_t dest, void *context);
ssize_t duo_sendv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		  size_t count, fi_addr_t dest, void *context);
ssize_t duo_sendmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
		    uint64_t flags);
ssize_t duo_inject(struct fid_ep *ep_fid, const void *buf, size_t len,
		   fi_addr_t dest);
ssize_t duo_senddata(struct fid_ep *ep_fid, const void *buf, size_t len,
		     void *desc, uint64_t data, fi_addr_t dest, void *context);
ssize_t duo_injectdata(struct fid_ep *ep_fid, const void *buf, size_t len,
		       uint64_t data, fi_addr_t dest);
ssize_t duo_tsend(struct fid_ep *ep_fid, const void *buf, size_t len,
		  void *desc, fi_addr_t dest, uint64_t tag, void *context);
ssize_t duo_tsendv(struct fid_ep *ep_fid, const struct iovec *iov,
		   void **desc, size_t count, fi_addr_t dest, uint64_t tag,
		   void *context);
ssize_t duo_tsendmsg(struct fid_ep *ep_fid, const struct fi_msg_tagged *msg,
		     uint64_t flags);
ssize_t duo_tinject(struct fid_ep *ep_fid, const void *buf, size_t len,
		    fi_addr_t dest, uint64_t tag);
ssize_t duo_tsenddata(struct fid_ep *ep_fid, const void *buf, size_t len,
		      void *desc, uint64_t data, fi_addr_t dest, uint64_t tag,
		      void *context);
ssize_t duo_tinjectdata(struct fid_ep *ep_fid, const void *buf, size_t len,
			uint64_t data, fi_addr_t dest, uint64_t tag);

/* short.c: the same, the usual way first. */
ssize_t duo_short_send(struct fid_ep *ep, const void *buf, size_t len,
		       void *desc, fi_addr_t dest, void *context);
ssize_t duo_short_inject(struct fid_ep *ep, const void *buf, size_t len,
			 fi_addr_t dest);
ssize_t duo_short_senddata(struct fid_ep *ep, const void *buf, size_t len,
			   void *desc, uint64_t data, fi_addr_t dest,
			   void *context);
ssize_t duo_short_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			     uint64_t data, fi_addr_t dest);
ssize_t duo_short_tsend(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest, uint64_t tag,
			void *context);
ssize_t duo_short_tinject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t tag);
ssize_t duo_short_tsenddata(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    uint64_t tag, void *context);
ssize_t duo_short_tinjectdata(struct fid_ep *ep, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t tag);

#endif /* DUO_SEND_H */
