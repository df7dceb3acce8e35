/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The ring of a queue pair in shared memory: any process may be a producer of
 * packets, and only the queue pair's process, the owner, consumes them. ring.c
 * opens no files, so that it can be tested alone.
 *
 * slot->seq has the state of the slot at position pos:
 * - pos: free;
 * - SE_CLAIMED, the low bits of pos and the producer's id: claimed;
 * - pos + 1: published;
 * - pos + slots: released, and free for the next lap.
 * Producers claim positions without gaps. One store writes the claim together
 * with the producer's id, so that the owner can identify a producer that was
 * killed after its claim. A claimed block has the producer's id, too.
 */
#ifndef SOFTEFA_RING_H
#define SOFTEFA_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softefa_io.h"

#define SE_RING_MAGIC 0x53454653u
#define SE_RING_INLINE 144 /* payload bytes in a slot of four cache lines */
#define SE_RING_NO_BLOCK UINT32_MAX

struct se_ring_slot {
	_Atomic uint64_t seq;
	uint32_t block;
	uint32_t pad;
	struct se_pkt pkt;
	uint8_t data[SE_RING_INLINE];
};
_Static_assert(sizeof(struct se_ring_slot) == 256, "whole cache lines");

/*
 * A payload that does not fit in a slot. The producer's id is in the block's
 * first cache line, which the producer writes anyway.
 */
struct se_ring_block {
	_Atomic uint32_t owner; /* 0: free */
	uint32_t pad[3];
	uint8_t data[];
};

struct se_ring {
	/* stored last, when all other members are valid */
	_Atomic uint32_t magic;
	uint32_t slots, blocks, stride;
	_Atomic uint32_t dead;
	/* position that producers try to claim first; may be stale */
	_Alignas(64) _Atomic uint64_t head;
	/* the owner has acknowledged all packets below this position */
	_Alignas(64) _Atomic uint64_t answered;
	_Alignas(64) _Atomic uint32_t armed;
	_Alignas(64) struct se_ring_slot slot[];
};

/*
 * Returns a ring's size, bytes. slots: a power of two. payload: length of the
 * longest payload, bytes.
 */
size_t se_ring_size(uint32_t slots, uint32_t blocks, uint32_t payload);
void se_ring_init(struct se_ring *ring, uint32_t slots, uint32_t blocks,
		  uint32_t payload);

/* True if this mapped memory has a valid ring of at most size bytes. */
bool se_ring_valid(const struct se_ring *ring, size_t size);

/* Returns the longest payload, in bytes. */
static inline uint32_t se_ring_payload(const struct se_ring *ring)
{
	return ring->stride - (uint32_t)sizeof(struct se_ring_block);
}

/*
 * For producers: claims a slot and, if len bytes do not fit in it, a block.
 * Returns NULL if none is free. id identifies the producer, and is not 0.
 * *hint: index of the block at which the search starts; this function moves it.
 */
struct se_ring_slot *se_ring_claim(struct se_ring *ring, uint32_t id,
				   uint32_t len, uint32_t *hint,
				   uint64_t *pos);
void se_ring_publish(struct se_ring_slot *slot, uint64_t pos);

/* Returns the payload of a slot; NULL if its length or block is invalid. */
uint8_t *se_ring_data(struct se_ring *ring, struct se_ring_slot *slot,
		      uint32_t len);

/* For the owner: state of the slot at position tail. */
enum se_ring_state { SE_RING_FREE, SE_RING_CLAIMED, SE_RING_READY };

static inline struct se_ring_slot *se_ring_slot(struct se_ring *ring,
						uint64_t pos)
{
	return &ring->slot[pos & (ring->slots - 1)];
}

static inline enum se_ring_state se_ring_state(struct se_ring *ring,
					       uint64_t tail)
{
	uint64_t seq = atomic_load_explicit(&se_ring_slot(ring, tail)->seq,
					    memory_order_acquire);

	if (seq == tail)
		return SE_RING_FREE;
	return seq == tail + 1 ? SE_RING_READY : SE_RING_CLAIMED;
}

/* Releases the slot at position tail and, if "block" is set, its block. */
void se_ring_release(struct se_ring *ring, uint64_t tail, bool block);

/* Returns the id of the producer that has claimed this slot; 0: none. */
uint32_t se_ring_claimant(struct se_ring *ring, uint64_t tail);

/*
 * Returns the first claimed block from index on, and stores its producer's id
 * in *owner. Returns SE_RING_NO_BLOCK if there is none. Before the caller frees
 * the block of an exited producer, the caller must check that the ring is
 * empty. Otherwise a published packet might be in the block.
 */
uint32_t se_ring_owned_block(struct se_ring *ring, uint32_t index,
			     uint32_t *owner);
void se_ring_free_block(struct se_ring *ring, uint32_t index);

#endif
