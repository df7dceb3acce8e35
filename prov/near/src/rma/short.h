/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The short way of a small operation: one buffer, no more than a slot has room
 * for, a region that was found before in a table that has not changed since,
 * nothing that it is to wait for, and a free slot. It goes from the call's
 * registers into the slot; what is kept of it is what its end, or the
 * withdrawing of an offer, needs. All else is left to near_rma().
 */
#ifndef NEAR_RMA_SHORT_H
#define NEAR_RMA_SHORT_H

#include "rma/ops.h"

/* near_rma_args, for callers that know most of it when they are compiled. */
struct near_rma_short {
	enum near_verb verb;
	void *buf;		/* from; a read: to */
	size_t len;
	uint64_t addr;
	uint64_t key;
	void *cookie;
	uint32_t about;
	bool copy;		/* what is sent of buf is the caller's again at
				 * once */
	/* near_short_adds(): */
	void *result;
	uint8_t op;
	uint8_t type;
};

static near_inline bool near_short_offered(enum near_verb verb)
{
	return verb == NEAR_WRITE || verb == NEAR_READ;
}

/* For callers: to be asked first. */
static near_inline bool near_short_len(size_t len)
{
	return len - 1 < NEAR_RMA_BYTES;
}

/* Nothing that is under way is in its way. */
static near_inline bool near_short_now(struct near_rma_peer *at, bool offered)
{
	/* a queue gates the ring, which then looks full */
	if (near_unlikely(!near_tx_slot(&at->peer->tx) ||
			  at->expect >= NEAR_RMA_EXPECT || at->peer->dying))
		return false;
	if (!offered)
		return !at->reading;
	return near_likely(at->unanswered == at->offers && !at->skip &&
			   at->directs >= NEAR_OFFER_FIRST &&
			   (at->chosen + 1) % NEAR_OFFER_AGAIN &&
			   at->peer->ways & NEAR_WAY_BIT(NEAR_WAY_READ));
}

/* Key, range and right, as the peer's table has them. */
static near_inline bool near_short_fits(const struct near_rma_peer *at,
					const struct near_rma_short *call)
{
	const struct near_region_entry *entry;
	uint64_t memory;

	if (near_unlikely(!at->view))
		return false;
	entry = near_table_view_known(at->view, call->key);
	return near_likely(entry &&
			   !near_region_check(entry, call->addr, call->len,
					      near_rma_access(call->verb,
							      call->op),
					      &memory)) &&
	       (near_short_offered(call->verb) ||
		!(memory % near_type_size(call->type)));
}

static near_inline void near_short_keep(struct near_rma_op *op,
					const struct near_rma_short *call)
{
	bool copy = call->copy && call->verb != NEAR_READ;

	op->args.verb = call->verb;
	op->args.flags = copy ? NEAR_RMA_COPY : 0;
	op->args.addr = call->addr;
	op->args.key = call->key;
	op->args.len = call->len;
	op->args.cookie = call->cookie;
	op->args.about = call->about;
	op->args.data = 0;
	op->args.op = call->op;
	op->args.type = call->type;
	op->args.local = (struct near_rma_bufs) { op->local, 1 };
	op->local[0] = (struct iovec) { call->buf, call->len };
	if (copy) {
		near_copy_small(op->kept, call->buf, call->len);
		op->local[0].iov_base = op->kept;
	}
	if (call->result) {
		op->args.result = (struct near_rma_bufs) { op->result, 1 };
		op->result[0] = (struct iovec) { call->result, call->len };
	}
	op->copy = NULL;
	op->sent = call->len;
	op->answered = 0;
	op->expect = 1;
	op->begun = op->plain = true;
	op->queued = op->cleared = op->offered = false;
}

static near_inline void near_short_post(struct near_port *port,
					struct near_peer *peer,
					const struct near_rma_op *op,
					struct near_slot *slot,
					const struct near_rma_short *call,
					unsigned int flags)
{
	bool operands = call->verb != NEAR_READ;

	slot->tag = call->addr;
	slot->rma.key = call->key;
	slot->rma.id = near_pool_id(op);
	if (operands) {
		near_copy_small(slot->rma.bytes, call->buf, call->len);
	} else {
		slot->rma.total = call->len;
		slot->rma.offset = 0;
	}
	slot->rma.verb = call->verb;
	slot->rma.op = call->op;
	slot->rma.type = call->type;
	slot->rma.flags = operands ? NEAR_RMA_INLINE : 0;
	slot->rma.len = call->verb == NEAR_READ ? 0 : (uint32_t)call->len;
	near_rma_publish(port, peer, slot, NEAR_KIND_RMA, flags);
}

/* near_short_len(). Whether it is on its way; if not, nothing has been done. */
static near_inline bool near_rma_short(struct near_port *port,
				       struct near_peer *peer,
				       const struct near_rma_short call)
{
	bool offered = near_short_offered(call.verb);
	struct near_rma_peer *at = peer->rma;
	struct near_slot *slot;
	struct near_rma_op *op;

	if (near_unlikely(!at || !near_short_now(at, offered) ||
			  !near_short_fits(at, &call) ||
			  !near_pool_ready(&port->rma->ops)))
		return false;
	op = near_pool_get(&port->rma->ops);
	slot = &peer->tx.slots[peer->tx.tail & peer->tx.mask];
	near_short_post(port, peer, op, slot, &call,
			offered ? near_offer_open(port) : NEAR_OFFER_NONE);
	/* while the slot is on its way */
	op->to = at;
	near_short_keep(op, &call);
	peer->refs++;
	at->expect++;
	at->unanswered++;
	port->rma->shorts++;
	if (offered) {
		at->chosen++;
		near_offer_made(port, at, op, slot);
	}
	return true;
}

/* near_peer_put() */
static near_inline void near_rma_unhold(struct near_port *port,
					struct near_peer *peer)
{
	if (near_likely(peer->refs > 1))
		peer->refs--;
	else
		near_peer_put(port, peer);
}

/* The end of such a one, and a good one. */
static near_inline void near_rma_end_short(struct near_port *port,
					   struct near_rma_op *op)
{
	void *cookie = op->args.cookie;
	uint32_t about = op->args.about;
	struct near_rma_peer *at = op->to;
	struct near_peer *peer = at->peer;

	if (op->offered)
		near_offer_ended(at, op);
	at->unanswered--;
	at->expect--;
	near_pool_put(&port->rma->ops, op);
	if (near_likely(about))
		port->rma->sink->done(port->ctx, peer, cookie, about, 0);
	near_rma_rest(port, at);
	near_rma_unhold(port, peer);
}

#endif /* NEAR_RMA_SHORT_H */
