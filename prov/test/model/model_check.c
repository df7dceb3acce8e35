/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Conditions at the end of a run. A "gap" is a known deviation of the provider
 * (docs/matching.md). Only functions whose comment names a gap permit it.
 */

#include "model.h"

/*
 * True if an earlier directed multi-receive buffer is open. Gap: such a buffer
 * blocks overlapping receives, which are not posted to the core.
 */
static bool model_behind_buffer(const struct model_recv *recv)
{
	const struct model_recv *other;

	for (other = model.recv; other < recv; other++) {
		if (other->op == MODEL_MULTI && other->state == MODEL_OPEN &&
		    other->source != MODEL_ANY && recv->kind == DUO_MSG &&
		    other->ep == recv->ep)
			return true;
	}
	return false;
}

static bool model_must_take(const struct model_recv *recv,
			    const struct model_msg *msg)
{
	return model_takes(recv, msg) &&
	       (recv->source == MODEL_ANY || !msg->orphan);
}

static bool model_should_take(const struct model_recv *recv,
			      const struct model_msg *msg)
{
	return (recv->op == MODEL_SINGLE || recv->op == MODEL_MULTI) &&
	       recv->state == MODEL_OPEN && model_must_take(recv, msg) &&
	       !model_behind_buffer(recv);
}

static void model_check_msg_waits(const struct model_msg *msg)
{
	int i;

	for (i = 0; i < model.recv_count; i++)
		model_assert(!model_should_take(&model.recv[i], msg),
			     "message %d waits, receive %d is open",
			     model_msg_index(msg), i);
}

void model_check_waiting(void)
{
	int i;

	for (i = 0; i < model.msg_count; i++) {
		if (!model.msg[i].recv)
			model_check_msg_waits(&model.msg[i]);
	}
}

/*
 * Checks that all receives have ended. Gap: receives for which model_final() is
 * true cannot be canceled and may be open.
 */
void model_check_ended(void)
{
	const struct model_recv *recv;
	int i;

	for (i = 0; i < model.recv_count; i++) {
		recv = &model.recv[i];
		model_assert(recv->state != MODEL_OPEN || model_final(recv),
			     "receive %d, op %d, never ends", i, recv->op);
	}
}

static void model_check_bytes(const char *bytes, size_t len, char value,
			      int index)
{
	size_t i;

	for (i = 0; i < len; i++)
		model_assert(bytes[i] == value, "bounds of buffer %d", index);
}

/* Returns the sum of the lengths of all messages in the buffer. */
static size_t model_filled(const struct model_recv *recv)
{
	const struct model_msg *msg;
	size_t at = 0;

	if (recv->op == MODEL_PEEK || recv->op == MODEL_PEEK_DISCARD ||
	    recv->discard)
		return 0;
	while ((msg = model_msg_in(recv->buf + at, recv->len - at))) {
		model_assert(msg->recv == recv,
			     "message %d is not receive %d's",
			     model_msg_index(msg), model_recv_index(recv));
		at += msg->len;
		if (at >= recv->len)
			return recv->len;
	}
	return at;
}

static void model_check_buffers(void)
{
	const struct model_recv *recv;
	size_t filled;
	int i;

	for (i = 0; i < model.recv_count; i++) {
		recv = &model.recv[i];
		filled = model_filled(recv);
		model_check_bytes(recv->before, MODEL_GUARD, MODEL_GUARD_BYTE,
				  i);
		model_check_bytes(recv->behind, MODEL_GUARD, MODEL_GUARD_BYTE,
				  i);
		model_check_bytes(recv->buf + filled, MODEL_BUF - filled, 0,
				  i);
	}
}

static void model_check_sends(void)
{
	int i;

	for (i = 0; i < model.send_count; i++)
		model_assert(model.send[i].done, "send %d never ends", i);
}

static void model_check_received(void)
{
	int i;

	for (i = 0; i < model.msg_count; i++)
		model_assert(model.msg[i].recv, "message %d is lost", i);
}

/*
 * True if the core may have been filling recv when msg matched a receive. Gap:
 * shm messages skip a multi-receive buffer that the core is filling.
 */
static bool model_core_filled(const struct model_recv *recv,
			      const struct model_msg *msg)
{
	const struct model_msg *other;
	int since = msg->sent;

	if (recv->op != MODEL_MULTI)
		return false;
	if (since < msg->recv->posted)
		since = msg->recv->posted;
	for (other = model.msg; other < model.msg + model.msg_count; other++) {
		if (other->recv == recv && !other->on_shm &&
		    other->sent <= msg->seen && other->seen >= since)
			return true;
	}
	return false;
}

/*
 * Checks that the second message of a source did not overtake the first one. If
 * the receive of the second message was posted before the receive of the first
 * message, then the earlier receive must not match the first message.
 */
