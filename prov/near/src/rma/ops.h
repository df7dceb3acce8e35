/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What one-sided operations are remembered by, on both sides. */
#ifndef NEAR_RMA_OPS_H
#define NEAR_RMA_OPS_H

#include "link/proc.h"
#include "proto/large.h"
#include "rma/atomic.h"
#include "rma/rma.h"

#define NEAR_RMA_OPS (1u << 16)
#define NEAR_RMA_INLINE 0x80u	/* near_rma_slot.flags: of the slot itself */
#define NEAR_RMA_KEPT 256	/* bytes that need no allocation */
#define NEAR_RMA_PART 256	/* bytes of an atomic's part */
#define NEAR_RMA_SMALL 4096	/* bytes: the target does them, rather than
				 * say that it has taken what is before */
#define NEAR_OFFER_FIRST 8	/* small ones that we do, to know what they take */
#define NEAR_OFFER_AGAIN 256	/* one of so many, too */
#define NEAR_OFFER_SAMPLE 16	/* one of so many offers is timed */
#define NEAR_RMA_EXPECT 512	/* answers that we wait for, of one peer */
#define NEAR_RMA_OWE 1024	/* that we owe one; more is no peer of ours */

struct near_rma {
	const struct near_rma_sink *sink;
	struct near_table *table;
	uint32_t tell;		/* what peers were told, see near_rma_tell() */
	struct near_pool ops;
	struct near_pool replies;
	struct near_rma_peer *watched;	/* by near_port.watch */
	/* that went the short way: of ours, of our peers', and answers */
	uint64_t shorts, served, answers;
};

struct near_rma_peer {
	struct near_peer *peer;
	struct near_link link;		/* of port->onesided_work */
	bool working;			/* it is there */
	bool view_tried;
	bool reading;			/* a read is answered bit by bit */
	uint32_t unanswered;		/* operations that it has, and not
					 * answered */
	uint32_t expect;		/* answers to come */
	uint32_t owe;			/* replies */
	uint64_t rejected;		/* id of what was refused last, if nothing
					 * was done since */
	struct near_table_view *view;	/* NULL: cannot be looked into */
	/* offer.c */
	struct near_link offered;	/* the target may take them, or we */
	uint32_t offers;
	uint64_t offered_last;		/* the number of the last */
	uint64_t counted;		/* near_ctl.done, as last seen */
	struct near_rma_op *alone;	/* it is measured */
	uint64_t offered_ns;		/* since when it, or the first, waits */
	uint32_t directs, chosen;	/* small ones: by us; to be offered */
	uint64_t direct_ns;		/* what a small one takes us; 0: unknown */
	uint32_t skip;			/* so many are not offered */
	uint32_t next_skip;
	struct near_rma_op *barrier;	/* see ordered.c */
	struct near_rma_op *barrier_for;	/* NULL: none of the queue */
	uint64_t barrier_tail;		/* near_tx.tail after it */
	uint32_t barrier_moves;		/* near_move.count then */
	struct near_link queue;		/* ours, not wholly issued, in order */
	struct near_link replies;
};

/* One of ours. */
struct near_rma_op {
	struct near_pooled pooled;
	struct near_link link;		/* of queue, until it is all sent; of
					 * offered */
	struct near_rma_peer *to;
	struct near_slot *slot;		/* of an offer */
	uint64_t number;
	size_t sent;			/* or copied, by ourselves */
	size_t answered;
	uint32_t expect;
	bool begun;
	bool queued;
	bool cleared;			/* what is before it was taken */
	bool offered;
	bool plain;			/* short.h: nothing of it is allocated */
	uint8_t *copy;			/* allocated */
	struct near_rma_args args;
	struct iovec local[NEAR_IOV_MAX];
	struct iovec result[NEAR_IOV_MAX];
	struct iovec compare[NEAR_IOV_MAX];
	uint8_t kept[NEAR_RMA_KEPT];
};

/* What we owe a peer for one of its. */
struct near_rma_reply {
	struct near_pooled pooled;
	struct near_link link;
	uint8_t verb;
	uint32_t err;
	uint64_t id;
	uint64_t offset;		/* of bytes; reads: done so far */
	uint64_t len;			/* of these; reads: of all */
	uint64_t key;			/* reads */
	uint64_t addr;
	uint8_t bytes[NEAR_RMA_PART];
};

/* state.c */
struct near_rma_peer *near_rma_peer_new(struct near_peer *peer);
struct near_table_view *near_rma_view_open(struct near_rma_peer *at);
/* Its next steps wait for the peer: near_port.watch, a slot, or the clock. */
static inline bool near_rma_waits(const struct near_rma_peer *at)
{
	return near_list_empty(&at->queue) && near_list_empty(&at->replies);
}

/* The state of a peer, made at need; NULL: no memory. */
static inline struct near_rma_peer *near_rma_peer(struct near_peer *peer)
{
	return near_likely(peer->rma != NULL) ? peer->rma :
						near_rma_peer_new(peer);
}

