/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sends: decide the path, forward. The descriptors are the core's; a local
 * peer sees them where it has to know which memory is a device's. The
 * application's message is copied, not changed.
 */

#include <rdma/fi_errno.h>

#include "av/route.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "tx/send.h"

/* The lock is held; returns with it, if the route is local. */
DUO_COLD struct duo_route duo_tx_route_again(struct duo_ep *ep, fi_addr_t dest)
{
	struct duo_route to;

	do {
		duo_unlock(&ep->domain->lock);
		to = duo_route(ep, dest);
		if (to.path != FI_DUO_LOCAL)
			break;
		duo_lock(&ep->domain->lock);
	} while (!duo_route_still(ep, dest, &to));
	return to;
}

/*
 * Chooses the path and, for the local one, takes the domain's lock; it is
 * looked at again then, because another thread may have found out that the peer
 * cannot be reached there. Returns 0 or duo_route_error().
 */
static inline int duo_tx_begin(struct duo_ep *ep, fi_addr_t dest,
			       struct duo_route *to)
{
	struct duo_lock *lock = &ep->domain->lock;

	*to = duo_route(ep, dest);
	if (to->path == FI_DUO_LOCAL) {
		if (!lock->on)
			return 0;
		duo_lock(lock);
		if (duo_route_still(ep, dest, to))
			return 0;
		*to = duo_tx_route_again(ep, dest);
	}
	return to->ep ? 0 : duo_route_error(ep, dest);
}

/* Without a locked instruction: of two threads' sizes one may be lost. */
static inline void duo_tx_add(uint64_t *sum, size_t len)
{
	__atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + len,
			 __ATOMIC_RELAXED);
}

/* Releases what duo_tx_begin() took, counts, passes ret on. */
DUO_HOT ssize_t duo_tx_end(struct duo_ep *ep, const struct duo_route *to,
			   size_t len, ssize_t ret)
{
	struct fi_duo_path_stats *local = &ep->stats.path[FI_DUO_LOCAL];
	struct fi_duo_path_stats *core = &ep->stats.path[FI_DUO_CORE];

	if (to->path == FI_DUO_LOCAL) {
		if (!ret) {
			local->tx_msgs++;
			local->tx_bytes += len;
		}
		duo_unlock(&ep->domain->lock);
		return ret;
	}
	if (!ret && !ep->domain->lock.on) {
		core->tx_msgs++;
		core->tx_bytes += len;
	} else if (!ret) {
		__atomic_fetch_add(&core->tx_msgs, 1, __ATOMIC_RELAXED);
		duo_tx_add(&core->tx_bytes, len);
	}
	duo_tx_core_called(ep);
	return ret;
}

/* What the path's endpoint sees of the descriptors, one or a vector. */
static inline void *duo_tx_desc(const struct duo_ep *ep, void *desc,
				const struct duo_route *to)
{
	return to->path == FI_DUO_CORE || ep->domain->device ? desc : NULL;
}

/* -FI_EINVAL: more buffers than the limit, or none given. */
static inline int duo_tx_len(const struct iovec *iov, size_t count, size_t *len)
{
	size_t i;

	if (count > DUO_IOV_LIMIT || (count && !iov))
		return -FI_EINVAL;
	*len = 0;
	for (i = 0; i < count; i++)
		*len += iov[i].iov_len;
	return 0;
}

static inline int duo_tx_check(const struct duo_ep *ep, size_t len)
{
	return len > ep->max_msg_size ? -FI_EMSGSIZE : 0;
}

static inline int duo_inject_check(const struct duo_ep *ep, size_t len)
{
	return len > ep->inject_size ? -FI_EMSGSIZE : 0;
}

ssize_t duo_send_wake(struct duo_lock *lock)
{
	duo_lock_wake(lock);
	return 0;
}

ssize_t duo_send_tell(struct duo_lock *lock, struct near_peer *peer)
{
	near_tell(peer);
	return duo_lock_give(lock) ? duo_send_wake(lock) : 0;
}

