/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "base/enosys.h"
#include "base/log.h"
#include "base/params.h"
#include "core/post.h"
#include "cq/cq.h"
#include "cq/wait.h"
#include "obj/ep.h"
#include "obj/forward.h"
#include "transport/transport.h"

/*
 * Returns the number of successful operations that the endpoint counts for this
 * binding; if `err` is true, the number of failed ones. The endpoint counts
 * receives over both paths, and sends over near. The core's counter counts the
 * other operations over the core. cntr->own[] counts RMA, atomics and remote
 * accesses over near, and sends over shm. Why: docs/completions.md, "Counters".
 */
static uint64_t duo_cntr_bind_sum(const struct duo_cntr_bind *bind, bool err)
{
	const struct duo_ep *ep = bind->ep;
	const struct fi_duo_path_stats *path = ep->stats.path;
	uint64_t count = 0;

	if (bind->flags & FI_RECV)
		count += err ? ep->rx.failed : path[FI_DUO_CORE].rx_msgs +
					       path[FI_DUO_LOCAL].rx_msgs;
	if (bind->flags & FI_SEND && err)
		count += ep->tx.failed;
	else if (bind->flags & FI_SEND && !bind->cntr->path_cntr[FI_DUO_LOCAL])
		count += path[FI_DUO_LOCAL].tx_msgs - ep->tx.pending -
			 ep->tx.failed;
	return count;
}

static uint64_t duo_cntr_sum(const struct duo_cntr *cntr, bool err)
{
	uint64_t count = cntr->own[err] + cntr->core[err];
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &cntr->binds, cntr_link)
		count += duo_cntr_bind_sum(bind, err);
	return count;
}

/*
 * Reads the core's counter. Does nothing if the core's counter was never bound
 * to an endpoint: with FI_THREAD_COMPLETION, tcp crashes if an unbound counter
 * is read.
 */
static void duo_cntr_read_core(struct duo_cntr *cntr, bool err)
{
	struct fid_cntr *core = cntr->path_cntr[FI_DUO_CORE];

	if (!cntr->on_core)
		return;
	cntr->core[err] = err ? fi_cntr_readerr(core) : fi_cntr_read(core);
}

/*
 * True if this poll of the counter must read the core's counter, which also
 * polls the core. The result is true in three cases:
 * - No endpoint is bound to the counter.
 * - A bound endpoint has no CQ for sends, or a poll of this CQ would poll the
 *   core now.
 * - Neither is the case, and cntr->core_skip, which counts such polls, becomes
 *   a multiple of duo_params.core_poll_interval.
 */
static bool duo_cntr_core_due(struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;
	const struct duo_cq *cq;

	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		cq = bind->ep->tx_cq;
		if (!cq || duo_cq_core_wanted(cq))
			return true;
	}
	return LIST_EMPTY(&cntr->binds) ||
	       ++cntr->core_skip % duo_params.core_poll_interval == 0;
}

/* Polls the counter's endpoints. Needs the domain's lock. */
static void duo_cntr_progress(struct duo_cntr *cntr)
{
	const struct duo_ep *ep = NULL;
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (bind->ep == ep)
			continue;	/* polled by the last iteration */
		ep = bind->ep;
		duo_ep_progress(ep);
	}
	if (duo_cntr_core_due(cntr))
		duo_cntr_read_core(cntr, false);
}

static uint64_t duo_cntr_get(struct fid_cntr *cntr_fid, bool err)
{
	struct duo_cntr *cntr = duo_cntr_of(&cntr_fid->fid);
	uint64_t value;

	duo_lock(&cntr->domain->group.lock);
	duo_cntr_progress(cntr);
	if (err)
		duo_cntr_read_core(cntr, true);
	value = duo_cntr_sum(cntr, err);
	duo_unlock(&cntr->domain->group.lock);
	return value;
}

