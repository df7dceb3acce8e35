/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages that take receives from any source as fast as they are
 * posted: shm is never idle. What waits at the core gets one all the same.
 */

#include "model.h"

#define MODEL_PRESS_WAITING 40	/* messages at first */
#define MODEL_PRESS_FIRST 10	/* before the one of the core */
#define MODEL_PRESS_OPEN 2	/* receives */

static int model_waiting(enum duo_rx_kind kind)
{
	int i, waiting = 0;

	for (i = 0; i < model.msg_count; i++)
		waiting += !model.msg[i].recv && model.msg[i].kind == kind;
	return waiting;
}

static bool model_takes_all(const struct model_recv *recv,
			    enum duo_rx_kind kind)
{
	return recv->kind == kind && recv->state == MODEL_OPEN &&
	       recv->op == MODEL_SINGLE && recv->source == MODEL_ANY &&
	       recv->ignore == ~0ULL && recv->wanted;
}

static int model_open_wildcards(enum duo_rx_kind kind)
{
	int i, count = 0;

	for (i = 0; i < model.recv_count; i++)
		count += model_takes_all(&model.recv[i], kind);
	return count;
}

/* Known gap, docs/matching.md: wildcards may have to wait for a buffer. */
static bool model_has_buffers(void)
{
	int i;

	for (i = 0; i < model.recv_count; i++) {
		if (model.recv[i].op == MODEL_MULTI &&
		    model.recv[i].state == MODEL_OPEN)
			return true;
	}
	return false;
}

static void model_press_once(enum duo_rx_kind kind)
{
	int missing = MODEL_PRESS_OPEN - model_open_wildcards(kind);

	while (missing-- > 0)
		model_post_wildcard(kind);
	model_arrive(MODEL_LOCAL, kind);
	model_read();
	model.step++;
}

void model_press(enum duo_rx_kind kind)
{
	int i, waiting = model_waiting(kind);
	struct model_msg *far;

	if (model.peer[MODEL_LOCAL].far || !model.peer[MODEL_REMOTE].inserted ||
	    waiting > MODEL_PRESS_WAITING ||
	    model.msg_count > MODEL_MSGS - MODEL_PRESSES ||
	    (kind == DUO_MSG && model_has_buffers()))
		return;
	model_trace("press");
	duo_params.lazy_time = 0;
	while (waiting--)
		model_post_wildcard(kind);
	model_read_all();
	for (i = 0; i < MODEL_PRESS_FIRST; i++)
		model_press_once(kind);
	far = &model.msg[model.msg_count];
	model_arrive(MODEL_REMOTE, kind);
	for (; i < MODEL_PRESSES - 1 && !far->recv; i++)
		model_press_once(kind);
	if (!far->recv)
		model_find_silent();
	model_assert(far->recv, "message %d starves", model_msg_index(far));
}
