/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Layout of the shared memory: one segment per port, written by all its
 * senders. A value read here must be checked before its use as an index, a
 * length or a pointer. docs/near/design.md has the layout.
 */
#ifndef NEAR_LINK_SHM_H
#define NEAR_LINK_SHM_H

#include <assert.h>

#include "near/near.h"

#define NEAR_LAYOUT 12u		/* version of the layout */
#define NEAR_LINE 64
#define NEAR_PAGE 4096		/* unit of the layout; see near_page_size() */
#define NEAR_SENDERS 4096

/* Kinds of slots; the upper half of the byte has the message's flags. */
enum near_kind {
	NEAR_KIND_INLINE,	/* payload in the slot */
	NEAR_KIND_EAGER,	/* payload in the data ring */
	NEAR_KIND_RTS,		/* payload in the sender's memory */
	NEAR_KIND_CTS,		/* from the receiver: send fragments */
	NEAR_KIND_ACK,		/* from the receiver: received */
	NEAR_KIND_FRAG,		/* payload in the data ring, after a CTS */
	NEAR_KIND_COOP,		/* from the receiver: copy cooperatively */
	NEAR_KIND_RESIZE,	/* last slot before a resize */
	NEAR_KIND_RMA = 8,	/* RMA or atomic: request, or part of one */
	NEAR_KIND_ANSWER,	/* reply to NEAR_KIND_RMA */
};

/*
 * Fields of near_slot.word. Bits 0 to 15 are the ring's lap, so that no slot
 * needs clearing. The word is stored last, with release.
 */
#define NEAR_WORD_KIND 16
#define NEAR_WORD_FLAGS 20
#define NEAR_WORD_LEN 24
#define NEAR_WORD_DATA 32

/* Bytes of a small RMA operation that fit into the slot. */
#define NEAR_RMA_BYTES 24

struct near_slot {
	uint64_t word;
	uint64_t tag;
	union {
		uint8_t bytes[NEAR_INLINE];
		struct {
			uint32_t len;
			uint32_t data;		/* upper half of the data */
		} eager;
		struct {
			uint64_t len;
			uint64_t addr;
			uint64_t id;		/* of the sender's operation */
			uint32_t data;
		} rts;
		struct {
			uint64_t id;
			uint64_t answer;	/* the receiver's operation */
			uint64_t len;		/* bytes to send */
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
			uint64_t len;		/* bytes to copy */
			uint64_t addr;		/* the receiver's buffer */
			uint32_t round;		/* see near_ctl.claims */
			uint32_t step;		/* bytes of a copy step */
		} coop;
		struct {
			/* message length to fit; 0: receiver's request */
			uint32_t more;
		} resize;
		struct near_rma_slot {	/* near_slot.tag: target address */
			uint64_t key;
			uint64_t id;		/* the initiator's operation */
			union {
				struct {
					uint64_t total;	 /* bytes, all parts */
					uint64_t offset; /* of this part */
					uint64_t data;
				};
				/* with NEAR_RMA_INLINE: the operands */
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
			uint8_t bytes[NEAR_RMA_BYTES];	/* result, if it fits */
		} rma_answer;
	};
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_slot) == NEAR_LINE, "one line a slot");

/* Control data at the start of each ring; slots and data ring follow. */
struct near_ctl {
	/* line that the consumer seldom writes; a producer whose ring is full
	 * reads it */
	uint64_t head;
	uint64_t dhead;
	uint32_t resize;	/* request to the producer */
	uint32_t size;		/* reply to a resize: NEAR_SIZE_* */
	uint64_t doing;		/* delegated operation in execution */
	/* line of the consumer: need-doorbell flag */
	uint32_t need_doorbell __attribute__((aligned(NEAR_LINE)));
	/* cooperative copy: claimed steps, of both ends; msg/coop.h */
	uint64_t claims __attribute__((aligned(NEAR_LINE)));
	uint64_t wrote;		/* steps written by the producer */
	/* by the consumer: delegated operations done; first rejected one */
	uint64_t done;
	uint64_t refused;
	/* large messages that wait for a receive; a hint, not checked */
	uint32_t waiting;
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_ctl) == 3 * NEAR_LINE, "three lines");

