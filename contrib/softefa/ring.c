/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "ring.h"

#define SE_CLAIMED (1ull << 63)
#define SE_BLOCK_TRIES 8 /* number of blocks that are tried for a packet */

static uint64_t se_ring_claim_word(uint64_t pos, uint32_t id)
{
	return SE_CLAIMED | (pos << 33) >> 1 | id;
}

/*
 * Returns the position of a claim. seq has the position's low 31 bits. The
 * upper bits come from "near", a position that is close to the claim's.
 */
static uint64_t se_ring_claim_pos(uint64_t seq, uint64_t near)
{
	uint32_t diff = (uint32_t)(seq >> 32) - (uint32_t)near;

	return near + (uint64_t)((int64_t)(int32_t)(diff << 1) >> 1);
}

static uint32_t se_ring_stride(uint32_t payload)
{
	return (payload + (uint32_t)sizeof(struct se_ring_block) + 63) & ~63u;
}

size_t se_ring_size(uint32_t slots, uint32_t blocks, uint32_t payload)
{
	return sizeof(struct se_ring) +
	       (size_t)slots * sizeof(struct se_ring_slot) +
	       (size_t)blocks * se_ring_stride(payload);
}

void se_ring_init(struct se_ring *ring, uint32_t slots, uint32_t blocks,
		  uint32_t payload)
{
	uint32_t i;

	ring->slots = slots;
	ring->blocks = blocks;
	ring->stride = se_ring_stride(payload);
	for (i = 0; i < slots; i++) {
		ring->slot[i].seq = i;
		ring->slot[i].block = SE_RING_NO_BLOCK;
	}
}

bool se_ring_valid(const struct se_ring *ring, size_t size)
{
	if (size < sizeof(*ring) ||
	    atomic_load_explicit(&ring->magic, memory_order_acquire) !=
		    SE_RING_MAGIC)
		return false;
	return ring->slots && !(ring->slots & (ring->slots - 1)) &&
	       ring->blocks && ring->stride > sizeof(struct se_ring_block) &&
	       se_ring_size(ring->slots, ring->blocks,
			    se_ring_payload(ring)) <= size;
}

static struct se_ring_block *se_ring_block(struct se_ring *ring,
					   uint32_t index)
{
	char *blocks = (char *)&ring->slot[ring->slots];

	return (struct se_ring_block *)(blocks +
					(size_t)index * ring->stride);
}

/*
 * Claims and returns one of the SE_BLOCK_TRIES blocks from *hint on. Returns
 * SE_RING_NO_BLOCK if none of them is free. *hint is the block behind the one
 * that this producer claimed last. The ring's owner releases blocks in the
 * order in which producers claimed them. So of all claimed blocks, the block
 * *hint becomes free first.
 */
static uint32_t se_ring_take_block(struct se_ring *ring, uint32_t id,
				   uint32_t *hint)
{
	struct se_ring_block *block;
	uint32_t i, index, owner;

	for (i = 0; i < SE_BLOCK_TRIES; i++) {
		index = *hint < ring->blocks ? *hint : 0;
		*hint = index + 1;
		block = se_ring_block(ring, index);
		owner = 0;
		if (!atomic_load_explicit(&block->owner,
					  memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(
			    &block->owner, &owner, id, memory_order_acquire,
			    memory_order_relaxed))
			return index;
	}
	return SE_RING_NO_BLOCK;
}

void se_ring_free_block(struct se_ring *ring, uint32_t index)
{
	atomic_store_explicit(&se_ring_block(ring, index)->owner, 0,
			      memory_order_release);
}

/*
 * Returns the position that a producer tries after pos; 0: the ring is full.
 * The slot of pos has the state seq, which is not "free". If seq belongs to pos
 * or a later position, all positions up to that one have been claimed. If seq
 * belongs to an earlier lap, the owner has not released the slot.
 */
static uint64_t se_ring_next(const struct se_ring *ring, uint64_t seq,
			     uint64_t pos)
{
	uint64_t seen;

	if (seq & SE_CLAIMED)
		seen = se_ring_claim_pos(seq, pos);
	else if (!((seq - pos) & (ring->slots - 1)))
		seen = seq - ring->slots;
	else
		seen = seq - 1;
	return (int64_t)(seen - pos) < 0 ? 0 : seen + 1;
}

static struct se_ring_slot *se_ring_claim_slot(struct se_ring *ring,
					       uint32_t id, uint64_t *at)
{
	uint64_t seq, pos = atomic_load_explicit(&ring->head,
						 memory_order_relaxed);
	struct se_ring_slot *slot;

	for (;;) {
		slot = se_ring_slot(ring, pos);
		seq = atomic_load_explicit(&slot->seq, memory_order_acquire);
		if (seq == pos &&
		    atomic_compare_exchange_strong_explicit(
			    &slot->seq, &seq, se_ring_claim_word(pos, id),
			    memory_order_acquire, memory_order_acquire))
			break;
		pos = se_ring_next(ring, seq, pos);
		if (!pos)
			return NULL;
	}
	atomic_store_explicit(&ring->head, pos + 1, memory_order_relaxed);
	*at = pos;
	return slot;
}

struct se_ring_slot *se_ring_claim(struct se_ring *ring, uint32_t id,
				   uint32_t len, uint32_t *hint,
				   uint64_t *pos)
{
	uint32_t block = SE_RING_NO_BLOCK;
	struct se_ring_slot *slot;

	if (len > SE_RING_INLINE) {
		block = se_ring_take_block(ring, id, hint);
		if (block == SE_RING_NO_BLOCK)
			return NULL;
	}
	slot = se_ring_claim_slot(ring, id, pos);
	if (slot)
		slot->block = block;
	else if (block != SE_RING_NO_BLOCK)
		se_ring_free_block(ring, block);
	return slot;
}

void se_ring_publish(struct se_ring_slot *slot, uint64_t pos)
{
	/* pairs with the acquire in se_ring_state() */
	atomic_store_explicit(&slot->seq, pos + 1, memory_order_release);
}

uint8_t *se_ring_data(struct se_ring *ring, struct se_ring_slot *slot,
		      uint32_t len)
{
	if (len <= SE_RING_INLINE)
		return slot->data;
	if (slot->block >= ring->blocks || len > se_ring_payload(ring))
		return NULL;
	return se_ring_block(ring, slot->block)->data;
}

void se_ring_release(struct se_ring *ring, uint64_t tail, bool block)
{
	struct se_ring_slot *slot = se_ring_slot(ring, tail);

	if (block && slot->block < ring->blocks)
		se_ring_free_block(ring, slot->block);
	/* pairs with the acquire in se_ring_claim_slot() */
	atomic_store_explicit(&slot->seq, tail + ring->slots,
			      memory_order_release);
}

uint32_t se_ring_claimant(struct se_ring *ring, uint64_t tail)
{
	uint64_t seq = atomic_load_explicit(&se_ring_slot(ring, tail)->seq,
					    memory_order_acquire);

	return seq & SE_CLAIMED ? (uint32_t)seq : 0;
}

uint32_t se_ring_owned_block(struct se_ring *ring, uint32_t index,
			     uint32_t *owner)
{
	for (; index < ring->blocks; index++) {
		*owner = atomic_load_explicit(
			&se_ring_block(ring, index)->owner,
			memory_order_relaxed);
		if (*owner)
			return index;
	}
	return SE_RING_NO_BLOCK;
}