/* Returns the number of errors that earlier polls have found. Does not poll. */
static uint64_t duo_cntr_known_bad(struct duo_cntr *cntr)
{
	uint64_t value;

	duo_lock(&cntr->domain->group.lock);
	value = duo_cntr_sum(cntr, true);
	duo_unlock(&cntr->domain->group.lock);
	return value;
}

/*
 * Adds `value` to the counter's number of successes, or to its number of errors
 * if `err` is true. If `set` is true, sets this number to `value` instead.
 */
static int duo_cntr_put(struct fid_cntr *cntr_fid, uint64_t value, bool err,
			bool set)
{
	struct duo_cntr *cntr = duo_cntr_of(&cntr_fid->fid);

	duo_lock(&cntr->domain->group.lock);
	if (set)
		duo_cntr_read_core(cntr, err);
	cntr->own[err] += value - (set ? duo_cntr_sum(cntr, err) : 0);
	duo_unlock(&cntr->domain->group.lock);
	return 0;
}

static uint64_t duo_cntr_read(struct fid_cntr *cntr)
{
	return duo_cntr_get(cntr, false);
}

static uint64_t duo_cntr_readerr(struct fid_cntr *cntr)
{
	return duo_cntr_get(cntr, true);
}

static int duo_cntr_add(struct fid_cntr *cntr, uint64_t value)
{
	return duo_cntr_put(cntr, value, false, false);
}

static int duo_cntr_adderr(struct fid_cntr *cntr, uint64_t value)
{
	return duo_cntr_put(cntr, value, true, false);
}

static int duo_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return duo_cntr_put(cntr, value, false, true);
}

static int duo_cntr_seterr(struct fid_cntr *cntr, uint64_t value)
{
	return duo_cntr_put(cntr, value, true, true);
}

/*
 * Posts all deferred receives to the core. While the thread sleeps, it does not
 * poll, so no poll posts them.
 */
static void duo_cntr_before_sleep(const struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &cntr->binds, cntr_link)
		duo_lazy_flush(bind->ep);
}

static void duo_cntr_sleep(struct duo_cntr *cntr)
{
	duo_lock(&cntr->domain->group.lock);
	duo_cntr_before_sleep(cntr);
	duo_unlock(&cntr->domain->group.lock);
	duo_waiter_pause(&cntr->waiter);
}

static int duo_cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold,
			 int timeout)
{
	struct duo_cntr *cntr = duo_cntr_of(&cntr_fid->fid);
	struct duo_blocking call = duo_blocking_begin(timeout);
	uint64_t bad = duo_cntr_known_bad(cntr);

	for (;;) {
		if (fi_cntr_read(cntr_fid) >= threshold)
			return 0;
		if (fi_cntr_readerr(cntr_fid) != bad)
			return -FI_EAVAIL;
		if (duo_blocking_over(&call))
			return -FI_ETIMEDOUT;
		if (duo_blocking_sleeps(&call))
			duo_cntr_sleep(cntr);
	}
}

int duo_cntr_trywait(struct duo_cntr *cntr)
{
	int err, ret = 0;
	uint64_t now;

	if (cntr->waiter.obj != FI_WAIT_FD)
		return -FI_EINVAL;
	duo_lock(&cntr->domain->group.lock);
	duo_cntr_progress(cntr);
	duo_cntr_before_sleep(cntr);
	for (err = 0; err <= 1; err++) {
		duo_cntr_read_core(cntr, err);
		now = duo_cntr_sum(cntr, err);
		if (now != cntr->seen[err])
			ret = -FI_EAGAIN;
		cntr->seen[err] = now;
	}
	if (!ret)
		ret = duo_waiter_set_timer(&cntr->waiter);
	duo_unlock(&cntr->domain->group.lock);
	return ret;
}

static struct fi_ops_cntr duo_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = duo_cntr_read,
	.readerr = duo_cntr_readerr,
	.add = duo_cntr_add,
	.set = duo_cntr_set,
	.wait = duo_cntr_wait,
	.adderr = duo_cntr_adderr,
	.seterr = duo_cntr_seterr,
	DUO_NO_XPU_CNTR
};

