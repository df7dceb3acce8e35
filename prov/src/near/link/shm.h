/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What lies in shared memory: one region per port, written to by every sender.
 * Nothing that is read here may be used as an index, a length or a pointer
 * before it has been checked. docs/near/design.md draws it.
 */
#ifndef NEAR_LINK_SHM_H
#define NEAR_LINK_SHM_H

#include <assert.h>

#include "near/near.h"

#define NEAR_LAYOUT 12u		/* counts changes of this file */
#define NEAR_LINE 64
#define NEAR_PAGE 4096		/* of the layout; of the system: near_page_size() */
#define NEAR_SENDERS 4096

/* What a slot is; the upper half of the byte has the message's flags. */
enum near_kind {
	NEAR_KIND_INLINE,	/* payload in the slot */
	NEAR_KIND_EAGER,	/* payload in the data ring */
	NEAR_KIND_RTS,		/* payload with the sender */
	NEAR_KIND_CTS,		/* receiver: send it in pieces */
	NEAR_KIND_ACK,		/* receiver: I have it */
	NEAR_KIND_FRAG,	/* payload in the data ring, after a CTS */
	NEAR_KIND_COOP,	/* receiver: write a part of it to my memory */
	NEAR_KIND_RESIZE,		/* the ring's last: another size from now on */
	NEAR_KIND_RMA = 8,	/* one-sided: a request, or a part of one */
	NEAR_KIND_ANSWER,	/* to one */
};

/*
 * Fields of near_slot.word. The sequence number is the ring's lap, so that a
 * slot is never cleared; it is stored last, with the rest of the word.
 */
#define NEAR_WORD_KIND 16
#define NEAR_WORD_FLAGS 20
#define NEAR_WORD_LEN 24
#define NEAR_WORD_DATA 32

/* Bytes of a small one-sided operation that travel in the slot. */
#define NEAR_RMA_BYTES 24

struct near_slot {
	uint64_t word;
	uint64_t tag;
	union {
		uint8_t bytes[NEAR_INLINE];
		struct {
			uint32_t len;
			uint32_t data;		/* upper half */
		} eager;
		struct {
			uint64_t len;
			uint64_t addr;
			uint64_t id;		/* the sender's operation */
			uint32_t data;
		} rts;
		struct {
			uint64_t id;
			uint64_t answer;	/* the receiver's operation */
			uint64_t len;		/* so much is wanted */
		} cts;
		struct {
			uint64_t id;
		} ack;
		struct {
			uint64_t answer;
			uint32_t len;
		} frag;
		struct {
			uint64_t id;
			uint64_t len;		/* so much is wanted */
			uint64_t addr;		/* where the receiver wants it */
			uint32_t round;		/* near_ctl.claims */
			uint32_t step;		/* bytes of a claim */
		} coop;
		struct {
			/* 0: as the receiver asked; or a message's length */
			uint32_t more;
		} resize;
		struct near_rma_slot {	/* its tag: the address */
			uint64_t key;
			uint64_t id;		/* the requester's operation */
			union {
				struct {
					/* bytes of the operation */
					uint64_t total;
					uint64_t offset;	/* of this part */
					uint64_t data;
				};
				/* NEAR_RMA_INLINE: operands instead */
				uint8_t bytes[NEAR_RMA_BYTES];
			};
			uint8_t verb;
			uint8_t op;
			uint8_t type;
			uint8_t flags;
			uint32_t len;		/* of this part */
		} rma;
		struct near_answer_slot {
			uint64_t id;
			uint64_t offset;
			uint32_t len;
			uint32_t err;
			uint8_t bytes[NEAR_RMA_BYTES];	/* if they fit */
		} rma_answer;
	};
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_slot) == NEAR_LINE, "one line a slot");

/* At the start of each ring; slots and data follow. */
struct near_ctl {
	/* written by the consumer, seldom; read by the producer when full */
	uint64_t head;
	uint64_t dhead;
	uint32_t resize;			/* the producer is to move */
	uint32_t size;			/* after a move: NEAR_SIZE_* */
	uint64_t doing;			/* the offer that it is at: rma/delegate.c */
	/* written by the consumer: the producer is to ring the bell */
	uint32_t need_doorbell __attribute__((aligned(NEAR_LINE)));
	/* a message that both copy: msg/coop.h */
	uint64_t claims __attribute__((aligned(NEAR_LINE)));
	uint64_t wrote;			/* by the producer */
	/* written by the consumer: offers, and the first that it refused */
	uint64_t done;
	uint64_t refused;
	/* large messages that wait there for a receive; a hint, not checked */
	uint32_t waiting;
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_ctl) == 3 * NEAR_LINE, "three lines");