/* Polls take steps with it. */
static inline void near_rma_wake(struct near_port *port,
				 struct near_rma_peer *at)
{
	near_port_added(port, NEAR_WORK_DUE);
	if (at->working)
		return;
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
}

/* Its first offer is a write, which ends when the count moves. */
static inline void near_rma_watch(struct near_port *port,
				  struct near_rma_peer *at)
{
	near_port_watch(port, &at->peer->tx.ctl->done, at->counted);
	port->rma->watched = at;
}

/* Nothing is left to do; or near_rma_work() finds that. */
static inline void near_rma_rest(struct near_port *port,
				 struct near_rma_peer *at)
{
	if (!at->working || at->offers || !near_rma_waits(at))
		return;
	near_list_remove(&at->link);
	at->working = false;
	if (port->rma->watched == at) {
		near_port_watch_none(port);
		port->rma->watched = NULL;
	}
	if (near_list_empty(&port->onesided_work))
		port->work &= (uint8_t)~NEAR_WORK_WAITS;
}

/* Its table, opened if that was not tried before. */
static inline struct near_table_view *near_rma_view(struct near_rma_peer *at)
{
	return near_likely(at->view != NULL) ? at->view :
					       near_rma_view_open(at);
}

/* What a verb does to the memory of the peer. */
static inline uint32_t near_rma_access(unsigned int verb, unsigned int op)
{
	if (verb == NEAR_READ || (verb == NEAR_FETCH && op == NEAR_ATOMIC_READ))
		return NEAR_MAY_READ;
	if (verb == NEAR_FETCH || verb == NEAR_COMPARE)
		return NEAR_MAY_READ | NEAR_MAY_WRITE;
	return NEAR_MAY_WRITE;
}

/* One word, added to: the atomic that goes the short way. */
static near_inline bool near_short_adds(unsigned int type, unsigned int op,
					size_t count)
{
	return (type == NEAR_UINT64 || type == NEAR_INT64) && op == NEAR_SUM &&
	       count == 1;
}

/* Bytes in the request for each of the operation. */
static inline unsigned int near_rma_operands(unsigned int verb,
					     unsigned int op)
{
	if (verb == NEAR_READ || verb == NEAR_EVENT || op == NEAR_ATOMIC_READ)
		return 0;
	return verb == NEAR_COMPARE ? 2 : 1;
}

/* issue.c: our side */
void near_rma_issue(struct near_port *port, struct near_rma_peer *at);
/*
 * A part of the request; a read's is all of it. -EAGAIN: no room. flags: of
 * the slot's word.
 */
int near_rma_part(struct near_port *port, struct near_rma_op *op, size_t len,
		  unsigned int flags);
/* One that has not begun, with what it needs of args; NULL: no memory. */
struct near_rma_op *near_rma_op(struct near_port *port,
				struct near_rma_peer *at,
				const struct near_rma_args *args);
int near_rma_answered(struct near_port *port, struct near_lane *lane,
		      const struct near_slot *slot);
void near_rma_end(struct near_port *port, struct near_rma_op *op, int err);

/* ordered.c: after which messages, and after what else */
/*
 * Has the peer say when it has taken all; the operation then is cleared. Comes
 * to nothing if there is no room, or another one is under way: try again.
 */
void near_rma_barrier(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_op *behind);
void near_rma_barrier_over(struct near_rma_peer *at, int err);
/* Are there messages that such an operation is to be behind? */
bool near_rma_behind(struct near_rma_peer *at,
		     const struct near_rma_args *args);
bool near_rma_must_wait(const struct near_rma_op *op);

/* offer.c: small ones, that the target does if it polls, and we if not */
/*
 * The state is in the flags of a slot of NEAR_KIND_RMA. Only the
 * initiator changes it.
 */
enum near_offer {
	NEAR_OFFER_NONE,	/* only the target may do it */
	NEAR_OFFER_OPEN,
	NEAR_OFFER_FENCED,	/* open; membarrier is refused to the initiator */
	NEAR_OFFER_BUSY,	/* withdrawn: the initiator does it */
	NEAR_OFFER_OVER,	/* it has */
	NEAR_OFFER_FAILED,	/* it could not */
};
#define NEAR_OFFER_SKIPPED 1	/* the slot is to be passed over */
#define NEAR_OFFER_TOLD 2	/* so it is, but for what it tells */
#define NEAR_OFFER_MASK 0xfu	/* of a word, at NEAR_WORD_FLAGS */

static inline enum near_offer near_offer_state(uint64_t word)
{
	return word >> NEAR_WORD_FLAGS & NEAR_OFFER_MASK;
}

static inline enum near_offer near_offer_open(const struct near_port *port)
{
	return near_unlikely(port->fence) ? NEAR_OFFER_FENCED :
					    NEAR_OFFER_OPEN;
}