static int duo_cntr_close(struct fid *fid)
{
	struct duo_cntr *cntr = duo_cntr_of(fid);
	int ret;

	if (atomic_load(&cntr->refs))
		return -FI_EBUSY;
	duo_lock(&cntr->domain->group.lock);
	ret = fi_close(&cntr->path_cntr[FI_DUO_CORE]->fid);
	if (!ret && cntr->path_cntr[FI_DUO_LOCAL])
		fi_close(&cntr->path_cntr[FI_DUO_LOCAL]->fid);
	duo_unlock(&cntr->domain->group.lock);
	if (ret)
		return ret;
	duo_waiter_close(&cntr->waiter);
	atomic_fetch_sub(&cntr->domain->refs, 1);
	free(cntr);
	return 0;
}

static int duo_cntr_control(struct fid *fid, int command, void *arg)
{
	return duo_waiter_control(&duo_cntr_of(fid)->waiter, fid, command, arg);
}

static struct fi_ops duo_cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_cntr_close,
	.bind = duo_no_bind,
	.control = duo_cntr_control,
	.ops_open = duo_core_ops_open,
};

static int duo_cntr_open_paths(struct duo_cntr *cntr,
			       const struct fi_cntr_attr *attr, void *context)
{
	const struct duo_transport *peer = cntr->domain->peer;
	struct fi_cntr_attr core_attr = duo_cntr_attr_copy(attr);
	int ret;

	core_attr.wait_obj = FI_WAIT_NONE;
	ret = fi_cntr_open(cntr->domain->path_domain[FI_DUO_CORE], &core_attr,
			   &cntr->path_cntr[FI_DUO_CORE], context);
	if (ret || !peer || !peer->cntr_open)
		return ret;
	ret = peer->cntr_open(cntr);
	if (ret)
		fi_close(&cntr->path_cntr[FI_DUO_CORE]->fid);
	return ret;
}

static int duo_cntr_check(const struct duo_domain *domain,
			  const struct fi_cntr_attr *attr)
{
	if (attr->flags & FI_PEER)
		/* unsupported: another provider owns an FI_PEER counter */
		return -FI_ENOSYS;
	if (attr->events != FI_CNTR_EVENTS_COMP && domain->peer) {
		DUO_WARN(CNTR, "counter events %d: shared memory counts "
			 "completions only; use FI_CNTR_EVENTS_COMP, or set "
			 "FI_OFI_DUO_LOCAL=off\n", attr->events);
		return -FI_ENOSYS;
	}
	return 0;
}

int duo_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr_fid, void *context)
{
	static const struct fi_cntr_attr defaults;
	struct duo_cntr *cntr;
	int ret;

	if (!attr)
		attr = (struct fi_cntr_attr *) &defaults;
	ret = duo_cntr_check(duo_domain_of(domain_fid), attr);
	if (ret)
		return ret;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->domain = duo_domain_of(domain_fid);
	LIST_INIT(&cntr->binds);
	ret = duo_waiter_open(&cntr->waiter, attr->wait_obj, false);
	if (!ret && attr->wait_obj == FI_WAIT_FD)
		ret = duo_waiter_add_timer(&cntr->waiter);
	if (!ret)
		ret = duo_cntr_open_paths(cntr, attr, context);
	if (ret) {
		duo_waiter_close(&cntr->waiter);
		free(cntr);
		return ret;
	}
	cntr->cntr_fid.fid.fclass = FI_CLASS_CNTR;
	cntr->cntr_fid.fid.context = context;
	cntr->cntr_fid.fid.ops = &duo_cntr_fi_ops;
	cntr->cntr_fid.ops = &duo_cntr_ops;
	atomic_fetch_add(&cntr->domain->refs, 1);
	*cntr_fid = &cntr->cntr_fid;
	return 0;
}

/*
 * Binds the core's counter to the core's endpoint. If the endpoint can receive
 * messages, the core's counter does not count receives: ofi_duo recalls some
 * receives from the core by fi_cancel(), and the core would count each of them
 * as an error. The endpoint counts its receives itself: duo_cntr_bind_sum().
 */
