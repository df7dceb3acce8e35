/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Compares the endpoints' completions with the model. */

#include "model.h"

/* Returns the send with this context; NULL: a receive has this context. */
static struct model_send *model_send_of(void *context)
{
	struct model_send *send = context;

	return send >= model.send && send < model.send + model.send_count ?
	       send : NULL;
}

static struct model_recv *model_recv_of(void *context)
{
	struct model_recv *recv = context;

	model_assert(recv >= model.recv &&
		     recv < model.recv + model.recv_count &&
		     recv == &model.recv[model_recv_index(recv)],
		     "context %p", context);
	model_assert(recv->state == MODEL_OPEN, "receive %d has ended",
		     model_recv_index(recv));
	model_assert(model.ep[recv->ep].cq == model.reading,
		     "receive %d ends in another CQ", model_recv_index(recv));
	return recv;
}

/* Marks a send as ended. Checks that sends over the core end in their order. */
static void model_send_end(struct model_send *send)
{
	const struct model_send *earlier;
	int index = send - model.send;

	model_trace("send %d ends", index);
	model_assert(!send->done, "send %d ends twice", index);
	model_assert(model.ep[send->ep].tx_cq == model.reading,
		     "send %d ends in another CQ", index);
	send->done = true;
	for (earlier = model.send; earlier < send; earlier++)
		model_assert(earlier->done || !earlier->on_core ||
			     !send->on_core || earlier->ep != send->ep,
			     "send %d overtakes", index);
}

static void model_send_done(struct model_send *send,
			    const struct model_entry *entry)
{
	model_send_end(send);
	model_assert(!send->fails, "a failed send succeeds");
	if (entry->has_src)
		model_assert(entry->src == FI_ADDR_NOTAVAIL, "src of a send");
	if (model.attr.format >= FI_CQ_FORMAT_MSG)
		model_assert(entry->cq.flags & FI_SEND, "flags 0x%lx",
			     (unsigned long) entry->cq.flags);
}

/*
 * Checks the source of a completion. The source may be missing if it was not in
 * the AV at the time of the send, or if its process has ended.
 */
static void model_check_src(const struct model_msg *msg, fi_addr_t src)
{
	const struct model_peer *peer = &model.peer[msg->source];

	if ((!msg->known || msg->life != peer->life) &&
	    (src == FI_ADDR_UNSPEC || src == FI_ADDR_NOTAVAIL))
		return;
	model_assert(peer->inserted[msg->ep] && src == peer->addr[msg->ep],
		     "message %d is from 0x%lx, not 0x%lx",
		     model_msg_index(msg), (unsigned long) src,
		     (unsigned long) peer->addr[msg->ep]);
}

static uint64_t model_msg_flags(const struct model_msg *msg)
{
	return FI_RECV | FI_REMOTE_CQ_DATA |
	       (msg->kind == DUO_TAGGED ? FI_TAGGED : FI_MSG);
}

static void model_check_entry(const struct model_msg *msg,
			      const struct model_entry *entry)
{
	enum fi_cq_format format = model.attr.format;
	int index = model_msg_index(msg);

	if (format >= FI_CQ_FORMAT_MSG) {
		model_assert(entry->cq.flags == model_msg_flags(msg),
			     "message %d, flags 0x%lx", index,
			     (unsigned long) entry->cq.flags);
		model_assert(entry->cq.len == msg->len, "message %d, len %zu",
			     index, entry->cq.len);
	}
	if (format >= FI_CQ_FORMAT_DATA)
		model_assert(entry->cq.data == (uint64_t) index,
			     "message %d, data %lu", index,
			     (unsigned long) entry->cq.data);
	if (format >= FI_CQ_FORMAT_TAGGED)
		model_assert(entry->cq.tag == msg->tag, "message %d, tag %lu",
			     index, (unsigned long) entry->cq.tag);
	if (entry->has_src)
		model_check_src(msg, entry->src);
}