ssize_t duo_send(struct fid_ep *ep_fid, const void *buf, size_t len, void *desc,
		 fi_addr_t dest, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_tx_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_send(to.ep, buf, len, duo_tx_desc(ep, desc, &to), to.addr,
		      context);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_sendv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		  size_t count, fi_addr_t dest, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	size_t len;
	ssize_t ret = duo_tx_len(iov, count, &len);

	if (ret || (ret = duo_tx_check(ep, len)) ||
	    (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_sendv(to.ep, iov, duo_tx_desc(ep, desc, &to),
		       count, to.addr, context);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_sendmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
		    uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg out = *msg;
	struct duo_route to;
	size_t len;
	ssize_t ret = duo_tx_len(msg->msg_iov, msg->iov_count, &len);

	if (ret || (ret = duo_tx_check(ep, len)) ||
	    (flags & FI_INJECT && (ret = duo_inject_check(ep, len))) ||
	    (ret = duo_tx_begin(ep, msg->addr, &to)))
		return ret;
	out.addr = to.addr;
	out.desc = duo_tx_desc(ep, msg->desc, &to);
	ret = fi_sendmsg(to.ep, &out, flags);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_inject(struct fid_ep *ep_fid, const void *buf, size_t len,
		   fi_addr_t dest)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_inject_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_inject(to.ep, buf, len, to.addr);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_senddata(struct fid_ep *ep_fid, const void *buf, size_t len,
		     void *desc, uint64_t data, fi_addr_t dest, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_tx_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_senddata(to.ep, buf, len, duo_tx_desc(ep, desc, &to), data,
			  to.addr, context);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_injectdata(struct fid_ep *ep_fid, const void *buf, size_t len,
		       uint64_t data, fi_addr_t dest)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_inject_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_injectdata(to.ep, buf, len, data, to.addr);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_tsend(struct fid_ep *ep_fid, const void *buf, size_t len,
		  void *desc, fi_addr_t dest, uint64_t tag, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_tx_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_tsend(to.ep, buf, len, duo_tx_desc(ep, desc, &to), to.addr,
		       tag, context);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_tsendv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	size_t len;
	ssize_t ret = duo_tx_len(iov, count, &len);

	if (ret || (ret = duo_tx_check(ep, len)) ||
	    (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_tsendv(to.ep, iov, duo_tx_desc(ep, desc, &to),
			count, to.addr, tag, context);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_tsendmsg(struct fid_ep *ep_fid, const struct fi_msg_tagged *msg,
		     uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_tagged out = *msg;
	struct duo_route to;
	size_t len;
	ssize_t ret = duo_tx_len(msg->msg_iov, msg->iov_count, &len);

	if (ret || (ret = duo_tx_check(ep, len)) ||
	    (flags & FI_INJECT && (ret = duo_inject_check(ep, len))) ||
	    (ret = duo_tx_begin(ep, msg->addr, &to)))
		return ret;
	out.addr = to.addr;
	out.desc = duo_tx_desc(ep, msg->desc, &to);
	ret = fi_tsendmsg(to.ep, &out, flags);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_tinject(struct fid_ep *ep_fid, const void *buf, size_t len,
		    fi_addr_t dest, uint64_t tag)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_inject_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_tinject(to.ep, buf, len, to.addr, tag);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_tsenddata(struct fid_ep *ep_fid, const void *buf, size_t len,
		      void *desc, uint64_t data, fi_addr_t dest, uint64_t tag,
		      void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_tx_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_tsenddata(to.ep, buf, len, duo_tx_desc(ep, desc, &to), data,
			   to.addr, tag, context);
	return duo_tx_end(ep, &to, len, ret);
}

ssize_t duo_tinjectdata(struct fid_ep *ep_fid, const void *buf, size_t len,
			uint64_t data, fi_addr_t dest, uint64_t tag)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_route to;
	ssize_t ret = duo_inject_check(ep, len);

	if (ret || (ret = duo_tx_begin(ep, dest, &to)))
		return ret;
	ret = fi_tinjectdata(to.ep, buf, len, data, to.addr, tag);
	return duo_tx_end(ep, &to, len, ret);
}
