/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What lies in shared memory: one region per port, written to by every sender.
 * Nothing that is read here may be used as an index, a length or a pointer
 * before it has been checked. docs/near.md draws it.
 */
#ifndef NEAR_LINK_SHM_H
#define NEAR_LINK_SHM_H

#include <assert.h>

#include "near.h"

#define NEAR_MAGIC 0x7261656eu	/* "near" */
#define NEAR_LAYOUT 3u		/* counts changes of this file */
#define NEAR_LINE 64
#define NEAR_PAGE 4096
#define NEAR_SENDERS 4096
#define NEAR_INLINE 48

/* What a slot is; the upper half of the byte has the message's flags. */
enum near_kind {
	NEAR_KIND_INLINE,	/* payload in the slot */
	NEAR_KIND_EAGER,	/* payload in the data ring */
	NEAR_KIND_RTS,		/* payload with the sender */
	NEAR_KIND_CTS,		/* receiver: send it in pieces */
	NEAR_KIND_ACK,		/* receiver: I have it */
	NEAR_KIND_PIECE,	/* payload in the data ring, after a CTS */
	NEAR_KIND_SHARE,	/* receiver: write a part of it to my memory */
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
		} piece;
		struct {
			uint64_t id;
			uint64_t len;		/* so much is wanted */
			uint64_t addr;		/* where the receiver wants it */
			uint32_t round;		/* near_ctl.claims */
			uint32_t step;		/* bytes of a claim */
		} share;
		struct near_rma_slot {	/* its tag: the address */
			uint64_t key;
			uint64_t id;		/* the requester's operation */
			uint64_t total;		/* bytes of the operation */
			uint64_t offset;	/* of this part */
			uint64_t data;
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
		} rma_answer;
	};
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_slot) == NEAR_LINE, "one line a slot");

/* At the start of each ring; slots and data follow. */
struct near_ctl {
	/* written by the consumer, seldom; read by the producer when full */
	uint64_t head;
	uint64_t dhead;
	/* written by the consumer: the producer is to ring the bell */
	uint32_t cold __attribute__((aligned(NEAR_LINE)));
	/* a message that both copy: proto/share.h */
	uint64_t claims __attribute__((aligned(NEAR_LINE)));
	uint64_t wrote;			/* by the producer */
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_ctl) == 3 * NEAR_LINE, "three lines");

enum near_claim_state {
	NEAR_CLAIM_FREE,
	NEAR_CLAIM_TAKEN,	/* its sender fills in who it is */
	NEAR_CLAIM_OPEN,
	NEAR_CLAIM_CLOSED,	/* nothing more comes */
	NEAR_CLAIM_REFUSED,	/* the receiver cannot answer */
};

/* Who sends through ring i. */
struct near_claim {
	uint32_t state;
	struct near_addr who __attribute__((aligned(8)));
} __attribute__((aligned(NEAR_LINE)));

static_assert(sizeof(struct near_claim) == NEAR_LINE, "one line a claim");

/* near_region.flags */
#define NEAR_REGION_FENCE 1u	/* senders fence: no membarrier here */

/* So many rings of the two larger sizes; all others are of the smallest. */
struct near_rings {
	uint32_t large;
	uint32_t medium;
};

struct near_region {
	uint32_t magic;
	uint32_t layout;
	uint64_t nonce;
	uint32_t flags;
	uint32_t closed;
	/* for one-sided operations, see rma/table.h; -1: there are none */
	int32_t table_fd;
	uint32_t tell;		/* NEAR_MAY_*: of which the port wants to know */
	uint64_t table_nonce;
	struct near_rings rings;
	/* the bell: bit i of word w for ring 64 w + i, bit w of bell_words */
	uint64_t bell_words __attribute__((aligned(NEAR_LINE)));
	uint32_t armed;		/* a ringer writes to wake_fd once, too */
	int32_t wake_fd;
	uint64_t bell[NEAR_SENDERS / 64] __attribute__((aligned(NEAR_LINE)));
	struct near_claim claim[NEAR_SENDERS]
		__attribute__((aligned(NEAR_PAGE)));
};

#define NEAR_CLAIMS_PER_PAGE (NEAR_PAGE / sizeof(struct near_claim))

/* As many of the larger rings as so many bytes hold. */
void near_rings_fit(struct near_rings *rings, size_t bytes);
/* A peer's may be anything. */
bool near_rings_valid(const struct near_rings *rings);

/* Of the whole file: the region, then NEAR_SENDERS rings. */
size_t near_region_size(const struct near_rings *rings);

/* Where ring i lies, from the start of the file, and its parts. */
struct near_place {
	size_t offset;
	size_t size;		/* in whole pages */
	uint32_t slots;
	uint32_t data;
	uint32_t tier;		/* rings of one size, below NEAR_TIERS */
};

#define NEAR_TIERS 3

/* index must be below NEAR_SENDERS, and rings valid. */
void near_place(const struct near_rings *rings, uint32_t index,
		struct near_place *place);

#endif /* NEAR_LINK_SHM_H */
