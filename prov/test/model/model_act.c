/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Random actions of the application, its peers and the providers */

#include "model.h"

void model_act_post(void)
{
	int count = 1 + model_random(4);

	while (count--)
		model_post();
}

static void model_arrive_core(const struct model_msg *msg, const char *text)
{
	struct fake_msg *arrived = fake_msg_new(msg->kind, text);

	arrived->to = model.ep[msg->ep].core;
	arrived->addr = fake_core_learn(&arrived->to->bound_av->av,
					MODEL_ADDR + msg->source);
	arrived->tag = msg->tag;
	arrived->data = model_msg_index(msg);
	arrived->flags = FI_REMOTE_CQ_DATA;
	fake_core_deliver(arrived);
}

static void model_arrive_shm(const struct model_msg *msg, const char *text)
{
	const char *name = model.peer[msg->source].peer_name;
	struct fake_msg *arrived = fake_shm_arrive_at(model.ep[msg->ep].shm,
						      msg->kind, name,
						      msg->tag, text);

	arrived->data = model_msg_index(msg);
	arrived->flags = FI_REMOTE_CQ_DATA;
}

static uint64_t model_random_tag(void)
{
	return model_random(3) | (model_one_in(4) ? 0x100 : 0);
}

void model_arrive(int ep, enum model_source source, enum duo_rx_kind kind)
{
	struct model_msg *msg = &model.msg[model.msg_count++];
	char text[MODEL_BUF];

	msg->ep = ep;
	msg->kind = kind;
	msg->source = source;
	msg->tag = msg->kind == DUO_TAGGED ? model_random_tag() : 0;
	msg->len = 8 + model_random(model_one_in(5) ? 120 : 20);
	msg->known = model.peer[source].inserted[ep];
	msg->on_shm = !model.peer[source].far;
	msg->life = model.peer[source].life;
	msg->sent = model.step;
	model_text(msg, text);
	model_trace("message %d to %d: %s, source %d over %s, tag 0x%lx, "
		    "%zu bytes", model_msg_index(msg), ep,
		    msg->kind == DUO_TAGGED ? "tagged" : "untagged", source,
		    msg->on_shm ? "shm" : "the core",
		    (unsigned long) msg->tag, msg->len);
	if (msg->on_shm)
		model_arrive_shm(msg, text);
	else
		model_arrive_core(msg, text);
}

/*
 * True if the peer can send to ep: over the core if ep's AV has the peer,
 * because the core reports no other sources; over shm if the peer is published.
 */
static bool model_can_send(int ep, const struct model_peer *peer)
{
	return peer->far ? peer->inserted[ep] : peer->peer_name != NULL;
}

void model_arrive_some(int ep, enum model_source source)
{
	int count = 1 + model_random(model_one_in(4) ? 20 : 2);

	if (!model_can_send(ep, &model.peer[source]))
		return;
	while (count-- && model.msg_count < MODEL_MSGS - MODEL_PRESSES)
		model_arrive(ep, source, model_random(DUO_KIND_COUNT));
}

static void model_act_arrive(void)
{
	int ep = model_random_ep();

	model_arrive_some(ep, model_random(model_sources()));
}

/* Sends to dest. A send over the core fails with probability 1/4. */
static void model_send(struct model_send *send, enum model_source dest)
{
	fi_addr_t addr = model.peer[dest].addr[send->ep];
	struct fid_ep *ep = model.ep[send->ep].ep;
	int before = fake.tx[FI_DUO_CORE].count;
	ssize_t ret;

	fake.core.send_err = model_one_in(4) ? FI_EIO : 0;
	ret = model_one_in(2) ?
	      fi_tsend(ep, "x", 1, NULL, addr, TAG, send) :
	      fi_send(ep, "x", 1, NULL, addr, send);
	model_assert(!ret, "send: %zd", ret);
	send->on_core = fake.tx[FI_DUO_CORE].count > before;
	send->fails = send->on_core && fake.core.send_err;
	fake.core.send_err = 0;
}

static void model_send_one(void)
{
	enum model_source dest = model_random(model_sources());
	struct model_send *send = &model.send[model.send_count];
	int ep = model_random_ep();

	if (model.send_count == MODEL_SENDS || !model.peer[dest].inserted[ep])
		return;
	model_trace("send %d from %d to %d", model.send_count++, ep, dest);
	send->ep = ep;
	model_send(send, dest);
}

void model_act_send(void)
{
	int count = 1 + model_random(4);

	while (count--)
		model_send_one();
}

/* Starts or ends the delay of the core's completions. */
static void model_act_hold(void)
{
	model_trace("hold or release");
	if (model_one_in(2))
		fake.core.hold = true;
	else
		fake_core_release();
}