static void model_check_pair(const struct model_msg *first,
			     const struct model_msg *second)
{
	if (first->source != second->source || first->life != second->life ||
	    first->kind != second->kind ||
	    second->recv >= first->recv ||
	    !model_must_take(second->recv, first))
		return;
	model_assert(model_core_filled(second->recv, first),
		     "message %d, receive %d's, is overtaken by %d, %d's",
		     model_msg_index(first), model_recv_index(first->recv),
		     model_msg_index(second), model_recv_index(second->recv));
}

static void model_check_order(void)
{
	int i, k;

	for (i = 0; i < model.msg_count; i++) {
		for (k = i + 1; k < model.msg_count; k++)
			model_check_pair(&model.msg[i], &model.msg[k]);
	}
}

/* True if recv was still posted when the message's completion was read. */
static bool model_was_free(const struct model_recv *recv,
			   const struct model_msg *msg)
{
	if (recv->op != MODEL_SINGLE && recv->op != MODEL_MULTI)
		return false;
	if (model_core_filled(recv, msg))
		return false;
	if (recv->state == MODEL_CANCELED)
		return recv->canceled > msg->seen;
	return recv->state == MODEL_DONE && recv->msg &&
	       recv->msg->sent > msg->seen;
}

/* Checks that no earlier receive was free and would match the message. */
static void model_check_first(const struct model_msg *msg)
{
	const struct model_recv *recv;

	for (recv = model.recv; recv < msg->recv; recv++)
		model_assert(!model_must_take(recv, msg) ||
			     !model_was_free(recv, msg),
			     "message %d is receive %d's, but %d is earlier",
			     model_msg_index(msg), model_recv_index(msg->recv),
			     model_recv_index(recv));
}

static void model_check_posted_first(void)
{
	int i;

	for (i = 0; i < model.msg_count; i++)
		model_check_first(&model.msg[i]);
}

/* Returns the number of open receives of ep with at least "buffers" iovecs. */
static uint32_t model_final_count(int ep, size_t buffers)
{
	uint32_t count = 0;
	int i;

	for (i = 0; i < model.recv_count; i++)
		count += model.recv[i].ep == ep &&
			 model.recv[i].state == MODEL_OPEN &&
			 model.recv[i].buffers >= buffers;
	return count;
}

static void model_check_empty(int index)
{
	const struct duo_ep *ep = duo_ep_of(model.ep[index].ep);
	const struct fake_obj *core = model.ep[index].core;

	ck_assert_uint_eq(ep->pool.live, ep->lazy.retired_count +
						 model_final_count(index, 0) +
						 model_final_count(index, 2));
	ck_assert_uint_eq(fake_core_posted_to(core),
			  model_final_count(index, 0));
	ck_assert_uint_eq(ep->match[DUO_MSG].posted_count, 0);
	ck_assert_uint_eq(ep->match[DUO_TAGGED].posted_count, 0);
	ck_assert_uint_eq(ep->match[DUO_MSG].unexp_count, 0);
	ck_assert_uint_eq(ep->match[DUO_TAGGED].unexp_count, 0);
	ck_assert_uint_eq(ep->multi.open, 0);
	ck_assert_uint_eq(ep->lazy.count, 0);
	ck_assert_uint_eq(ep->lazy.due, 0);
	ck_assert_uint_eq(ep->group->lazy, 0);
	ck_assert_uint_eq(ep->group->waits, 0);
	ck_assert_uint_eq(ep->group->pending, 0);
	ck_assert(TAILQ_EMPTY(&ep->lazy.list));
	ck_assert(TAILQ_EMPTY(&ep->rx.unresolved));
	ck_assert(TAILQ_EMPTY(&ep->rx.claimed));
	ck_assert(TAILQ_EMPTY(&ep->lazy.blocked));
	ck_assert(TAILQ_EMPTY(&ep->multi.buffers));
	ck_assert(TAILQ_EMPTY(&ep->multi.ready));
}

/* True if the statistics must include the message. */
static bool model_counts(const struct model_msg *msg)
{
	return !msg->truncated && !msg->recv->discard &&
	       msg->recv->op != MODEL_PEEK_DISCARD;
}

static void model_check_stats(int ep)
{
	const struct fi_duo_stats stats = stats_of(model.ep[ep].ep);
	uint64_t counted[FI_DUO_PATH_COUNT] = { 0 };
	const struct model_msg *msg;
	int i;

	for (i = 0; i < model.msg_count; i++) {
		msg = &model.msg[i];
		if (msg->ep == ep)
			counted[msg->on_shm] += model_counts(msg);
	}
	ck_assert_uint_eq(stats.path[FI_DUO_CORE].rx_msgs,
			  counted[FI_DUO_CORE]);
	ck_assert_uint_eq(stats.path[FI_DUO_LOCAL].rx_msgs,
			  counted[FI_DUO_LOCAL]);
}

void model_check_all(void)
{
	int i;

	model_check_ended();
	model_assert(model.post_errs >= 0, "the core rejected fewer");
	model_check_sends();
	model_check_received();
	model_check_buffers();
	model_check_order();
	model_check_posted_first();
	for (i = 0; i < model.eps; i++) {
		model_check_empty(i);
		model_check_stats(i);
	}
}
