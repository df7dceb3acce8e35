/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Receives of the fake core: matching, cancel, peek and claim. */

#include <sys/eventfd.h>
#include <rdma/fi_errno.h>

#include "fake.h"

struct fake_event *fake_core_next(const struct fake_obj *cq)
{
	struct fake_event *event;

	STAILQ_FOREACH(event, &fake.core.events, link) {
		if (!event->cq || event->cq == cq)
			break;
	}
	return event;
}

void fake_core_event(const struct fake_obj *cq,
		     const struct fi_cq_err_entry *entry, fi_addr_t src)
{
	struct fake_event *event = calloc(1, sizeof(*event));

	ck_assert_ptr_nonnull(event);
	event->entry = *entry;
	event->src = src;
	event->cq = cq;
	if (fake.core.hold && entry->flags & FI_RECV &&
	    entry->err != FI_ECANCELED)
		STAILQ_INSERT_TAIL(&fake.core.late, event, link);
	else
		STAILQ_INSERT_TAIL(&fake.core.events, event, link);
	if (fake.core.wait_fd)
		eventfd_write(fake.core.wait_fd, 1);
}

void fake_core_release(void)
{
	fake.core.hold = false;
	STAILQ_CONCAT(&fake.core.events, &fake.core.late);
}

void fake_core_error(void *context, int err)
{
	const struct fi_cq_err_entry entry = {
		.op_context = context,
		.flags = FI_SEND,
		.err = err,
		.prov_errno = err,
	};

	fake_core_event(NULL, &entry, FI_ADDR_NOTAVAIL);
}

static bool fake_fits(const struct fake_msg *recv, const struct fake_msg *msg)
{
	return recv->kind == msg->kind && (!msg->to || recv->to == msg->to) &&
	       (recv->addr == FI_ADDR_UNSPEC || recv->addr == msg->addr) &&
	       (msg->kind == DUO_MSG ||
		((recv->tag ^ msg->tag) & ~recv->ignore) == 0);
}

static struct fi_cq_err_entry fake_entry(const struct fake_msg *recv,
					 const struct fake_msg *msg)
{
	return (struct fi_cq_err_entry) {
		.op_context = recv->context,
		.flags = FI_RECV | msg->flags |
			 (msg->kind == DUO_TAGGED ? FI_TAGGED : FI_MSG),
		.len = msg->len,
		.tag = msg->tag,
		.data = msg->data,
	};
}

static void fake_complete(const struct fake_msg *recv,
			  const struct fake_msg *msg)
{
	struct fi_cq_err_entry entry = fake_entry(recv, msg);

	entry.len = fake_scatter(FI_DUO_CORE, msg, recv->iov, recv->desc,
				 recv->count);
	if (entry.len < msg->len) {
		entry.olen = msg->len - entry.len;
		entry.err = FI_ETRUNC;
		entry.prov_errno = FI_ETRUNC;
	}
	fake_core_event(recv->to->rx_cq, &entry, msg->addr);
	if (!entry.err || !fake.core.ends_twice)
		return;
	entry.err = 0;
	fake_core_event(recv->to->rx_cq, &entry, msg->addr);
}

void fake_core_deliver(struct fake_msg *msg)
{
	struct fake_msg *recv;

	TAILQ_FOREACH(recv, &fake.core.posted, link) {
		if (fake_fits(recv, msg))
			break;
	}
	if (!recv) {
		TAILQ_INSERT_TAIL(&fake.core.unexp, msg, link);
		return;
	}
	TAILQ_REMOVE(&fake.core.posted, recv, link);
	fake_complete(recv, msg);
	free(recv);
	free(msg);
}

void fake_core_arrive(enum duo_rx_kind kind, fi_addr_t src, uint64_t tag,
		      const char *text)
{
	struct fake_msg *msg = fake_msg_new(kind, text);

	msg->addr = src;
	msg->tag = tag;
	fake_core_deliver(msg);
}

