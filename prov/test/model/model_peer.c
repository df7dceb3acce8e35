/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Sources of messages: entries in AVs and the registry, ends and restarts */

#include "model.h"

static void model_publish(enum model_source source)
{
	model_trace("source %d publishes itself", source);
	model.peer[source].peer_name = peer_publish(MODEL_ADDR + source);
}

static void model_inserted(int ep, enum model_source source, fi_addr_t addr)
{
	struct model_peer *peer = &model.peer[source];

	model_assert(!peer->inserted[ep] || peer->addr[ep] == addr,
		     "source %d has another address", source);
	peer->addr[ep] = addr;
	peer->inserted[ep] = true;
}

/* Inserts the source into the AV of ep, which endpoints may share. */
static void model_insert(int ep, enum model_source source)
{
	uint64_t core_addr = MODEL_ADDR + source;
	fi_addr_t addr;
	int i;

	ck_assert_int_eq(fi_av_insert(model.ep[ep].av, &core_addr, 1, &addr, 0,
				      NULL), 1);
	model_trace("source %d is inserted, %lu in the AV of %d", source,
		    (unsigned long) addr, ep);
	for (i = 0; i < model.eps; i++) {
		if (model_same_av(i, ep))
			model_inserted(i, source, addr);
	}
}

static bool model_is_first(int ep)
{
	return !ep || !model_same_av(ep, 0);
}

static void model_insert_everywhere(enum model_source source)
{
	int i;

	for (i = 0; i < model.eps; i++) {
		if (model_is_first(i))
			model_insert(i, source);
	}
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
		model_publish(MODEL_UNKNOWN);
	}
	for (i = 0; i < model_sources(); i++) {
		if (i != MODEL_UNKNOWN &&
		    (!model.local_first || model.peer[i].peer_name))
			model_insert_everywhere(i);
	}
}

/*
 * Inserts a source while its messages arrive. The endpoint's sends before and
 * after the insert poll shm. In these polls, shm may queue later messages of
 * the source while earlier messages are unresolved.
 */
void model_act_insert(void)
{
	enum model_source source = model_random(model_sources());
	int ep = model_random_ep();

	if (model.peer[source].inserted[ep])
		return;
	model_arrive_some(ep, source);
	model_act_send();
	model_insert(ep, source);
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
	model_arrive_some(model_random_ep(), MODEL_LATE);
	model_act_send();
}

/*
 * Before a source ends: marks its waiting messages that directed receives may
 * miss. Gaps:
 * - If the source is not in the AV, its messages over shm never get a source.
 * - If the source's new process uses shm, receives that name the source do not
 *   match messages of the old process that wait at the core.
 */
static void model_orphan(int source)
{
	const struct model_peer *peer = &model.peer[source];
	struct model_msg *msg;

	for (msg = model.msg; msg < model.msg + model.msg_count; msg++) {
		if (msg->source == source && !msg->recv)
			msg->orphan |= msg->on_shm ?
				       !peer->inserted[msg->ep] : !peer->far;
	}
}

static bool model_holds(void)
{
	int i;

	for (i = 0; i < model.eps; i++) {
		if (!TAILQ_EMPTY(&duo_ep_of(model.ep[i].ep)->rx.unresolved))
			return true;
	}
	return false;
}

/*
 * Reads until no message is unresolved; called before a source ends. Gap: a
 * message that is unresolved when its source ends stays unresolved.
 */
static void model_look_up_all(void)
{
	int i;

	for (i = 0; !TAILQ_EMPTY(&fake.shm.incoming) || model_holds(); i++) {
		model_assert(i < 1000, "messages stay unresolved");
		model_read();
	}
}

/*
 * Restarts a source. If the new process sends over the core, a lookup may find
 * no record. So the address is inserted again before the first send
 * (docs/matching.md).
 */
void model_act_restart(void)
{
	enum model_source source =
		MODEL_LOCAL_FAR + model_random(MODEL_SOURCES - MODEL_LOCAL_FAR);
	struct model_peer *peer = &model.peer[source];
	int i;

	if (model.attr.no_shm || !peer->peer_name)
		return;
	model_look_up_all();
	peer_end(peer->peer_name);
	peer->peer_name = NULL;
	peer->life++;
	peer->far = model_one_in(2);
	model_orphan(source);
	model_trace("source %d has restarted, %s", source,
		    peer->far ? "far" : "near");
	if (!peer->far || model_one_in(2))
		model_publish(source);
	for (i = 0; i < model.eps; i++) {
		if (model_is_first(i) && peer->inserted[i] &&
		    (peer->far || model_one_in(2)))
			model_insert(i, source);
	}
}

static bool model_names(const struct model_recv *recv, int source)
{
	return recv->state == MODEL_OPEN &&
	       (recv->source == source ||
		(recv->op == MODEL_CLAIM && recv->msg->source == source));
}

/*
 * True if no message of the source waits, and no open receive names the source,
 * at the endpoints with the AV of ep.
 */
static bool model_quiet(int ep, int source)
{
	int i;

	for (i = 0; i < model.msg_count; i++) {
		if (model.msg[i].source == source && !model.msg[i].recv &&
		    model_same_av(model.msg[i].ep, ep))
			return false;
	}
	for (i = 0; i < model.recv_count; i++) {
		if (model_names(&model.recv[i], source) &&
		    model_same_av(model.recv[i].ep, ep))
			return false;
	}
	return true;
}

static void model_removed(int ep, enum model_source source)
{
	struct model_peer *peer = &model.peer[source];

	peer->inserted[ep] = false;
	ck_assert_int_eq(send_x(model.ep[ep].ep, peer->addr[ep], NULL),
			 -FI_EINVAL);
}

void model_remove(void)
{
	enum model_source source = model_random(model_sources());
	struct model_peer *peer = &model.peer[source];
	int i, ep = model_random_ep();

	if (!peer->inserted[ep])
		return;
	model_claim_all();
	model_cancel_all();
	model_read_all();
	model_drain();
	if (!model_quiet(ep, source))
		return;
	model_trace("source %d is removed from the AV of %d", source, ep);
	ck_assert_int_eq(fi_av_remove(model.ep[ep].av, &peer->addr[ep], 1, 0),
			 0);
	for (i = 0; i < model.eps; i++) {
		if (model_same_av(i, ep))
			model_removed(i, source);
	}
}
