/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Post random receives by all calls. */

#include "model.h"

/* Iovecs of random lengths that cover a receive's buffer */
struct model_iov {
	struct iovec iov[DUO_IOV_LIMIT];
	size_t count;
};

static struct model_iov model_cut(struct model_recv *recv)
{
	struct model_iov cut = { .count = 1 };
	size_t i, len, done = 0;

	if (recv->op == MODEL_SINGLE)
		cut.count += model_random(DUO_IOV_LIMIT);
	for (i = 0; i < cut.count; i++) {
		len = recv->len - done;
		if (i < cut.count - 1)
			len = model_random(len + 1);
		cut.iov[i].iov_base = recv->buf + done;
		cut.iov[i].iov_len = len;
		done += len;
	}
	recv->buffers = cut.count;
	return cut;
}

static struct fid_ep *model_ep_of(const struct model_recv *recv)
{
	return model.ep[recv->ep].ep;
}

static ssize_t model_recv_one(struct model_recv *recv, uint64_t flags)
{
	return recv->kind == DUO_TAGGED ?
	       fi_trecv(model_ep_of(recv), recv->buf, recv->len, NULL,
			model_src(recv), recv->tag, recv->ignore, recv) :
	       fi_recv(model_ep_of(recv), recv->buf, recv->len, NULL,
		       model_src(recv), recv);
}

static ssize_t model_recv_vector(struct model_recv *recv, uint64_t flags)
{
	const struct model_iov cut = model_cut(recv);

	return recv->kind == DUO_TAGGED ?
	       fi_trecvv(model_ep_of(recv), cut.iov, NULL, cut.count,
			 model_src(recv), recv->tag, recv->ignore, recv) :
	       fi_recvv(model_ep_of(recv), cut.iov, NULL, cut.count,
			model_src(recv), recv);
}

static ssize_t model_recv_msg(struct model_recv *recv, uint64_t flags)
{
	const struct model_iov cut = model_cut(recv);
	const struct fi_msg msg = {
		.msg_iov = cut.iov,
		.iov_count = cut.count,
		.addr = model_src(recv),
		.context = recv,
	};

	return fi_recvmsg(model_ep_of(recv), &msg, flags);
}

static ssize_t model_trecv_msg(struct model_recv *recv, uint64_t flags)
{
	const struct model_iov cut = model_cut(recv);
	const struct fi_msg_tagged msg = {
		.msg_iov = cut.iov,
		.iov_count = (flags & FI_PEEK) ? 0 : cut.count,
		.addr = model_src(recv),
		.tag = recv->tag,
		.ignore = recv->ignore,
		.context = recv,
	};

	return fi_trecvmsg(model_ep_of(recv), &msg, flags);
}

typedef ssize_t (*model_call)(struct model_recv *recv, uint64_t flags);

/*
 * Posts the receive by this call. Returns false if the call has failed with an
 * injected error.
 */
static bool model_try(struct model_recv *recv, model_call call, uint64_t flags)
{
	int eagain = fake.core.eagain, post_err = fake.core.post_err;
	ssize_t ret = call(recv, flags);

	if (!ret)
		return true;
	model_trace("  rejected: %zd", ret);
	if (ret == -FI_EAGAIN) {
		model_assert(eagain, "the core takes receives");
		return false;
	}
	model_assert(post_err && ret == -post_err, "%zd", ret);
	model.post_errs--;
	return false;
}

static void model_trace_recv(const struct model_recv *recv, uint64_t flags)
{
	model_trace("receive %d of %d: op %d, %s, source %d, tag 0x%lx "
		    "ignoring 0x%lx, %zu bytes, flags 0x%lx, %s",
		    model_recv_index(recv), recv->ep, recv->op,
		    recv->kind == DUO_TAGGED ? "tagged" : "untagged",
		    recv->source, (unsigned long) recv->tag,
		    (unsigned long) recv->ignore, recv->len,
		    (unsigned long) flags,
		    recv->wanted ? "reported" : "silent");
}

static void model_try_new(struct model_recv *recv, model_call call,
			  uint64_t flags)
{
	model_trace_recv(recv, flags);
	if (!model_try(recv, call, flags))
		model.recv_count--;
}

static uint64_t model_random_ignore(void)
{
	static const uint64_t ignore[] = {
		0, 0, 0x100, 0x100, 0xfff, 0xfff, 0xfff, ~0ULL, ~0ULL,
	};

	return ignore[model_random(ARRAY_SIZE(ignore))];
}

/*
 * Returns a random source, or MODEL_ANY. On efa, an untagged receive that names
 * a local source never matches if the source sends over the core or publishes
 * late (docs/matching.md). So no untagged receive on efa names a local source.
 */
static int model_random_source(int ep, enum duo_rx_kind kind)
{
	int source = model_random(model_sources());

	if (!model.peer[source].inserted[ep] ||
	    (model.local_first ? model_one_in(30) : !model_one_in(3)))
		return MODEL_ANY;
	if (model.util_srx && kind == DUO_MSG && source > MODEL_REMOTE_2)
		return MODEL_ANY;
	return source;
}

static struct model_recv *model_recv_new(int ep, enum duo_rx_kind kind)
{
	struct model_recv *recv = &model.recv[model.recv_count++];

	model_assert(model.recv_count <= MODEL_RECVS, "too many receives");
	*recv = (struct model_recv) {
		.ep = ep,
		.kind = kind,
		.source = model_random_source(ep, kind),
		.tag = kind == DUO_TAGGED ? model_random(3) : 0,
		.ignore = kind == DUO_TAGGED ? model_random_ignore() : ~0ULL,
		.len = 8 + model_random(model_one_in(10) ? MODEL_BUF - 8 : 30),
		.wanted = true,
		.posted = model.step,
	};
	memset(recv->before, MODEL_GUARD_BYTE, sizeof(recv->before));
	memset(recv->behind, MODEL_GUARD_BYTE, sizeof(recv->behind));
	return recv;
}

