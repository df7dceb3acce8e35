/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Layout of a port's segment, the shared memory in which the port receives
 * (docs/near/design.md). A faulty or hostile sender can write any values into
 * the segment, so the port must check each index, length and pointer.
 *
 * In a cooperative copy, sender and receiver copy parts of one large message at
 * the same time. A step is the part that one system call copies, and the round
 * is the serial number of the cooperative copy (msg/coop.h). A delegated
 * operation is a small RMA operation that the initiator, which is the ring's
 * sender, leaves to the target: the receiver executes it (rma/delegate.c).
 */
#ifndef NEAR_LINK_SHM_H
#define NEAR_LINK_SHM_H

#include <assert.h>

#include "near/near.h"

#define NEAR_LAYOUT 17u		/* version of the layout */
#define NEAR_LINE 64		/* bytes of a cache line */
#define NEAR_PAGE 4096		/* unit of the layout, bytes */
#define NEAR_SENDERS 4096	/* number of rings, one per sender */
#define NEAR_MANY_SENDERS 63	/* number for which the ring budget is meant */

/*
 * Kinds of slots: docs/near/protocol.md. The receiver of a large message posts
 * CTS, ACK and COOP in the ring by which it sends to the message's sender.
 */
enum near_kind {
	NEAR_KIND_INLINE,	/* a message, payload in the slot */
	NEAR_KIND_EAGER,	/* a message, payload in the data ring */
	NEAR_KIND_RTS,		/* announces a message in the sender's memory */
	NEAR_KIND_CTS,		/* the receiver requests fragments */
	NEAR_KIND_ACK,		/* the receiver has the whole message */
	NEAR_KIND_FRAG,		/* a fragment, in the data ring */
	NEAR_KIND_COOP,		/* the receiver requests a cooperative copy */
	/* the sender requests a resize, and sends nothing until the reply */
	NEAR_KIND_RESIZE,
	NEAR_KIND_RMA = 8,	/* RMA or atomic: a request, or a part of one */
	NEAR_KIND_ANSWER,	/* reply to NEAR_KIND_RMA */
};

/*
 * Bit positions in near_slot.word, which the producer stores last, by release.
 * Bits 0 to 15 have the lap number. The consumer compares this number with its
 * own lap number to recognize a new slot.
 */
#define NEAR_WORD_KIND 16	/* 4 bits */
#define NEAR_WORD_FLAGS 20	/* 4 bits */
/*
 * 8 bits: length of an inline message. NEAR_KIND_EAGER: 1 if the receiver must
 * measure the time of the copy
 */
#define NEAR_WORD_LEN 24
#define NEAR_WORD_DATA 32	/* 32 bits: lower half of the remote CQ data */

/*
 * Flag of a fragment without data, which ends the message early: the sender
 * could not copy its device memory to host memory (near_sink.unload()). The
 * receive then ends in an error.
 */
#define NEAR_FRAG_FAILED 1u

/* Result of a trial: docs/near/protocol.md, *Medium messages*. */
enum near_trial {
	NEAR_TRIAL_NONE,	/* this message was no trial */
	NEAR_TRIAL_SLOW,
	NEAR_TRIAL_FAST,
	NEAR_TRIAL_DEVICE,	/* received in device memory */
};

/* space for operands in an RMA slot, or for a result in its reply, bytes */
#define NEAR_RMA_BYTES 24

