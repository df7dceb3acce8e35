/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Small reads and writes. A target that polls does them sooner than two system
 * calls would, one that does not poll would never: so they are offered to it,
 * and what it has not taken after a while we withdraw, and do ourselves. Both
 * change the slot's word by compare-and-swap, so that one of the two does it.
 * While we do it the target leaves the slot, and all behind it, where they are.
 *
 * Which way is taken at first is measured for each peer: where offers are
 * withdrawn, or answered later than we would be done, fewer and fewer are made.
 */

#include <errno.h>
#include <stdlib.h>

#include "link/proc.h"
#include "rma/ops.h"

#define NEAR_OFFER_MASK 0xfu	/* of a word, at NEAR_WORD_FLAGS */
#define NEAR_OFFER_POLLS 16	/* per look at the clock */
#define NEAR_OFFER_WRITE 1024	/* bytes of a write; of a read a part's */
#define NEAR_OFFER_FIRST 8	/* that we do, to know what they take */
#define NEAR_OFFER_AGAIN 256	/* one of so many, too */
#define NEAR_OFFER_SAMPLE 16	/* one of so many that we do is timed */
#define NEAR_OFFER_PATIENCE 20000	/* ns, at most */
#define NEAR_OFFER_SKIP 16	/* not offered after a loss, at first */
#define NEAR_OFFER_SKIP_MAX 4096

/* The state is in the flags of a slot of NEAR_KIND_RMA. */
enum near_offer {
	NEAR_OFFER_NONE,	/* only the target may do it */
	NEAR_OFFER_OPEN,
	NEAR_OFFER_TAKEN,	/* by the target */
	NEAR_OFFER_BUSY,	/* withdrawn: we do it */
	NEAR_OFFER_OVER,	/* we have done it */
};

static uint64_t near_offer_word(uint64_t word, enum near_offer offer)
{
	return (word & ~((uint64_t)NEAR_OFFER_MASK << NEAR_WORD_FLAGS)) |
	       (uint64_t)offer << NEAR_WORD_FLAGS;
}

