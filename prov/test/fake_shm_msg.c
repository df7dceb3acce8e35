/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The fake shm calls ofi_duo's shared receive context, fi_peer(3), in the same
 * order as libfabric's shm. If a receive matches the message: get, completion,
 * free_entry. Otherwise: get, queue, and later start, completion, free_entry.
 */

#include <errno.h>
#include <rdma/fi_errno.h>

#include "fake.h"

/*
 * Asserts that obj belongs to shm, and that ofi_duo's lock is held if locks are
 * on. ofi_duo's callbacks rely on this, because they take no lock.
 */
void fake_shm_check(struct fake_obj *obj)
{
	ck_assert_int_eq(obj->path, FI_DUO_LOCAL);
	if (fake.lock && fake.lock->on)
		ck_assert_msg(!duo_lock_try(fake.lock),
			      "shm called without the owner lock");
}

static fi_addr_t fake_shm_source(const struct fake_msg *msg)
{
	return msg->to->bound_av->map->peer[msg->place].addr;
}

struct fake_msg *fake_shm_arrive_at(struct fake_obj *ep, enum duo_rx_kind kind,
				    const char *name, uint64_t tag,
				    const char *text)
{
	struct fake_msg *msg = fake_msg_new(kind, text);

	strcpy(msg->name, name);
	msg->tag = tag;
	msg->to = ep;
	TAILQ_INSERT_TAIL(&fake.shm.incoming, msg, link);
	return msg;
}

struct fake_msg *fake_shm_arrive(enum duo_rx_kind kind, const char *name,
				 uint64_t tag, const char *text)
{
	return fake_shm_arrive_at(fake.shm.ep, kind, name, tag, text);
}

static void fake_shm_fill(struct fake_msg *msg)
{
	struct fi_peer_rx_entry *entry = msg->entry;
	size_t i, space = 0;

	for (i = 0; i < entry->count; i++)
		space += entry->iov[i].iov_len;
	ck_assert_msg(space >= msg->len, "shm would truncate: %zu > %zu",
		      msg->len, space);
	ck_assert_uint_ne(entry->flags & FI_COMPLETION, 0);
	fake_scatter(FI_DUO_LOCAL, msg, entry->iov, entry->desc, entry->count);
}

static void fake_shm_complete(struct fake_msg *msg)
{
	struct fid_peer_cq *cq = msg->to->rx_cq->peer_cq;
	struct fi_peer_rx_entry *entry = msg->entry;
	struct fi_cq_err_entry err = {
		.op_context = entry->context,
		.err = fake.shm.rx_err,
		.prov_errno = fake.shm.rx_err,
	};

	fake_shm_fill(msg);
	fake.shm.rx_err = 0;
	if (err.err)
		cq->owner_ops->writeerr(cq, &err);
	else
		cq->owner_ops->write(cq, entry->context,
				     (entry->flags & ~FI_COMPLETION) |
				     msg->flags, msg->len,
				     entry->count ? entry->iov[0].iov_base :
						    NULL,
				     msg->data, msg->tag,
				     fake_shm_source(msg));
	msg->to->srx->owner_ops->free_entry(entry);
	free(msg);
}

static void fake_shm_deliver(struct fake_msg *msg)
{
	struct fid_peer_srx *srx = msg->to->srx;
	struct fi_ops_srx_owner *ops = srx->owner_ops;
	struct fi_peer_match_attr attr = {
		.msg_size = msg->reported_len ? msg->reported_len : msg->len,
		.tag = msg->tag,
	};
	int ret;

	msg->place = fake_shm_connect(msg->to, msg->name);
	attr.addr = fake_shm_source(msg);
	ret = msg->kind == DUO_TAGGED ?
	      ops->get_tag(srx, &attr, &msg->entry) :
	      ops->get_msg(srx, &attr, &msg->entry);
	if (!ret) {
		fake_shm_complete(msg);
		return;
	}
	ck_assert_int_eq(ret, -FI_ENOENT);
	msg->entry->peer_context = msg;
	msg->entry->cq_data = msg->data;
	msg->entry->flags |= msg->flags;
	TAILQ_INSERT_TAIL(&fake.shm.queued, msg, link);
	ret = msg->kind == DUO_TAGGED ? ops->queue_tag(msg->entry) :
					ops->queue_msg(msg->entry);
	ck_assert_int_eq(ret, 0);
}

/*
 * Removes the first message for ep from the list, and returns the message. If
 * ep is NULL, does so with the first message for the CQ cq. Returns NULL if
 * there is no such message.
 */
static struct fake_msg *fake_shm_next(struct fake_msg_list *list,
				      const struct fake_obj *ep,
				      const struct fake_obj *cq)
{
	struct fake_msg *msg;

	TAILQ_FOREACH(msg, list, link) {
		if (msg->to == ep || (cq && msg->to->rx_cq == cq))
			break;
	}
	if (msg)
		TAILQ_REMOVE(list, msg, link);
	return msg;
}

void fake_shm_progress_one(struct fake_obj *ep)
{
	struct fake_msg *msg = fake_shm_next(&fake.shm.incoming, ep, NULL);

	if (msg)
		fake_shm_deliver(msg);
}

void fake_shm_progress(struct fake_obj *cq)
{
	struct fake_msg *msg;

	while ((msg = fake_shm_next(&fake.shm.started, NULL, cq)))
		fake_shm_complete(msg);
	while ((msg = fake_shm_next(&fake.shm.incoming, NULL, cq)))
		fake_shm_deliver(msg);
}

static fi_addr_t fake_shm_get_addr(struct fi_peer_rx_entry *entry)
{
	return fake_shm_source(entry->peer_context);
}

/* Resolves unknown sources, as shm does after fi_av_insert. */
void fake_shm_learn(struct fake_obj *av)
{
	struct fake_obj *ep;

	LIST_FOREACH(ep, &av->map->eps, map_link)
		ep->srx->owner_ops->foreach_unspec_addr(ep->srx,
							fake_shm_get_addr);
}

static int fake_shm_start(struct fi_peer_rx_entry *entry)
{
	struct fake_msg *msg = entry->peer_context;

	fake_shm_check(msg->to);
	ck_assert_ptr_eq(msg->entry, entry);
	TAILQ_REMOVE(&fake.shm.queued, msg, link);
	if (fake.shm.slow)
		TAILQ_INSERT_TAIL(&fake.shm.started, msg, link);
	else
		fake_shm_complete(msg);
	return 0;
}

/* Fails the test: shm's discard would write to the sender's memory. */
static int fake_shm_discard(struct fi_peer_rx_entry *entry)
{
	ck_abort_msg("discard of shm called");
	return -FI_ENOSYS;
}

struct fi_ops_srx_peer fake_shm_srx_ops = {
	.size = sizeof(struct fi_ops_srx_peer),
	.start_msg = fake_shm_start,
	.start_tag = fake_shm_start,
	.discard_msg = fake_shm_discard,
	.discard_tag = fake_shm_discard,
};

/*
 * Frees the endpoint's messages that have not completed. Frees the receive
 * entry of each message twice, as libfabric 2.1 does.
 */
void fake_shm_close(struct fake_obj *ep)
{
	struct fake_msg_list *const list[] = {
		&fake.shm.incoming, &fake.shm.queued, &fake.shm.started,
	};
	struct fake_msg *msg;
	int i;

	for (i = 0; i < 3; i++) {
		while ((msg = fake_shm_next(list[i], ep, NULL))) {
			if (msg->entry) {
				ep->srx->owner_ops->free_entry(msg->entry);
				ep->srx->owner_ops->free_entry(msg->entry);
			}
			free(msg);
		}
	}
}