/* near_ctl.size: the tier, and how many moves there were, this one included */
#define NEAR_SIZE_RESIZES 8
#define NEAR_SIZE_TIER 0xffu

enum near_claim_state {
	NEAR_CLAIM_FREE,
	NEAR_CLAIM_TAKEN,	/* its sender fills in who it is */
	NEAR_CLAIM_OPEN,
	NEAR_CLAIM_CLOSED,	/* nothing more comes: its sender ends */
	NEAR_CLAIM_REFUSED,	/* the receiver cannot answer */
};

/* near_claim.state of one that is taken: by whom; 0: of another pid namespace */
#define NEAR_CLAIM_PID 8
#define NEAR_CLAIM_STATE 0xffu

/* Who sends through ring i. */
struct near_claim {
	uint32_t state;
	uint32_t tier;		/* of the ring, at first */
	struct near_addr who __attribute__((aligned(8)));
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_claim) == NEAR_LINE, "one line a claim");

/* near_segment.flags */
#define NEAR_SEGMENT_FENCE 1u	/* senders fence: no membarrier here */

struct near_segment {
	uint32_t magic;
	uint32_t layout;
	uint64_t nonce;
	uint32_t flags;
	uint32_t closed;
	/* for one-sided operations, see rma/table.h; -1: there are none */
	int32_t table_fd;
	uint32_t tell;		/* NEAR_MAY_*: of which the port wants to know */
	uint64_t table_nonce;
	uint32_t growing;	/* so many rings may be larger than a page */
	/* what the next senders may take: a tier, and below which ring */
	uint32_t adv;
	uint32_t page;		/* bytes: near_page_size() of its owner */
	/* the bell: bit i of word w for ring 64 w + i, bit w of bell_words */
	uint64_t bell_words __attribute__((aligned(NEAR_LINE)));
	uint32_t armed;		/* 0: awake; else which sleep, for
				 * near_doorbell_ring() */
	int32_t wake_fd;
	uint64_t bell[NEAR_SENDERS / 64] __attribute__((aligned(NEAR_LINE)));
	struct near_claim claim[NEAR_SENDERS]
		__attribute__((aligned(NEAR_PAGE)));
};

#define NEAR_CLAIMS_PER_PAGE (NEAR_PAGE / sizeof(struct near_claim))

/* near_segment.offer */
#define NEAR_ADV_BELOW 8
#define NEAR_ADV_TIER 0xffu

/*
 * A page of the system's, bytes: what memory is mapped, taken and given back in.
 * It is 4, 16 or 64 KiB, a multiple of NEAR_PAGE. Tests assume another one.
 */
size_t near_page_size(void);
void near_page_assume(size_t bytes);

/*
 * Sizes of a ring, in whole pages. Each has room for the largest, of which what
 * its tier takes is in use; those beyond the first near_segment.growing have a
 * page. Where pages are large the smallest tiers would take a page all the same:
 * the largest that takes one is the least that there is.
 */
#define NEAR_TIERS 8

uint32_t near_tier_least(void);
/* tier must be below NEAR_TIERS. */
uint32_t near_tier_pages(uint32_t tier);
/* The largest of so many pages at most; there is none of less than one. */
uint32_t near_tier_fit(size_t pages);

/* The largest that this ring can have. */
uint32_t near_tier_most(uint32_t growing, uint32_t index);

/* Of a file with so many growing rings: the region, then all rings. */
size_t near_segment_size(uint32_t growing);

/* Where a ring lies, from the start of the file, and its parts. */
struct near_place {
	size_t offset;
	size_t span;		/* that the largest tier takes */
	size_t size;		/* of it in use */
	uint32_t slots;
	uint32_t data;
	uint32_t tier;
};

/* index must be below NEAR_SENDERS. false: there is no ring of that size. */
bool near_place(uint32_t growing, uint32_t index, uint32_t tier,
		struct near_place *place);

/*
 * The most memory that a port takes to which so many others send, with a
 * budget of so many bytes.
 */
size_t near_memory(size_t budget, uint32_t senders);

#endif /* NEAR_LINK_SHM_H */