static void model_act_twice(void)
{
	fake.core.ends_twice = model_one_in(2);
}

static void model_act_eagain(void)
{
	fake.core.eagain = 1 + model_random(4);
	model_trace("the core will say -FI_EAGAIN");
}

static void model_act_reject(void)
{
	if (fake.core.post_err)
		return;
	fake.core.post_err = FI_EOPNOTSUPP;
	model.post_errs++;
	model_trace("the core will reject");
}

static void model_act_slow(void)
{
	fake.shm.slow = model_one_in(2);
}

static void model_cancel(struct model_recv *recv)
{
	ssize_t ret = fi_cancel(&model.ep[recv->ep].ep->fid, recv);

	model_trace("cancel %d: %zd", model_recv_index(recv), ret);
	model_assert(!ret || ret == -FI_ENOENT, "fi_cancel: %zd", ret);
	if (!ret && !recv->canceled)
		recv->canceled = model.step;
	recv->canceling = true;
}

static bool model_cancelable(const struct model_recv *recv)
{
	return recv->state == MODEL_OPEN &&
	       (recv->op == MODEL_SINGLE || recv->op == MODEL_MULTI);
}

static void model_act_cancel(void)
{
	struct model_recv *recv;

	if (!model.recv_count)
		return;
	recv = &model.recv[model_random(model.recv_count)];
	if (model_cancelable(recv))
		model_cancel(recv);
}

/*
 * Cancels a receive that has ended. Another receive may use its entry now, and
 * must not be canceled.
 */
static void model_cancel_ended(void)
{
	struct model_recv *recv = &model.recv[model_random(model.recv_count)];
	ssize_t ret;

	if (recv->state == MODEL_OPEN || recv->op == MODEL_CLAIM)
		return;
	ret = fi_cancel(&model.ep[recv->ep].ep->fid, recv);
	model_trace("cancel %d, which has ended: %zd", model_recv_index(recv),
		    ret);
	model_assert(ret == -FI_ENOENT, "fi_cancel of an ended one: %zd", ret);
}

/* Cancels the receive of the newest message before its completion is read. */
static void model_cancel_taker(void)
{
	const struct model_msg *msg = &model.msg[model.msg_count - 1];
	int i;

	for (i = 0; i < model.recv_count; i++) {
		if (model_cancelable(&model.recv[i]) &&
		    model_takes(&model.recv[i], msg))
			break;
	}
	if (i < model.recv_count)
		model_cancel(&model.recv[i]);
}

/* Cancels an ended receive, or the receive of a message that just arrived. */
static void model_act_cancel_late(void)
{
	int before = model.msg_count;

	if (model.recv_count && model_one_in(2)) {
		model_cancel_ended();
		return;
	}
	model_act_arrive();
	if (model.msg_count > before)
		model_cancel_taker();
}

void model_cancel_all(void)
{
	int i;

	for (i = 0; i < model.recv_count; i++) {
		if (model_cancelable(&model.recv[i]))
			model_cancel(&model.recv[i]);
	}
}

/* Advances the clock by 5 ms or 2 s. After 2 s all periodic work is due. */
static void model_act_pass(void)
{
	unit_pass(model_one_in(2) ? 5000 : 2000000);
}

static void model_read_some(void)
{
	int count = 1 + model_random(model_one_in(4) ? 30 : 3);

	while (count--)
		model_read();
}

static void model_act_read(void)
{
	if (!model.lazy_reader || model_one_in(6))
		model_read_some();
}

static const struct {
	size_t weight;
	void (*act)(void);
} model_actions[] = {
	{ 50, model_act_post },
	{ 40, model_act_arrive },
	{ 20, model_act_read },
	{ 7, model_act_send },
	{ 10, model_act_hold },
	{ 10, model_act_cancel },
	{ 8, model_act_cancel_late },
	{ 10, model_claim },
	{ 10, model_act_slow },
	{ 5, model_peek },
	{ 5, model_act_twice },
	{ 2, model_act_eagain },
	{ 1, model_act_reject },
	{ 4, model_act_pass },
	{ 2, model_act_insert },
	{ 2, model_act_publish },
	{ 2, model_act_restart },
};

void model_act(void)
{
	size_t i, at, sum = 0;

	for (i = 0; i < ARRAY_SIZE(model_actions); i++)
		sum += model_actions[i].weight;
	at = model_random(sum);
	for (i = 0; at >= model_actions[i].weight; i++)
		at -= model_actions[i].weight;
	model_actions[i].act();
	if (model.eager_reader)
		model_read_some();
	model.step++;
}

void model_end_faults(void)
{
	fake_core_release();
	fake.core.eagain = 0;
	fake.shm.slow = false;
	if (fake.core.post_err)
		model.post_errs--;
	fake.core.post_err = 0;
}