struct near_slot {
	uint64_t word;
	uint64_t tag;
	union {
		uint8_t bytes[NEAR_INLINE];
		struct {
			uint32_t len;
			uint32_t data;	/* upper half of the remote CQ data */
		} eager;
		struct {
			uint64_t len;
			uint64_t addr;
			uint64_t id;	/* id of the sender's operation */
			uint32_t data;
			uint64_t key;	/* near_rndv.key */
		} rts;
		struct {
			uint64_t id;
			uint64_t answer; /* id of the receiver's operation */
			uint64_t len;	/* bytes that the sender must send */
		} cts;
		struct {
			uint64_t id;
			uint32_t trial;	/* enum near_trial */
		} ack;
		struct {
			uint64_t answer;
			uint32_t len;
		} frag;
		struct {
			uint64_t id;
			uint64_t len;		/* bytes to copy */
			uint64_t addr;	/* address of the receiver's buffer */
			uint32_t round;	/* serial number of this copy */
		} coop;
		struct {
			/*
			 * length of a message for which the data ring was too
			 * short, bytes; 1: a ring of any larger size suffices
			 */
			uint32_t more;
		} resize;
		/* NEAR_KIND_RMA; the target address is in near_slot.tag */
		struct near_rma_slot {
			uint64_t key;
			uint64_t id;	/* id of the initiator's operation */
			union {
				struct {
					uint64_t total;	/* bytes of all parts */
					/* bytes before this part */
					uint64_t offset;
					uint64_t data;
				};
				/* operands, if flags has NEAR_RMA_INLINE */
				uint8_t bytes[NEAR_RMA_BYTES];
			};
			uint8_t verb;
			uint8_t op;
			uint8_t type;
			uint8_t flags;
			uint32_t len;		/* bytes of this part */
		} rma;
		struct near_answer_slot {
			uint64_t id;
			uint64_t offset;
			uint32_t len;
			uint32_t err;
			/* result, if it fits in the slot */
			uint8_t bytes[NEAR_RMA_BYTES];
		} rma_answer;
	};
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_slot) == NEAR_LINE, "one line a slot");

/*
 * Control data at the start of each ring. The producer writes only `steps` and
 * `wrote`, which belong to cooperative copies. In both words, the upper 32 bits
 * are the *round*, the number of the cooperative copy. The producer numbers its
 * delegated operations from 1. In `doing`, `done` and `rejected` the consumer
 * stores these sequence numbers.
 */
struct near_ctl {
	uint64_t head;		/* number of consumed slots */
	uint64_t dhead;	/* data bytes consumed, or skipped at the ring's end */
	uint32_t size;		/* reply to NEAR_KIND_RESIZE: NEAR_SIZE_* */
	uint64_t doing;		/* last delegated operation that has begun */
	/* 1: polls do not read the ring; the producer must ring the doorbell */
	uint32_t need_doorbell __attribute__((aligned(NEAR_LINE)));
	/* round; lower bits: steps that each end has begun (msg/coop.h) */
	uint64_t steps __attribute__((aligned(NEAR_LINE)));
	/* round; lower bits: steps that the sender has finished */
	uint64_t wrote;
	uint64_t done;		/* last delegated operation that has ended */
	/* first delegated operation that the consumer rejected; 0: none */
	uint64_t rejected;
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_ctl) == 3 * NEAR_LINE, "three lines");

/* near_ctl.size: bits 0 to 7: size class; bits 8 to 31: number of resizes */
#define NEAR_SIZE_RESIZES 8
#define NEAR_SIZE_TIER 0xffu

enum near_claim_state {
	NEAR_CLAIM_FREE,	/* the ring has no sender */
	NEAR_CLAIM_TAKEN,	/* the sender is writing its address */
	NEAR_CLAIM_OPEN,	/* the sender can send */
	NEAR_CLAIM_CLOSED,	/* the sender will send nothing more */
	/* the receiver cannot send to the sender, or has disconnected it */
	NEAR_CLAIM_REJECTED,
};

/*
 * near_claim.state: bits 0 to 7 are the state. In the state TAKEN, the upper
 * bits are the sender's pid; 0: the sender is in another pid namespace.
 */
#define NEAR_CLAIM_PID 8
#define NEAR_CLAIM_STATE 0xffu

/* The entry by which a sender attaches to the ring with the same index. */
struct near_claim {
	uint32_t state;
	/*
	 * size class of the ring when the sender attached. Exception: while the
	 * claim is rejected and the receiver has no rx ring for it, the ring's
	 * last size class
	 */
	uint32_t tier;
	struct near_addr addr __attribute__((aligned(8)));
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_claim) == NEAR_LINE, "one line a claim");

