/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "talk.h"

#define TALK_KEY 0x746f7274757265u

static uint8_t pattern[TALK_LARGE + 256];

struct talk_common *talk_common(void)
{
	/*
	 * by a system call, because stores to this memory must not be counted
	 */
	long at = syscall(SYS_mmap, NULL, sizeof(struct talk_common),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	ck_assert_int_ne(at, -1);
	rig_fill(pattern, sizeof(pattern), 5);
	return (struct talk_common *)at;
}

static const uint8_t *talk_bytes(uint32_t i)
{
	return pattern + (i & 255);
}

static void talk_done(void *ctx, struct near_peer *peer, void *cookie,
		      uint32_t about, int err);

static void talk_event(void *ctx, const struct near_rma_event *event)
{
}

static const struct near_rma_sink talk_sink = {
	.device = &talk_near_device, .done = talk_done, .event = talk_event,
};

/* Makes the list of operations, the same in both processes. */
static void talk_plan_ops(struct talk *talk)
{
	const struct talk_plan *plan = talk->plan;
	unsigned int seed = talk->seed;
	uint32_t i, at = 0, span = plan->most - plan->least + 1;
	struct talk_op *op;

	for (i = 0; i < plan->ops; i++) {
		op = &talk->op[i];
		op->talk = talk;
		do
			op->kind = 1 << rand_r(&seed) % 4;
		while (!(plan->kinds & op->kind));
		op->len = op->kind == TALK_FETCH ? 8 :
			  plan->least + rand_r(&seed) % span;
		if (op->kind != TALK_WRITE && op->kind != TALK_READ)
			continue;
		op->len += !op->len;
		ck_assert_uint_le(at + op->len, sizeof(talk->common->memory));
		op->at = at;
		at += op->len;
	}
}

/* Fills the memory from which the active process will read. */
static void talk_fill(struct talk *talk)
{
	uint32_t i;

	for (i = 0; i < talk->plan->ops; i++)
		if (talk->op[i].kind == TALK_READ)
			memcpy(talk->common->memory + talk->op[i].at,
			       talk_bytes(i), talk->op[i].len);
}

static void talk_region(struct talk *talk, uint64_t key, void *memory,
			size_t len)
{
	const struct near_region_entry entry = {
		.key = key, .start = TALK_BASE, .memory = (uintptr_t)memory,
		.len = len, .access = NEAR_MAY_READ | NEAR_MAY_WRITE,
	};

	ck_assert_int_eq(near_table_add(talk->table, &entry), 0);
}

static void talk_regions(struct talk *talk)
{
	const enum near_device_path device = talk->plan->device;
	struct talk_common *common = talk->common;

	if (talk->role == TALK_ACTIVE && device == NEAR_DEVICE_LENT)
		talk_device_region(talk, TALK_LENT_KEY, common->device,
				   sizeof(common->device), NEAR_MAY_LEND);
	if (talk->role == TALK_ACTIVE)
		return;
	talk_fill(talk);
	if (device == NEAR_DEVICE_MAPPED)
		talk_device_region(talk, TALK_KEY, common->memory,
				   sizeof(common->memory),
				   (NEAR_MAY_READ | NEAR_MAY_WRITE) <<
					   NEAR_MAY_DEVICE);
	else
		talk_region(talk, TALK_KEY, common->memory,
			    sizeof(common->memory));
	talk_region(talk, TALK_KEY + 1, &common->number, 8);
}

void talk_open(struct talk *talk, const struct talk_plan *plan, int role,
	       unsigned int seed, struct talk_common *common)
{
	memset(talk, 0, sizeof(*talk));
	talk->plan = plan;
	talk->role = role;
	talk->seed = seed;
	talk->common = common;
	talk_device_open(talk);
	talk_plan_ops(talk);
	talk->rig = rig_open_with(plan->no_cma,
				  plan->memory ? plan->memory : NEAR_MEMORY);
	ck_assert_int_eq(near_table_open(&talk->table, plan->device), 0);
	ck_assert_int_eq(near_rma_open(talk->rig->port, &talk_sink,
				       talk->table, false), 0);
	if (plan->far)
		ck_assert_int_eq(near_listen(talk->rig->port, -1), 0);
	talk_regions(talk);
	near_address(talk->rig->port, &common->addr[role]);
	__atomic_store_n(&common->open[role], 1, __ATOMIC_RELEASE);
}

static void talk_buf(struct talk_op *op)
{
	op->buf = op->talk->plan->device ? op->talk->common->device + op->at :
					   malloc(op->len);
}

static void talk_buf_free(struct talk_op *op)
{
	if (!op->talk->plan->device)
		free(op->buf);
	op->buf = NULL;
}

static void talk_ended(struct talk_op *op, int err)
{
	struct talk *talk = op->talk;
	uint32_t i = (uint32_t)(op - talk->op);

	talk->under_way--;
	ck_assert_msg(!err || err == ECONNRESET, "operation %u of kind %u "
		      "ended with error %d", i, op->kind, err);
	if (err)
		talk->failed++;
	else if (op->kind == TALK_READ)
		ck_assert_mem_eq(op->buf, talk_bytes(i), op->len);
	if (!err)
		__atomic_store_n(&talk->common->ended[i], 1, __ATOMIC_RELEASE);
	talk_buf_free(op);
}

static void talk_done(void *ctx, struct near_peer *peer, void *cookie,
		      uint32_t about, int err)
{
	talk_ended(cookie, err);
}

static int talk_send(struct talk *talk, struct talk_op *op, uint32_t i)
{
	int ret = rig_send(talk->rig, talk->to, i, talk_bytes(i), op->len);

	if (ret == NEAR_LARGE) {
		op->buf = malloc(op->len);
		memcpy(op->buf, talk_bytes(i), op->len);
		return rig_send_large(talk->rig, talk->to, i, op->buf, op->len,
				      op);
	}
	if (!ret)
		talk_ended(op, 0);
	return ret;
}

static int talk_onesided(struct talk *talk, struct talk_op *op, uint32_t i)
{
	static const uint64_t one = 1;
	const struct iovec add = { (void *)&one, 8 }, was = { &op->was, 8 };
	const bool fetch = op->kind == TALK_FETCH;
	void *const device[] = { talk_device_handle };
	struct iovec iov = { NULL, op->len };
	struct near_rma_args args = {
		.verb = fetch ? NEAR_FETCH :
			op->kind == TALK_READ ? NEAR_READ : NEAR_WRITE,
		.flags = NEAR_RMA_TRY, .addr = TALK_BASE + op->at,
		.key = TALK_KEY + fetch, .local = { .iov = &iov, .count = 1 },
		.len = op->len, .op = NEAR_SUM, .type = NEAR_UINT64,
		.about = 1, .cookie = op,
	};
	int ret;

	if (fetch) {
		args.local.iov = &add;
		args.result = (struct near_rma_bufs) {
			.iov = &was, .count = 1,
		};
	} else {
		talk_buf(op);
		if (op->kind == TALK_WRITE)
			memcpy(op->buf, talk_bytes(i), op->len);
		iov.iov_base = op->buf;
		args.local.device = talk->plan->device ? device : NULL;
	}
	if (talk->to->rma)
		talk->to->rma->skip = talk->plan->direct ? UINT32_MAX : 0;
	ret = near_rma(talk->rig->port, talk->to, &args);
	if (ret == NEAR_RMA_DONE) {
		talk_ended(op, 0);
		return 0;
	}
	return ret;
}

/* Posts the next operation; false if it cannot be posted now. */
static bool talk_post(struct talk *talk)
{
	uint32_t i = talk->next;
	struct talk_op *op = &talk->op[i];
	int ret;

	talk->common->begun[i] = 1;
	talk->under_way++;
	ret = op->kind == TALK_MSG ? talk_send(talk, op, i) :
	      talk_onesided(talk, op, i);
	if (!ret) {
		talk->next++;
		return true;
	}
	talk->under_way--;
	talk->common->begun[i] = 0;
	talk_buf_free(op);
	if (ret == -EAGAIN)
		return false;
	ck_assert_msg(ret == -ECONNRESET || ret == -ESRCH ||
		      ret == -EHOSTUNREACH, "operation %u: %d", i, ret);
	talk->dead = true;
	return false;
}

static void talk_post_some(struct talk *talk)
{
	while (!talk->dead && talk->next < talk->plan->ops &&
	       talk->under_way < TALK_AHEAD && talk_post(talk))
		;
}

static void talk_in_order(struct talk *talk, const struct rig_event *event,
			  uint32_t i)
{
	ck_assert_uint_lt(i, talk->plan->ops);
	ck_assert_uint_eq(talk->op[i].kind, TALK_MSG);
	ck_assert_uint_eq(event->msg.len, talk->op[i].len);
	for (; talk->last < i; talk->last++)
		ck_assert_msg(talk->op[talk->last].kind != TALK_MSG,
			      "message %u came before %u", i, talk->last);
	talk->last++;
}

static void talk_hear(struct talk *talk, const struct rig_event *event)
{
	uint32_t i = (uint32_t)event->msg.tag;
	struct talk_op *op;
	struct iovec iov;

	switch (event->kind) {
	case RIG_MSG:
		talk_in_order(talk, event, i);
		ck_assert_uint_eq(event->sum, rig_sum(talk_bytes(i),
						      event->msg.len));
		talk->common->heard[i] = 1;
		break;
	case RIG_RNDV:
		talk_in_order(talk, event, i);
		op = &talk->op[i];
		op->buf = malloc(op->len);
		iov = (struct iovec) { op->buf, op->len };
		talk->under_way++;
		ck_assert_int_eq(near_recv(talk->rig->port, event->peer,
					   &event->msg.rndv, &iov, 1, op->len,
					   op), 0);
		break;
	case RIG_RECEIVED:
		op = event->cookie;
		i = (uint32_t)(op - talk->op);
		talk->under_way--;
		ck_assert(!event->err || event->err == ECONNRESET);
		if (!event->err) {
			ck_assert_mem_eq(op->buf, talk_bytes(i), op->len);
			talk->common->heard[i] = 1;
		}
		free(op->buf);
		op->buf = NULL;
		return;
	case RIG_SENT:
		talk_ended(event->cookie, event->err);
		return;
	case RIG_GONE:
		talk->gone++;
		talk->dead = true;
		break;
	}
	near_peer_put(talk->rig->port, event->peer);
}

static void talk_greet(struct talk *talk)
{
	struct talk_common *common = talk->common;

	if (talk->to || talk->role == TALK_PASSIVE ||
	    !__atomic_load_n(&common->open[TALK_PASSIVE], __ATOMIC_ACQUIRE))
		return;
	ck_assert_int_eq(near_peer_get(talk->rig->port,
				       &common->addr[TALK_PASSIVE], &talk->to),
			 0);
	near_peer_monitor(talk->rig->port, talk->to);
}

bool talk_step(struct talk *talk)
{
	struct rig *rig = talk->rig;
	uint32_t i, n, next = talk->next;

	talk_greet(talk);
	if (talk->to)
		talk_post_some(talk);
	rig_poll(rig, 1);
	n = rig->count;
	for (i = 0; i < n; i++)
		talk_hear(talk, &rig->event[i]);
	rig->count = 0;
	return n || next != talk->next;
}

bool talk_over(const struct talk *talk)
{
	struct talk_common *common = talk->common;
	uint32_t i;

	if (talk->role == TALK_ACTIVE) {
		if (talk->next < talk->plan->ops || talk->under_way)
			return false;
	} else {
		for (i = 0; i < talk->plan->ops; i++)
			if (talk->op[i].kind == TALK_MSG && !common->heard[i])
				return false;
	}
	__atomic_store_n(&common->over[talk->role], 1, __ATOMIC_RELEASE);
	return __atomic_load_n(&common->over[!talk->role], __ATOMIC_ACQUIRE);
}

void talk_sleep(struct talk *talk, int ms)
{
	struct pollfd poll_fd = {
		.fd = near_wait_fd(talk->rig->port), .events = POLLIN,
	};

	near_woken(talk->rig->port);
	if (!near_arm(talk->rig->port))
		poll(&poll_fd, 1, ms);
	near_woken(talk->rig->port);
}

bool talk_alone(const struct talk *talk)
{
	const struct near_port *port = talk->rig->port;
	const struct near_link *other = port->peers.next;
	uint32_t tx = 0, rx = 0;

	if (talk->to && other == &talk->to->link)
		other = other->next;
	return other == &port->peers && !rig_rx_rings(talk->rig) &&
	       !port->draining && !talk->rig->count &&
	       !near_pool_next(&port->tx_ops, &tx) &&
	       !near_pool_next(&port->rx_ops, &rx) && !talk->under_way;
}

void talk_check(const struct talk *talk, bool all)
{
	const struct talk_common *common = talk->common;
	uint32_t i, begun = 0, ended = 0;
	const struct talk_op *op;

	for (i = 0; i < talk->plan->ops; i++) {
		op = &talk->op[i];
		ck_assert_msg(!all || common->ended[i], "operation %u of kind "
			      "%u has not ended well", i, op->kind);
		ck_assert_msg(!common->heard[i] || common->begun[i],
			      "message %u was never sent", i);
		/* the passive process may end before it notes a message */
		if (op->kind == TALK_MSG && (all || talk->role == TALK_PASSIVE))
			ck_assert_msg(!common->ended[i] || common->heard[i],
				      "message %u was sent, and is lost", i);
		if (op->kind == TALK_WRITE && common->ended[i])
			ck_assert_msg(!memcmp(common->memory + op->at,
					      talk_bytes(i), op->len),
				      "write %u is not there", i);
		begun += op->kind == TALK_FETCH && common->begun[i];
		ended += op->kind == TALK_FETCH && common->ended[i];
	}
	if (all && talk->role == TALK_ACTIVE && talk->plan->device)
		ck_assert_uint_gt(near_rma_device_ops(talk->rig->port,
						      talk->plan->device), 0);
	ck_assert_msg(common->number >= ended && common->number <= begun,
		      "%lu additions of %u to %u",
		      (unsigned long)common->number, ended, begun);
}

void talk_close(struct talk *talk)
{
	uint32_t i;

	if (talk->to)
		near_peer_put(talk->rig->port, talk->to);
	rig_close(talk->rig);
	while (near_table_unmapped(talk->table))
		;
	/* later peers could not use a stage that is left in use */
	ck_assert_uint_eq(talk->table->stages[0], 0);
	near_table_close(talk->table);
	for (i = 0; i < talk->plan->ops; i++)
		talk_buf_free(&talk->op[i]);
}