/*
 * Posts by a call without a flags argument, to which the endpoint's default
 * flags apply.
 */
static void model_post_default(struct model_recv *recv)
{
	uint64_t flags = model.attr.rx_op_flags;

	recv->wanted = !model.selective || flags & FI_COMPLETION;
	model_try_new(recv, model_one_in(2) ? model_recv_one :
					      model_recv_vector, flags);
}

static void model_post_flags(struct model_recv *recv, uint64_t flags)
{
	recv->wanted = !model.selective || flags & FI_COMPLETION;
	model_try_new(recv, recv->kind == DUO_TAGGED ? model_trecv_msg :
						       model_recv_msg, flags);
}

static void model_post_multi(struct model_recv *recv)
{
	uint64_t flags = FI_MULTI_RECV;

	recv->op = MODEL_MULTI;
	recv->len = 40 + model_random(MODEL_BUF - 40);
	/* a directed buffer might never match: see model_random_source() */
	if (model.util_srx)
		recv->source = MODEL_ANY;
	if (model.attr.rx_op_flags & FI_MULTI_RECV && model_one_in(2)) {
		model_post_default(recv);
		return;
	}
	if (!model_one_in(6))
		flags |= FI_COMPLETION;
	model_post_flags(recv, flags);
}

static void model_post_single(struct model_recv *recv)
{
	bool multi = recv->kind == DUO_MSG &&
		     model.attr.rx_op_flags & FI_MULTI_RECV;

	if (multi || model_one_in(5))
		model_post_flags(recv, model_one_in(2) ? FI_COMPLETION : 0);
	else
		model_post_default(recv);
}

/*
 * True if the CQ's entries have the address of a message in a multi-receive
 * buffer, and CQ data, by which the model recognizes the message.
 */
static bool model_has_buf(void)
{
	return model.attr.format >= FI_CQ_FORMAT_DATA;
}

/* Returns the number of open receives whose end will be reported. */
static size_t model_open_count(int ep, enum duo_rx_kind kind)
{
	const struct model_recv *recv;
	size_t count = 0;
	int i;

	for (i = 0; i < model.recv_count; i++) {
		recv = &model.recv[i];
		count += recv->ep == ep && recv->kind == kind &&
			 recv->wanted && recv->state == MODEL_OPEN;
	}
	return count;
}

void model_post(void)
{
	enum duo_rx_kind kind = model_random(DUO_KIND_COUNT);
	int ep = model_random_ep();
	struct model_recv *recv;

	if (model.recv_count >= MODEL_POSTS ||
	    model_open_count(ep, kind) >= model.window)
		return;
	recv = model_recv_new(ep, kind);
	if (kind == DUO_TAGGED || !model_has_buf() ||
	    model_one_in(model.single_in))
		model_post_single(recv);
	else
		model_post_multi(recv);
}

void model_post_wildcard(int ep, enum duo_rx_kind kind)
{
	struct model_recv *recv = model_recv_new(ep, kind);

	recv->source = MODEL_ANY;
	recv->ignore = ~0ULL;
	recv->len = MODEL_BUF;
	model_post_flags(recv, FI_COMPLETION);
}

void model_drain(void)
{
	int i, count = model.msg_count;
	bool waits[MODEL_MSGS];

	model_trace("drain");
	for (i = 0; i < count; i++)
		waits[i] = !model.msg[i].recv;
	for (i = 0; i < count; i++) {
		if (waits[i])
			model_post_wildcard(model.msg[i].ep,
					    model.msg[i].kind);
	}
	model_read_all();
}

/*
 * Posts a random peek, if the CQ's entries have CQ data, by which the model
 * recognizes the message.
 */
void model_peek(void)
{
	static const struct {
		enum model_op op;
		uint64_t flags;
	} peeks[] = {
		{ MODEL_PEEK, FI_PEEK },
		{ MODEL_PEEK_CLAIM, FI_PEEK | FI_CLAIM },
		{ MODEL_PEEK_DISCARD, FI_PEEK | FI_DISCARD },
	};
	size_t i = model_random(ARRAY_SIZE(peeks));
	struct model_recv *recv;

	if (model.recv_count >= MODEL_POSTS || !model_has_buf())
		return;
	recv = model_recv_new(model_random_ep(), DUO_TAGGED);
	recv->op = peeks[i].op;
	model_try_new(recv, model_trecv_msg, peeks[i].flags);
}

static void model_claim_one(struct model_recv *recv)
{
	uint64_t flags = FI_CLAIM | FI_COMPLETION;

	if (model_one_in(3))
		flags |= FI_DISCARD;
	model_trace_recv(recv, flags);
	if (!model_try(recv, model_trecv_msg, flags))
		return;
	recv->claiming = true;
	recv->discard = flags & FI_DISCARD;
}

/* Posts FI_CLAIM for each claimed message with probability 1/chance. */
static void model_claim_in(size_t chance)
{
	struct model_recv *recv;

	for (recv = model.recv; recv < model.recv + model.recv_count; recv++) {
		if (recv->op == MODEL_CLAIM && recv->state == MODEL_OPEN &&
		    !recv->claiming && model_one_in(chance))
			model_claim_one(recv);
	}
}

void model_claim(void)
{
	model_claim_in(2);
}

void model_claim_all(void)
{
	model_claim_in(1);
}