static void fake_peek(const struct fake_msg *recv, struct fake_msg *msg,
		      uint64_t flags)
{
	struct fi_cq_err_entry entry = {
		.op_context = recv->context,
		.flags = FI_RECV | FI_TAGGED,
		.err = FI_ENOMSG,
		.prov_errno = FI_ENOMSG,
	};

	fake.core.peeks++;
	if (!msg) {
		fake_core_event(recv->to->rx_cq, &entry, FI_ADDR_NOTAVAIL);
		return;
	}
	entry = fake_entry(recv, msg);
	fake_core_event(recv->to->rx_cq, &entry, msg->addr);
	if (!(flags & (FI_CLAIM | FI_DISCARD)))
		return;
	TAILQ_REMOVE(&fake.core.unexp, msg, link);
	if (flags & FI_DISCARD) {
		free(msg);
		return;
	}
	msg->context = recv->context;
	TAILQ_INSERT_TAIL(&fake.core.claimed, msg, link);
}

static ssize_t fake_claim(const struct fake_msg *recv, uint64_t flags)
{
	struct fi_cq_err_entry entry;
	struct fake_msg *msg;

	TAILQ_FOREACH(msg, &fake.core.claimed, link) {
		if (msg->context == recv->context)
			break;
	}
	if (!msg)
		return -FI_EINVAL;
	ck_assert(!msg->to || msg->to == recv->to);
	TAILQ_REMOVE(&fake.core.claimed, msg, link);
	if (flags & FI_DISCARD) {
		entry = fake_entry(recv, msg);
		fake_core_event(recv->to->rx_cq, &entry, msg->addr);
	} else {
		fake_complete(recv, msg);
	}
	free(msg);
	return 0;
}

static ssize_t fake_reject(void)
{
	int err = fake.core.post_err;

	if (fake.core.eagain) {
		fake.core.eagain--;
		return -FI_EAGAIN;
	}
	fake.core.post_err = 0;
	return -err;
}

ssize_t fake_core_recv(const struct fake_msg *recv, uint64_t flags)
{
	struct fake_msg *msg, *copy;
	ssize_t ret = fake_reject();

	if (ret)
		return ret;
	if (flags & FI_CLAIM && !(flags & FI_PEEK))
		return fake_claim(recv, flags);
	TAILQ_FOREACH(msg, &fake.core.unexp, link) {
		if (fake_fits(recv, msg))
			break;
	}
	if (flags & FI_PEEK) {
		fake_peek(recv, msg, flags);
		return 0;
	}
	fake.core.posts++;
	if (fake.core.on_post)
		fake.core.on_post();
	if (msg) {
		TAILQ_REMOVE(&fake.core.unexp, msg, link);
		fake_complete(recv, msg);
		free(msg);
		return 0;
	}
	copy = malloc(sizeof(*copy));
	ck_assert_ptr_nonnull(copy);
	*copy = *recv;
	TAILQ_INSERT_TAIL(&fake.core.posted, copy, link);
	return 0;
}

ssize_t fake_core_cancel(fid_t fid, void *context)
{
	struct fi_cq_err_entry entry = {
		.op_context = context,
		.flags = FI_RECV,
		.err = FI_ECANCELED,
		.prov_errno = FI_ECANCELED,
	};
	const struct fake_obj *ep = fake_obj_of(fid);
	struct fake_msg *recv;

	ck_assert_int_eq(ep->path, FI_DUO_CORE);
	fake.core.cancels++;
	TAILQ_FOREACH(recv, &fake.core.posted, link) {
		if (recv->context == context)
			break;
	}
	if (!recv)
		return -FI_ENOENT;
	ck_assert_ptr_eq(recv->to, ep);
	ck_assert_msg(!fake.core.util_srx || recv->kind == DUO_TAGGED ||
		      recv->addr == FI_ADDR_UNSPEC,
		      "fi_cancel of a directed untagged receive");
	TAILQ_REMOVE(&fake.core.posted, recv, link);
	free(recv);
	fake_core_event(ep->rx_cq, &entry, FI_ADDR_NOTAVAIL);
	return 0;
}

size_t fake_core_posted(void)
{
	return fake_core_posted_to(NULL);
}

size_t fake_core_posted_to(const struct fake_obj *ep)
{
	struct fake_msg *recv;
	size_t count = 0;

	TAILQ_FOREACH(recv, &fake.core.posted, link)
		count += !ep || recv->to == ep;
	return count;
}
