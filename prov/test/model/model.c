/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdarg.h>
#include <stdio.h>

#include "model.h"

struct model model;
static bool model_tracing;

void model_trace_on(void)
{
	model_tracing = true;
}

void model_trace(const char *format, ...)
{
	va_list args;

	if (!model_tracing)
		return;
	va_start(args, format);
	fprintf(stderr, "%d: ", model.step);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

size_t model_random(size_t below)
{
	return unit_random(&model.random) % below;
}

bool model_one_in(size_t count)
{
	return model_random(count) == 0;
}

int model_random_ep(void)
{
	return model.eps > 1 ? model_random(model.eps) : 0;
}

bool model_same_av(int ep, int other)
{
	return model.ep[ep].av == model.ep[other].av;
}

int model_sources(void)
{
	return model.attr.no_shm ? MODEL_LATE : MODEL_SOURCES;
}

fi_addr_t model_src(const struct model_recv *recv)
{
	return recv->source == MODEL_ANY ?
	       FI_ADDR_UNSPEC : model.peer[recv->source].addr[recv->ep];
}

bool model_takes(const struct model_recv *recv, const struct model_msg *msg)
{
	return recv->ep == msg->ep && recv->kind == msg->kind &&
	       (recv->source == MODEL_ANY || recv->source == msg->source) &&
	       ((recv->tag ^ msg->tag) & ~recv->ignore) == 0;
}

bool model_final(const struct model_recv *recv)
{
	return model.util_srx && recv->kind == DUO_MSG &&
	       recv->source != MODEL_ANY;
}

void model_take(struct model_recv *recv, struct model_msg *msg)
{
	int index = model_recv_index(recv);

	model_trace("  message %d is receive %d's", model_msg_index(msg),
		    index);
	model_assert(!msg->recv, "message %d is received twice, by %d and %d",
		     model_msg_index(msg), model_recv_index(msg->recv), index);
	model_assert(model_takes(recv, msg), "message %d is none for %d",
		     model_msg_index(msg), index);
	recv->msg = msg;
	msg->recv = recv;
	msg->seen = model.step;
}

int model_recv_index(const struct model_recv *recv)
{
	return recv - model.recv;
}

int model_msg_index(const struct model_msg *msg)
{
	return msg - model.msg;
}

struct model_msg *model_msg_at(uint64_t index)
{
	model_assert(index < (uint64_t) model.msg_count, "no message %lu",
		     (unsigned long) index);
	return &model.msg[index];
}

/* Writes "m", the message's index in six digits, then one letter repeated. */
void model_text(const struct model_msg *msg, char *text)
{
	unsigned int index = model_msg_index(msg);
	char id[MODEL_ID + 1];

	memset(text, 0, MODEL_BUF);
	memset(text, 'A' + index % 26, msg->len);
	snprintf(id, sizeof(id), "m%06u", index % 1000000);
	memcpy(text, id, MODEL_ID);
}

struct model_msg *model_msg_in(const char *buf, size_t len)
{
	char digits[MODEL_ID] = "";

	if (len < MODEL_ID || buf[0] != 'm')
		return NULL;
	memcpy(digits, buf + 1, MODEL_ID - 1);
	return model_msg_at(strtoul(digits, NULL, 10));
}