static void model_check_content(const struct model_msg *msg, const char *buf,
				size_t len)
{
	char text[MODEL_BUF];

	model_text(msg, text);
	model_assert(len <= msg->len && !memcmp(buf, text, len),
		     "content of message %d", model_msg_index(msg));
}

/* Records that recv has received the message in buf; checks the content. */
static struct model_msg *model_take_in(struct model_recv *recv,
				       const char *buf, size_t len)
{
	struct model_msg *msg = model_msg_in(buf, len);

	model_assert(msg, "receive %d completes without a message",
		     model_recv_index(recv));
	model_take(recv, msg);
	model_check_content(msg, buf, len < msg->len ? len : msg->len);
	return msg;
}

static void model_single_done(struct model_recv *recv,
			      const struct model_entry *entry)
{
	struct model_msg *msg = model_take_in(recv, recv->buf, recv->len);

	recv->state = MODEL_DONE;
	model_assert(msg->len <= recv->len, "message %d was truncated",
		     model_msg_index(msg));
	model_check_entry(msg, entry);
}

static void model_multi_done(struct model_recv *recv,
			     const struct model_entry *entry)
{
	const char *buf = entry->cq.buf;
	struct model_entry message = *entry;

	if (entry->cq.flags & FI_MULTI_RECV)
		recv->state = MODEL_DONE;
	if (entry->cq.flags == FI_MULTI_RECV) {
		model_assert(!entry->cq.len && !buf, "a mere release");
		model_assert(!entry->has_src ||
			     entry->src == FI_ADDR_NOTAVAIL, "its source");
		return;
	}
	model_assert(buf >= recv->buf &&
		     buf + entry->cq.len <= recv->buf + recv->len,
		     "outside of buffer %d", model_recv_index(recv));
	message.cq.flags &= ~FI_MULTI_RECV;
	model_check_entry(model_take_in(recv, buf, entry->cq.len), &message);
}

/* Checks a peek's completion, which has no source with efa (util_srx). */
static void model_peek_done(struct model_recv *recv,
			    const struct model_entry *entry)
{
	struct model_msg *msg = model_msg_at(entry->cq.data);
	struct model_entry found = *entry;

	model_assert(!msg->recv && model_takes(recv, msg),
		     "peek %d finds message %d", model_recv_index(recv),
		     model_msg_index(msg));
	found.has_src = entry->has_src && !model.util_srx;
	model_check_entry(msg, &found);
	if (recv->op == MODEL_PEEK) {
		recv->state = MODEL_DONE;
		recv->msg = msg;
		return;
	}
	model_take(recv, msg);
	if (recv->op == MODEL_PEEK_CLAIM)
		recv->op = MODEL_CLAIM;
	else
		recv->state = MODEL_DONE;
}

static void model_claim_done(struct model_recv *recv,
			     const struct model_entry *entry)
{
	model_assert(recv->claiming, "claim %d", model_recv_index(recv));
	recv->state = MODEL_DONE;
	model_check_entry(recv->msg, entry);
	if (!recv->discard)
		model_check_content(recv->msg, recv->buf, recv->msg->len);
}

static void model_recv_done(struct model_recv *recv,
			    const struct model_entry *entry)
{
	model_trace("receive %d completes", model_recv_index(recv));
	model_assert(recv->wanted || recv->op == MODEL_MULTI,
		     "receive %d is not to be reported",
		     model_recv_index(recv));
	switch (recv->op) {
	case MODEL_SINGLE:
		model_single_done(recv, entry);
		break;
	case MODEL_MULTI:
		model_multi_done(recv, entry);
		break;
	case MODEL_CLAIM:
		model_claim_done(recv, entry);
		break;
	default:
		model_peek_done(recv, entry);
	}
}

void model_done(const struct model_entry *entry)
{
	struct model_send *send = model_send_of(entry->cq.op_context);

	if (send)
		model_send_done(send, entry);
	else
		model_recv_done(model_recv_of(entry->cq.op_context), entry);
}