static bool near_offer_set(struct near_slot *slot, uint64_t from,
			   enum near_offer offer)
{
	return __atomic_compare_exchange_n(&slot->word, &from,
					   near_offer_word(from, offer), false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

int near_offer_take(const struct near_lane *lane, const struct near_slot *slot,
		    uint64_t word)
{
	struct near_slot *shared = (struct near_slot *)slot;

	switch (word >> NEAR_WORD_FLAGS & NEAR_OFFER_MASK) {
	case NEAR_OFFER_OPEN:
		return near_offer_set(shared, word, NEAR_OFFER_TAKEN) ?
		       0 : -EAGAIN;
	case NEAR_OFFER_BUSY:
		return lane->peer->dying ? NEAR_OFFER_SKIPPED : -EAGAIN;
	case NEAR_OFFER_OVER:
		return NEAR_OFFER_SKIPPED;
	default:
		return 0;
	}
}

/* A loss, or a gain, for the ring. */
static void near_offer_lost(struct near_rma_peer *at)
{
	at->skip = at->next_skip < NEAR_OFFER_SKIP ? NEAR_OFFER_SKIP :
						     at->next_skip;
	if (at->skip < NEAR_OFFER_SKIP_MAX)
		at->next_skip = 2 * at->skip;
}

bool near_rma_direct_timed(struct near_rma_peer *at)
{
	return at->directs++ < NEAR_OFFER_FIRST ||
	       !(at->directs % NEAR_OFFER_SAMPLE);
}

void near_rma_direct_took(struct near_rma_peer *at, uint64_t ns)
{
	if (!at->direct_ns || ns < at->direct_ns)
		at->direct_ns = ns;
	else
		at->direct_ns += (ns - at->direct_ns) / 8;
}

static void near_offer_took(struct near_rma_peer *at, uint64_t ns)
{
	if (ns > at->direct_ns)
		near_offer_lost(at);
	else
		at->next_skip = 0;
}

/* What is copied for its sender fits into the operation, as an answer does. */
static bool near_offer_small(const struct near_rma_peer *at,
			     const struct near_rma_args *args)
{
	size_t most = NEAR_RMA_PART;

	if (args->verb == NEAR_WRITE && !(args->flags & NEAR_RMA_COPY))
		most = NEAR_OFFER_WRITE;
	return args->len && args->len <= most &&
	       args->len <= near_piece_most(&at->peer->tx);
}

/* Nothing but offers is before it, so that those may be withdrawn in order. */
static bool near_offer_wanted(struct near_port *port,
			      struct near_rma_peer *at,
			      const struct near_rma_args *args)
{
	if (!near_offer_small(at, args) ||
	    at->directs < NEAR_OFFER_FIRST ||
	    args->flags & (NEAR_RMA_FENCE | NEAR_RMA_HOLD) ||
	    at->unanswered != at->offers || !near_list_empty(&at->queue) ||
	    !near_rma_direct_can(port, at, args) ||
	    near_rma_behind(at, args))
		return false;
	if (!at->skip)
		return ++at->chosen % NEAR_OFFER_AGAIN || at->unanswered;
	at->skip--;
	return false;
}

/* Claim last: what is posted cannot fail. */
static int near_offer_post(struct near_port *port, struct near_rma_peer *at,
			   struct near_rma_op *op)
{
	struct near_tx *tx = &at->peer->tx;
	uint64_t tail = tx->tail;
	int ret;

	ret = near_rma_part(port, op, op->args.len, NEAR_OFFER_OPEN);
	if (ret)
		return ret;
	op->slot = &tx->slots[tail & tx->mask];
	op->slot_tail = tail;
	op->slot_moves = at->peer->move.count;
	op->begun = op->offered = true;
	op->expect = 1;
	at->expect++;
	at->unanswered++;
	at->alone = at->offers++ ? NULL : op;
	if (at->alone)
		at->offered_ns = near_now_ns();
	near_list_append(&at->offered, &op->link);
	near_peer_hold(at->peer);
	near_rma_wake(port, at);
	return 0;
}

int near_rma_offer(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args)
{
	struct near_rma_op *op;
	uint64_t memory;
	int ret;

	if (!near_offer_wanted(port, at, args))
		return -EPERM;
	ret = near_rma_look(at, args, &memory);
	if (ret)
		return ret;
	if (at->expect >= NEAR_RMA_EXPECT)
		return -EAGAIN;
	op = near_rma_op(port, at, args);
	ret = op ? near_offer_post(port, at, op) : -EAGAIN;
	if (ret && op) {
		free(op->copy);
		near_pool_put(&port->rma->ops, op);
	}
	/* with none under way nothing that we do makes room */
	if (ret == -EAGAIN && !at->unanswered) {
		near_offer_lost(at);
		return -EPERM;
	}
	return ret;
}

/* Answered, withdrawn, or the peer is gone. */
void near_offer_ended(struct near_rma_peer *at, struct near_rma_op *op)
{
	near_list_remove(&op->link);
	op->offered = false;
	at->offers--;
	if (at->alone == op)
		near_offer_took(at, near_now_ns() - at->offered_ns);
	at->alone = NULL;
	at->offered_ns = 0;	/* the next one's time begins */
}

/*
 * false: the target does it. A slot that has been written to again since, or
 * is in a ring of another size, was taken long ago. While a move is under way
 * the slot is what it was: a target that has come to the move has taken what
 * was open before it, and no slot that it clears then is open.
 */
static bool near_offer_claim(struct near_rma_peer *at, struct near_rma_op *op,
			     uint64_t *word)
{
	const struct near_tx *tx = &at->peer->tx;

	if (at->peer->move.count != op->slot_moves ||
	    tx->tail - op->slot_tail > (uint64_t)tx->mask + 1)
		return false;
	*word = __atomic_load_n(&op->slot->word, __ATOMIC_ACQUIRE);
	return (*word >> NEAR_WORD_FLAGS & NEAR_OFFER_MASK) ==
	       NEAR_OFFER_OPEN && near_offer_set(op->slot, *word,
						 NEAR_OFFER_BUSY);
}

/* One that was claimed; false: it cannot be now, and is open again. */
static bool near_offer_do(struct near_port *port, struct near_rma_peer *at,
			  struct near_rma_op *op, uint64_t word)
{
	int ret;

	op->sent = 0;
	ret = near_rma_direct(port, op);
	if (ret == -EAGAIN || ret == -EPERM) {
		op->sent = op->args.len;
		__atomic_store_n(&op->slot->word, word, __ATOMIC_RELEASE);
		return false;
	}
	__atomic_store_n(&op->slot->word,
			 near_offer_word(word, NEAR_OFFER_OVER),
			 __ATOMIC_RELEASE);
	at->alone = NULL;
	if (!ret && op->sent < op->args.len)
		ret = -EFAULT;	/* its memory ends before its region does */
	near_rma_end(port, op, -ret);
	return true;
}

static int near_offers_withdraw(struct near_port *port,
				struct near_rma_peer *at)
{
	struct near_rma_op *op;
	uint64_t word;
	int n = 0;

	while (at->offers && port->sink->room(port->ctx)) {
		op = near_container(at->offered.next, struct near_rma_op, link);
		if (!near_offer_claim(at, op, &word) ||
		    !near_offer_do(port, at, op, word))
			break;
		n++;
	}
	if (n)
		near_offer_lost(at);
	return n;
}

void near_offers_stop(struct near_port *port, struct near_rma_peer *at)
{
	struct near_link *link, *next;
	struct near_rma_op *op;
	uint64_t word;

	for (link = at->offered.next; link != &at->offered; link = next) {
		next = link->next;
		op = near_container(link, struct near_rma_op, link);
		if (!near_offer_claim(at, op, &word))
			continue;
		if (!port->sink->room(port->ctx))
			op->args.cookie = NULL;
		if (!near_offer_do(port, at, op, word))
			return;
	}
}

int near_offers_due(struct near_port *port, struct near_rma_peer *at)
{
	uint64_t now, patience = 2 * at->direct_ns;

	if (++at->offer_polls % NEAR_OFFER_POLLS)
		return 0;
	now = near_now_ns();
	if (!at->offered_ns)
		at->offered_ns = now;
	if (patience > NEAR_OFFER_PATIENCE)
		patience = NEAR_OFFER_PATIENCE;
	if (now - at->offered_ns < patience)
		return 0;
	return near_offers_withdraw(port, at);
}