/* near_ctl.size: the size class; above it the number of resizes so far */
#define NEAR_SIZE_RESIZES 8
#define NEAR_SIZE_TIER 0xffu

enum near_claim_state {
	NEAR_CLAIM_FREE,
	NEAR_CLAIM_TAKEN,	/* the sender is filling in its address */
	NEAR_CLAIM_OPEN,
	NEAR_CLAIM_CLOSED,	/* the sender sends no more */
	NEAR_CLAIM_REFUSED,	/* the receiver cannot reply to the sender */
};

/* near_claim.state if taken: the sender's pid; 0: another pid namespace */
#define NEAR_CLAIM_PID 8
#define NEAR_CLAIM_STATE 0xffu

/* The sender of ring i. */
struct near_claim {
	uint32_t state;
	uint32_t tier;		/* initial size class of the ring */
	struct near_addr who __attribute__((aligned(8)));
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_claim) == NEAR_LINE, "one line a claim");

/* near_segment.flags */
#define NEAR_SEGMENT_FENCE 1u	/* senders must fence: no membarrier */

struct near_segment {
	uint32_t magic;
	uint32_t layout;
	uint64_t nonce;
	uint32_t flags;
	uint32_t closed;
	int32_t table_fd;	/* region table, rma/table.h; -1: no RMA */
	uint32_t tell;		/* NEAR_MAY_*: accesses that need an event */
	uint64_t table_nonce;
	uint32_t growing;	/* rings that may be larger than a page */
	uint32_t adv;		/* advertised size: NEAR_ADV_* */
	uint32_t page;		/* near_page_size() of the owner, bytes */
	/* doorbell: ring 64 w + i sets bit i of bell[w], then bit w here */
	uint64_t bell_words __attribute__((aligned(NEAR_LINE)));
	uint32_t armed;		/* number of the sleep; 0: awake */
	int32_t wake_fd;
	uint64_t bell[NEAR_SENDERS / 64] __attribute__((aligned(NEAR_LINE)));
	struct near_claim claim[NEAR_SENDERS]
		__attribute__((aligned(NEAR_PAGE)));
};

#define NEAR_CLAIMS_PER_PAGE (NEAR_PAGE / sizeof(struct near_claim))

/* near_segment.adv: size class; index below which a new sender may use it */
#define NEAR_ADV_BELOW 8
#define NEAR_ADV_TIER 0xffu

/*
 * Returns the system's page size in bytes, the unit in which memory is mapped,
 * allocated and freed: 4, 16 or 64 KiB. Tests may assume another one.
 */
size_t near_page_size(void);
void near_page_assume(size_t bytes);

/*
 * Ring size classes, in whole pages. The first near_segment.growing rings have
 * address space for the largest class, the others have one page. Classes that
 * fit into one page of the system are one class, the largest of them.
 */
#define NEAR_TIERS 8

uint32_t near_tier_least(void);
/* tier must be below NEAR_TIERS. */
uint32_t near_tier_pages(uint32_t tier);
/* Returns the largest class of at most that many pages, or the least class. */
uint32_t near_tier_fit(size_t pages);

/* Returns the largest class that this ring can have. */
uint32_t near_tier_most(uint32_t growing, uint32_t index);

/* Returns the file's size with that many growing rings. */
size_t near_segment_size(uint32_t growing);

/* A ring's place in the file, bytes. */
struct near_place {
	size_t offset;
	size_t span;		/* address space, of the largest class */
	size_t size;		/* bytes in use */
	uint32_t slots;
	uint32_t data;
	uint32_t tier;
};

/* index must be below NEAR_SENDERS. False: the ring cannot have that class. */
bool near_place(uint32_t growing, uint32_t index, uint32_t tier,
		struct near_place *place);

/* Returns the most memory, bytes, of a port with that budget and senders. */
size_t near_memory(size_t budget, uint32_t senders);

#endif /* NEAR_LINK_SHM_H */