/* Each, until one was answered in time: the clock takes a tenth of an offer. */
static inline bool near_offer_timed(const struct near_rma_peer *at)
{
	return at->next_skip || !(at->offered_last % NEAR_OFFER_SAMPLE);
}

/* What is in the ring now is the next offer. */
static near_inline void near_offer_made(struct near_port *port,
					struct near_rma_peer *at,
					struct near_rma_op *op,
					struct near_slot *slot)
{
	op->slot = slot;
	op->number = ++at->offered_last;
	op->offered = true;
	at->alone = !at->offers++ && near_unlikely(near_offer_timed(at)) ?
		    op : NULL;
	if (at->alone)
		at->offered_ns = near_now_ns();
	near_list_append(&at->offered, &op->link);
	if (at->working)
		return;
	if (near_unlikely(!near_list_empty(&port->onesided_work))) {
		near_rma_wake(port, at);
		return;
	}
	/* alone, it only waits: a read for a slot */
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
	near_port_added(port, NEAR_WORK_WAITS);
	if (op->args.verb == NEAR_WRITE)
		near_rma_watch(port, at);
}

/* 0: on its way; -EPERM: it is to go another way; or what near_rma() says. */
int near_rma_offer(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args);
/* The one that is timed has ended. */
void near_offer_took(struct near_rma_peer *at);

/* Answered, withdrawn, or the peer is gone. */
static inline void near_offer_ended(struct near_rma_peer *at,
				    struct near_rma_op *op)
{
	near_list_remove(&op->link);
	op->offered = false;
	at->offers--;
	if (near_unlikely(at->alone == op))
		near_offer_took(at);
	at->alone = NULL;
	at->offered_ns = 0;	/* the next one's time begins */
}

/*
 * How many have ended: those that the target says it has done, and those that
 * we have done ourselves, as they waited too long.
 */
int near_offers_step(struct near_port *port, struct near_rma_peer *at);
/* What the port watches is the count of the only one that has offers. */
int near_offers_moved(struct near_port *port);
/*
 * A slot of the target's has told count, which is not 0; there are offers, and
 * there is room.
 */
void near_offers_told(struct near_port *port, struct near_rma_peer *at,
		      uint32_t count);
/*
 * The target is gone: writes that it says it has done end well, wherever they
 * are among others. false: not all yet, the sink has no room.
 */
bool near_offers_drained(struct near_port *port, struct near_rma_peer *at);
/*
 * When the port closes: does all that the target has not taken. Where there is
 * no room to tell of one, it is done all the same.
 */
void near_offers_stop(struct near_port *port, struct near_rma_peer *at);
/*
 * The target, of a request: 0: do it; -EAGAIN: it stays where it is. What was
 * taken is done next: nothing that may fail comes between.
 */
int near_offer_take(struct near_lane *lane, const struct near_slot *slot,
		    uint64_t word);
/* Is its end told by near_offer_done() alone, and needs no answer? */
bool near_offer_counts(struct near_lane *lane, uint64_t word,
		       const struct near_rma_reply *reply);
/* After the answer: the line may be with the initiator, and take a while. */
static inline void near_offer_count(struct near_lane *lane)
{
	__atomic_store_n(&lane->rx.ctl->done, ++lane->offers,
			 __ATOMIC_RELEASE);
	if (near_likely(!lane->refused))
		lane->told = (uint32_t)lane->offers;
}

/* Slots tell the same count, so that a reply ends what it replies to. */
static inline void near_rma_publish(struct near_port *port,
				    struct near_peer *peer,
				    struct near_slot *slot,
				    enum near_kind kind, unsigned int flags)
{
	near_tx_publish(&peer->tx, slot, near_word(kind, flags, 0,
			near_likely(peer->lane != NULL) ? peer->lane->told : 0));
	near_sent(port, peer);
}

/* It was done, or refused, and answered if it is. */
void near_offer_done(struct near_lane *lane, uint64_t word);
/* Is the next small one that we do to be timed? It took so long. */
bool near_rma_direct_timed(struct near_rma_peer *at);
void near_rma_direct_took(struct near_rma_peer *at, uint64_t ns);

/* direct.c: reads and writes that the peer has nothing to do with */
/* The region, as the peer's table has it now. */
int near_rma_look(struct near_rma_peer *at, const struct near_rma_args *args,
		  uint64_t *memory);
/* 0: it has ended or wants another step; else a negative errno. */
int near_rma_direct(struct near_port *port, struct near_rma_op *op);
bool near_rma_direct_can(const struct near_port *port,
			 struct near_rma_peer *at,
			 const struct near_rma_args *args);

/* serve.c: theirs */
/* What is small and can be done at once, in full; false: nothing was done. */
bool near_serve_short(struct near_port *port, struct near_lane *lane,
		      const struct near_slot *slot, uint64_t word);
int near_rma_request(struct near_port *port, struct near_lane *lane,
		     const struct near_slot *slot, uint64_t word);
void near_rma_reply_all(struct near_port *port, struct near_rma_peer *at);

#endif /* NEAR_RMA_OPS_H */