static int duo_cntr_bind_one(const struct duo_cntr_bind *bind)
{
	struct fid_cntr *core_cntr = bind->cntr->path_cntr[FI_DUO_CORE];
	uint64_t flags = bind->flags;
	int ret;

	if (bind->ep->opts.messages)
		flags &= ~FI_RECV;
	if (!flags)
		return 0;
	ret = fi_ep_bind(bind->ep->path_ep[FI_DUO_CORE], &core_cntr->fid,
			 flags);
	if (!ret)
		bind->cntr->on_core = true;
	return ret;
}

/*
 * Adds the binding's counts to own[] (sign 1), or subtracts them (sign -1). The
 * counter thus keeps its value when a binding ends or starts.
 */
static void duo_cntr_keep(struct duo_cntr_bind *bind, int sign)
{
	int err;

	for (err = 0; err <= 1; err++)
		bind->cntr->own[err] += sign * duo_cntr_bind_sum(bind, err);
}

/* Starts the binding. Needs all locks of the domain. Returns 0 or an error. */
static int duo_cntr_attach(struct duo_cntr_bind *bind)
{
	struct duo_ep *ep = bind->ep;
	int ret = 0;

	/* an endpoint has at most one counter per kind of operation */
	if (duo_cntr_counts(ep, bind->flags))
		return -FI_EINVAL;
	/*
	 * A read of the counter polls the endpoint's CQs, but takes only the
	 * domain's lock. So these CQs must be in the domain's group.
	 */
	if (ep->rx_cq)
		ret = duo_cq_join(ep->rx_cq);
	if (!ret && ep->tx_cq)
		ret = duo_cq_join(ep->tx_cq);
	if (ret)
		return ret;
	LIST_INSERT_HEAD(&bind->cntr->binds, bind, cntr_link);
	LIST_INSERT_HEAD(&ep->cntrs, bind, ep_link);
	/*
	 * No binding can be undone. That of the core comes first, because it is
	 * more likely to fail: if it fails, nothing is bound.
	 */
	if (duo_ep_enabled(ep)) {
		ret = duo_cntr_bind_one(bind);
		if (!ret && ep->path_ep[FI_DUO_LOCAL])
			ret = ep->domain->peer->count(bind);
	}
	if (ret) {
		LIST_REMOVE(bind, cntr_link);
		LIST_REMOVE(bind, ep_link);
		return ret;
	}
	duo_cntr_keep(bind, -1);
	atomic_fetch_add(&bind->cntr->refs, 1);
	return 0;
}

int duo_cntr_bind_ep(struct duo_cntr *cntr, struct duo_ep *ep, uint64_t flags)
{
	struct duo_cntr_bind *bind;
	int ret;

	if (cntr->domain != ep->domain || !flags)
		return -FI_EINVAL;
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_READ | FI_WRITE |
		      FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_EBADFLAGS;
	bind = calloc(1, sizeof(*bind));
	if (!bind)
		return -FI_ENOMEM;
	*bind = (struct duo_cntr_bind) { cntr, ep, .flags = flags };
	duo_domain_lock(ep->domain);
	ret = duo_cntr_attach(bind);
	duo_domain_unlock(ep->domain);
	if (ret)
		free(bind);
	return ret;
}

int duo_cntr_bind_core(const struct duo_ep *ep)
{
	const struct duo_cntr_bind *bind;
	int ret;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		ret = duo_cntr_bind_one(bind);
		if (ret)
			return ret;
	}
	return 0;
}

void duo_cntr_unbind(struct duo_ep *ep)
{
	struct duo_cntr_bind *bind;

	while ((bind = LIST_FIRST(&ep->cntrs))) {
		duo_cntr_keep(bind, 1);
		LIST_REMOVE(bind, cntr_link);
		LIST_REMOVE(bind, ep_link);
		atomic_fetch_sub(&bind->cntr->refs, 1);
		free(bind);
	}
}
