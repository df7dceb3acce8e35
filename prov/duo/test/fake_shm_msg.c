/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * How the fake shm uses its owner, fi_peer(3), in the order in which shm
 * does: get, then the completion, then free_entry; or get, queue, and later
 * start, the completion, free_entry.
 */

#include <errno.h>
#include <rdma/fi_errno.h>

#include "fake.h"

/* shm takes no lock of its own with its owner's callbacks in mind. */
void fake_shm_check(struct fake_obj *obj)
{
	ck_assert_int_eq(obj->path, FI_DUO_SHM);
	if (fake.lock && fake.lock->on)
		ck_assert_msg(pthread_mutex_trylock(&fake.lock->mutex) ==
			      EBUSY, "shm called without the owner lock");
}

static fi_addr_t fake_shm_source(const struct fake_msg *msg)
{
	size_t i;

	for (i = 0; i < fake.shm.peer_count; i++) {
		if (!strcmp(fake.shm.peer[i], msg->name))
			return i;
	}
	return FI_ADDR_UNSPEC;
}

struct fake_msg *fake_shm_arrive(enum duo_rx_kind kind, const char *name,
				 uint64_t tag, const char *text)
{
	struct fake_msg *msg = fake_msg_new(kind, text);

	strcpy(msg->name, name);
	msg->tag = tag;
	TAILQ_INSERT_TAIL(&fake.shm.incoming, msg, link);
	return msg;
}

static void fake_shm_fill(struct fake_msg *msg)
{
	struct fi_peer_rx_entry *entry = msg->entry;
	size_t i, room = 0;

	for (i = 0; i < entry->count; i++) {
		room += entry->iov[i].iov_len;
		ck_assert_ptr_null(entry->desc[i]);
	}
	ck_assert_msg(room >= msg->len, "shm would truncate: %zu > %zu",
		      msg->len, room);
	ck_assert_uint_ne(entry->flags & FI_COMPLETION, 0);
	fake_scatter(msg, entry->iov, entry->count);
}

static void fake_shm_complete(struct fake_msg *msg)
{
	struct fid_peer_cq *cq = fake.shm.ep->rx_cq->peer_cq;
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
	fake.shm.srx->owner_ops->free_entry(entry);
	free(msg);
}

static void fake_shm_deliver(struct fake_msg *msg)
{
	struct fi_ops_srx_owner *ops = fake.shm.srx->owner_ops;
	struct fi_peer_match_attr attr = {
		.addr = fake_shm_source(msg),
		.msg_size = msg->says ? msg->says : msg->len,
		.tag = msg->tag,
	};
	int ret;

	ret = msg->kind == DUO_TAGGED ?
	      ops->get_tag(fake.shm.srx, &attr, &msg->entry) :
	      ops->get_msg(fake.shm.srx, &attr, &msg->entry);
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

void fake_shm_progress_one(void)
{
	struct fake_msg *msg = TAILQ_FIRST(&fake.shm.incoming);

	if (!msg)
		return;
	TAILQ_REMOVE(&fake.shm.incoming, msg, link);
	fake_shm_deliver(msg);
}

void fake_shm_progress(void)
{
	struct fake_msg *msg;

	while ((msg = TAILQ_FIRST(&fake.shm.started))) {
		TAILQ_REMOVE(&fake.shm.started, msg, link);
		fake_shm_complete(msg);
	}
	while (!TAILQ_EMPTY(&fake.shm.incoming))
		fake_shm_progress_one();
}

static fi_addr_t fake_shm_get_addr(struct fi_peer_rx_entry *entry)
{
	return fake_shm_source(entry->peer_context);
}

/* After fi_av_insert: whose are the messages of unknown source? */
void fake_shm_learn(void)
{
	if (fake.shm.ep)
		fake.shm.srx->owner_ops->foreach_unspec_addr(
			fake.shm.srx, fake_shm_get_addr);
}

static int fake_shm_start(struct fi_peer_rx_entry *entry)
{
	struct fake_msg *msg = entry->peer_context;

	fake_shm_check(fake.shm.ep);
	ck_assert_ptr_eq(msg->entry, entry);
	TAILQ_REMOVE(&fake.shm.queued, msg, link);
	if (fake.shm.slow)
		TAILQ_INSERT_TAIL(&fake.shm.started, msg, link);
	else
		fake_shm_complete(msg);
	return 0;
}

/* shm's discard writes into the sender's region. */
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

/* Unexpected messages go; shm 2.1 frees some entries twice. */
void fake_shm_close(void)
{
	struct fake_msg_list *const list[] = {
		&fake.shm.queued, &fake.shm.started,
	};
	struct fake_msg *msg;
	int i;

	for (i = 0; i < 2; i++) {
		while ((msg = TAILQ_FIRST(list[i]))) {
			TAILQ_REMOVE(list[i], msg, link);
			fake.shm.srx->owner_ops->free_entry(msg->entry);
			fake.shm.srx->owner_ops->free_entry(msg->entry);
			free(msg);
		}
	}
}