/*
 * near_segment.flags: the owner has no membarrier, so senders must execute a
 * fence after each slot (enum near_fence).
 */
#define NEAR_SEGMENT_FENCE 1u

struct near_segment {
	uint32_t magic;
	uint32_t layout;
	uint64_t nonce;
	uint32_t flags;
	uint32_t closed;	/* 1: the port has closed */
	int32_t table_fd; /* file descriptor of the region table; -1: no RMA */
	/*
	 * bit mask of NEAR_MAY_READ and NEAR_MAY_WRITE: an initiator that has
	 * itself executed such an access must report it to the owner by a slot
	 */
	uint32_t events;
	uint64_t table_nonce;	/* nonce of the region table */
	uint32_t growing;	/* number of rings that can exceed one page */
	uint32_t adv;		/* advertised size of rings: NEAR_ADV_* */
	uint32_t page;		/* near_page_size() of the owner, bytes */
	/* bit w: doorbell[w] has a set bit */
	uint64_t doorbell_words __attribute__((aligned(NEAR_LINE)));
	/* serial number of the current sleep, from 1; 0: no thread sleeps */
	uint32_t armed;
	int32_t wake_fd; /* write end of the owner's wake pipe; -1: none */
	/* bit i of doorbell[w]: ring 64 w + i has a new slot or claim state */
	uint64_t doorbell[NEAR_SENDERS / 64]
		__attribute__((aligned(NEAR_LINE)));
	struct near_claim claim[NEAR_SENDERS]
		__attribute__((aligned(NEAR_PAGE)));
};

#define NEAR_CLAIMS_PER_PAGE (NEAR_PAGE / sizeof(struct near_claim))

/*
 * near_segment.adv: bits 0 to 7 are the size class of new rings with an index
 * below the number in the upper bits. Other new rings have one page.
 */
#define NEAR_ADV_BELOW 8
#define NEAR_ADV_TIER 0xffu

/* Returns the system's page size in bytes, the unit of mappings. */
size_t near_page_size(void);
/* Sets another page size, for tests. */
void near_page_assume(size_t bytes);

/*
 * Ring size classes ("tiers"), in order of size. The first near_segment.growing
 * rings have address space for the largest class. All other rings have only one
 * page.
 */
#define NEAR_TIERS 8

/* Returns the class of a ring that has one page of the system. */
uint32_t near_tier_least(void);
/* Returns the size of a class in pages of the system. tier < NEAR_TIERS. */
uint32_t near_tier_pages(uint32_t tier);
/*
 * Returns the largest class of at most this number of pages. If no class is so
 * small, returns the least one.
 */
uint32_t near_tier_fit(size_t pages);
/* Returns the largest class that the ring with this index can have. */
uint32_t near_tier_most(uint32_t growing, uint32_t index);
/* Returns the size of a segment's file in bytes. */
size_t near_segment_size(uint32_t growing);

/* Place of a ring in the segment's file; sizes in bytes. */
struct near_place {
	size_t offset;
	size_t span;	/* size of the ring's largest class: near_tier_most() */
	size_t size;		/* size of a ring of class tier */
	uint32_t slots;		/* number of slots */
	uint32_t data;		/* bytes of the data ring */
	uint32_t tier;		/* size class, as passed to near_place() */
};

/* Computes a ring's place. False: the ring cannot have this size class. */
bool near_place(uint32_t growing, uint32_t index, uint32_t tier,
		struct near_place *place);
/*
 * Returns the number of pages that rings can have together after they have
 * grown. pages: the ring budget, which is meant for NEAR_MANY_SENDERS. Each
 * sender of a larger number can have as many pages as each of these.
 */
size_t near_grown_pages(size_t pages, uint32_t senders);
/*
 * Returns the limit of the memory that a segment allocates for a number of
 * senders, bytes. budget: near_attr.memory.
 */
size_t near_memory(size_t budget, uint32_t senders);

#endif /* NEAR_LINK_SHM_H */