static void model_canceled(struct model_recv *recv,
			   const struct fi_cq_err_entry *err)
{
	model_assert(recv->canceling, "receive %d", model_recv_index(recv));
	recv->state = MODEL_CANCELED;
	if (recv->op == MODEL_MULTI)
		model_assert(err->flags & FI_MULTI_RECV, "flags 0x%lx",
			     (unsigned long) err->flags);
}

static void model_truncated(struct model_recv *recv,
			    const struct fi_cq_err_entry *err)
{
	/* the message got all remaining bytes of the multi-receive buffer */
	const char *buf = recv->buf + recv->len - err->len;
	struct model_msg *msg = recv->msg;

	if (recv->op != MODEL_CLAIM)
		msg = model_take_in(recv, buf, err->len);
	msg->truncated = true;
	model_check_content(msg, buf, err->len);
	model_assert(err->len + err->olen == msg->len, "olen %zu", err->olen);
	model_assert(err->flags == model_msg_flags(msg), "flags 0x%lx",
		     (unsigned long) err->flags);
	model_assert(err->data == (uint64_t) model_msg_index(msg) &&
		     err->tag == msg->tag, "data or tag");
	if (recv->op == MODEL_MULTI)
		return;		/* the buffer's release is reported next */
	recv->state = MODEL_DONE;
	model_assert(err->len == recv->len, "len %zu", err->len);
}

/*
 * The core has rejected a receive after the application posted it: checks that
 * this error was injected. A multi-receive buffer stays open until its release
 * is reported.
 */
static void model_rejected(struct model_recv *recv)
{
	model_assert(model.post_errs-- > 0, "nothing was rejected");
	if (recv->op != MODEL_MULTI)
		recv->state = MODEL_FAILED;
}

static void model_no_message(struct model_recv *recv)
{
	model_assert(recv->op == MODEL_PEEK || recv->op == MODEL_PEEK_CLAIM ||
		     recv->op == MODEL_PEEK_DISCARD, "receive %d is no peek",
		     model_recv_index(recv));
	recv->state = MODEL_FAILED;
}

static void model_recv_failed(struct model_recv *recv,
			      const struct fi_cq_err_entry *err)
{
	model_trace("receive %d fails: %s", model_recv_index(recv),
		    fi_strerror(err->err));
	switch (err->err) {
	case FI_ECANCELED:
		model_canceled(recv, err);
		break;
	case FI_ETRUNC:
		model_truncated(recv, err);
		break;
	case FI_ENOMSG:
		model_no_message(recv);
		break;
	case FI_EOPNOTSUPP:
		model_rejected(recv);
		break;
	default:
		model_assert(false, "error %d", err->err);
	}
}

void model_failed(const struct fi_cq_err_entry *err)
{
	struct model_send *send = model_send_of(err->op_context);

	if (!send) {
		model_recv_failed(model_recv_of(err->op_context), err);
		return;
	}
	model_send_end(send);
	model_assert(send->fails && err->err == FI_EIO, "error %d", err->err);
}

/*
 * Marks a receive without a completion as ended if its buffer has a message.
 * The step in which the message was received is unknown.
 */
static void model_find_single(struct model_recv *recv)
{
	if (recv->op != MODEL_SINGLE || recv->state != MODEL_OPEN ||
	    recv->wanted || !model_msg_in(recv->buf, recv->len))
		return;
	model_take_in(recv, recv->buf, recv->len)->seen = MODEL_NEVER;
	recv->state = MODEL_DONE;
}

static void model_find_multi(struct model_recv *recv)
{
	struct model_msg *msg;
	size_t at;

	if (recv->op != MODEL_MULTI || recv->wanted)
		return;
	for (at = 0; at < recv->len; at += msg->len) {
		msg = model_msg_in(recv->buf + at, recv->len - at);
		if (!msg)
			break;
		if (msg->recv != recv)
			model_take_in(recv, recv->buf + at,
				      recv->len - at)->seen = MODEL_NEVER;
	}
}

void model_find_silent(void)
{
	int i;

	for (i = 0; i < model.recv_count; i++) {
		model_find_single(&model.recv[i]);
		model_find_multi(&model.recv[i]);
	}
}
