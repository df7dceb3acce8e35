/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages match wildcard receives as fast as these are posted, so that
 * shm is never idle. A message that waits at the core must still match a
 * receive. The local messages are for the same endpoint as the core's message,
 * or for another endpoint on the same CQ.
 */

#include "model.h"

/* largest number of messages that wait at the start */
#define MODEL_PRESS_WAITING 40
#define MODEL_PRESS_FIRST 10	/* local messages before the core's message */
#define MODEL_PRESS_OPEN 2	/* number of receives that are kept open */

static int model_waiting(int ep, enum duo_rx_kind kind)
{
	int i, waiting = 0;

	for (i = 0; i < model.msg_count; i++)
		waiting += !model.msg[i].recv && model.msg[i].ep == ep &&
			   model.msg[i].kind == kind;
	return waiting;
}

static bool model_takes_all(const struct model_recv *recv, int ep,
			    enum duo_rx_kind kind)
{
	return recv->ep == ep && recv->kind == kind &&
	       recv->state == MODEL_OPEN && recv->op == MODEL_SINGLE &&
	       recv->source == MODEL_ANY && recv->ignore == ~0ULL &&
	       recv->wanted;
}

static int model_open_wildcards(int ep, enum duo_rx_kind kind)
{
	int i, count = 0;

	for (i = 0; i < model.recv_count; i++)
		count += model_takes_all(&model.recv[i], ep, kind);
	return count;
}

/*
 * True if a multi-receive buffer is open. Gap: wildcard receives may have to
 * wait for the end of the buffer (docs/matching.md).
 */
static bool model_has_buffers(int ep)
{
	int i;

	for (i = 0; i < model.recv_count; i++) {
		if (model.recv[i].ep == ep && model.recv[i].op == MODEL_MULTI &&
		    model.recv[i].state == MODEL_OPEN)
			return true;
	}
	return false;
}

static void model_post_wildcards(int ep, enum duo_rx_kind kind)
{
	int missing = MODEL_PRESS_OPEN - model_open_wildcards(ep, kind);

	while (missing-- > 0)
		model_post_wildcard(ep, kind);
}

static void model_press_once(int busy, enum duo_rx_kind kind)
{
	model_post_wildcards(busy, kind);
	model_arrive(busy, MODEL_LOCAL, kind);
	model_read_cq(model.ep[busy].cq);
	model.step++;
}

/* Posts receives for all waiting messages, and some more. */
static void model_serve(int ep, enum duo_rx_kind kind)
{
	int waiting = model_waiting(ep, kind);

	while (waiting--)
		model_post_wildcard(ep, kind);
	model_read_all();
	model_post_wildcards(ep, kind);
}

static bool model_can_press(int ep, enum duo_rx_kind kind)
{
	return model.peer[MODEL_REMOTE].inserted[ep] &&
	       model_waiting(ep, kind) <= MODEL_PRESS_WAITING &&
	       (kind == DUO_TAGGED || !model_has_buffers(ep));
}

void model_press(int ep, int busy, enum duo_rx_kind kind)
{
	struct model_msg *far;
	int i;

	if (model.peer[MODEL_LOCAL].far || !model_can_press(ep, kind) ||
	    !model_can_press(busy, kind) ||
	    model.ep[ep].cq != model.ep[busy].cq ||
	    model.msg_count > MODEL_MSGS - MODEL_PRESSES)
		return;
	model_trace("press %d, for %d", busy, ep);
	duo_params.defer_us = 0;
	model_serve(ep, kind);
	if (busy != ep)
		model_serve(busy, kind);
	for (i = 0; i < MODEL_PRESS_FIRST; i++)
		model_press_once(busy, kind);
	far = &model.msg[model.msg_count];
	model_arrive(ep, MODEL_REMOTE, kind);
	for (; i < MODEL_PRESSES - 1 && !far->recv; i++)
		model_press_once(busy, kind);
	if (!far->recv)
		model_find_silent();
	model_assert(far->recv, "message %d starves", model_msg_index(far));
}
