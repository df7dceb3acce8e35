/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The sources: who is in the AV and in the registry, and who ends. */

#include "model.h"

#define MODEL_ADDR 10	/* of the first source; the core's */

static void model_publish(enum model_source source)
{
	model_trace("source %d publishes itself", source);
	model.peer[source].peer_name = peer_publish(MODEL_ADDR + source);
}

static void model_insert(enum model_source source)
{
	struct model_peer *peer = &model.peer[source];
	fi_addr_t addr = peer_insert(MODEL_ADDR + source);

	model_trace("source %d is inserted, %lu", source,
		    (unsigned long) addr);
	model_assert(!peer->inserted || peer->addr == addr,
		     "source %d has another address", source);
	peer->addr = addr;
	peer->inserted = true;
}

void model_open_peers(void)
{
	int i;

	for (i = 0; i < model_sources(); i++)
		model.peer[i].far = model.attr.no_shm || i < MODEL_LOCAL;
	if (!model.attr.no_shm) {
		model_publish(MODEL_LOCAL_FAR);
		model_publish(MODEL_LOCAL);
		model_publish(MODEL_LOCAL_2);
		model_publish(MODEL_STRANGER);
	}
	for (i = 0; i < model_sources(); i++) {
		if (i != MODEL_STRANGER)
			model_insert(i);
	}
}

/*
 * A source becomes known amid its messages. Sends take some in without
 * matching what is held.
 */
void model_act_insert(void)
{
	enum model_source source = model_random(model_sources());

	if (model.peer[source].inserted)
		return;
	model_arrive_some(source);
	model_act_send();
	model_insert(source);
	model_act_send();
	if (model_one_in(2))
		model_act_post();
}

void model_act_publish(void)
{
	if (model.attr.no_shm || model.peer[MODEL_LATE].peer_name ||
	    model.peer[MODEL_LATE].far)
		return;
	model_publish(MODEL_LATE);
	model_arrive_some(MODEL_LATE);
	model_act_send();
}

/*
 * Known gaps: what has no source by now gets none any more, and what waits
 * at the core is not looked for there if the next one uses shm.
 */
static void model_orphan(int source)
{
	const struct model_peer *peer = &model.peer[source];
	struct model_msg *msg;

	for (msg = model.msg; msg < model.msg + model.msg_count; msg++) {
		if (msg->source == source && !msg->recv)
			msg->orphan |= msg->on_shm ? !peer->inserted :
						     !peer->far;
	}
}

/*
 * Who looks the address up again may not find anybody, since not all
 * publish themselves; before the next one sends over the core he must have
 * done so: docs/matching.md, known gaps.
 */
void model_act_restart(void)
{
	enum model_source source = MODEL_LOCAL_FAR +
				   model_random(MODEL_SOURCES - MODEL_LOCAL_FAR);
	struct model_peer *peer = &model.peer[source];

	if (model.attr.no_shm || !peer->peer_name)
		return;
	while (!TAILQ_EMPTY(&fake.shm.incoming))
		model_read();
	peer_end(peer->peer_name);
	peer->peer_name = NULL;
	peer->life++;
	peer->far = model_one_in(2);
	model_orphan(source);
	model_trace("source %d has restarted, %s", source,
		    peer->far ? "far" : "near");
	if (!peer->far || model_one_in(2))
		model_publish(source);
	if (peer->inserted && (peer->far || model_one_in(2)))
		model_insert(source);
}

static bool model_names(const struct model_recv *recv, int source)
{
	return recv->state == MODEL_OPEN &&
	       (recv->source == source ||
		(recv->op == MODEL_CLAIM && recv->msg->source == source));
}

/* Nothing of the source is on its way, and nothing waits for it. */
static bool model_quiet(int source)
{
	int i;

	for (i = 0; i < model.msg_count; i++) {
		if (model.msg[i].source == source && !model.msg[i].recv)
			return false;
	}
	for (i = 0; i < model.recv_count; i++) {
		if (model_names(&model.recv[i], source))
			return false;
	}
	return true;
}

void model_remove(void)
{
	enum model_source source = model_random(model_sources());
	struct model_peer *peer = &model.peer[source];

	if (!peer->inserted)
		return;
	model_claim_all();
	model_cancel_all();
	model_read_all();
	model_drain();
	if (!model_quiet(source))
		return;
	model_trace("source %d is removed", source);
	ck_assert_int_eq(fi_av_remove(fx.av, &peer->addr, 1, 0), 0);
	peer->inserted = false;
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer->addr, TAG, NULL),
			 -FI_EINVAL);
}
