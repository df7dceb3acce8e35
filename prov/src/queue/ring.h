/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The ring of completions that both paths write into, and the list of error
 * entries beside it. An error remembers its place in the ring: it is read
 * after what was written before it, so neither starves the other. A full
 * ring doubles, so completions are lost only when memory is; then the loss is
 * remembered as an overrun. Pure: no provider, no lock (the domain's protects
 * it). Cost: 56 bytes a slot.
 */
#ifndef DUO_RING_H
#define DUO_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#define DUO_ERR_DATA_MAX 256	/* bytes of a provider's err_data kept */

struct duo_ring_slot {
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;
};

struct duo_ring {
	struct duo_ring_slot *slot;
	uint32_t size;		/* a power of two */
	uint32_t limit;		/* entries it takes: size, or none while it is
				 * gated */
	uint32_t head;		/* next to read; free-running */
	uint32_t tail;		/* next to write; free-running */
};

struct duo_err {
	STAILQ_ENTRY(duo_err) link;
	struct fi_cq_err_entry entry;
	int path;		/* whose prov_errno it is; -1: ours */
	uint32_t place;		/* the ring's tail when it came */
	uint8_t data[DUO_ERR_DATA_MAX];
};

struct duo_err_list {
	STAILQ_HEAD(, duo_err) list;
	bool some;		/* there is one, or an overrun */
	bool overrun;		/* an entry was lost for lack of memory */
};

/* The caller's array of a read, being filled. */
struct duo_sink {
	void *buf;		/* the next entry's place */
	fi_addr_t *src;		/* likewise; NULL: not wanted */
	size_t room;		/* entries that still fit; 0: no read */
	size_t count;		/* entries written */
};

/* In a shorter format: each is the beginning of the next one, fi_cq(3). */
static inline void *duo_entry_cut(void *at, enum fi_cq_format format,
				  const struct fi_cq_tagged_entry *entry)
{
	size_t size = format == FI_CQ_FORMAT_CONTEXT ?
		      sizeof(struct fi_cq_entry) :
		      format == FI_CQ_FORMAT_MSG ?
		      sizeof(struct fi_cq_msg_entry) :
		      sizeof(struct fi_cq_data_entry);

	memcpy(at, entry, size);
	return (char *) at + size;
}

/*
 * Writes an entry where it is read, and returns the next one's place. Word by
 * word: copied by vectors at once, it would wait for the store buffer.
 */
static inline void *duo_entry_write(void *at, enum fi_cq_format format,
				    const struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_tagged_entry cut, *to = at;

	if (__builtin_expect(format != FI_CQ_FORMAT_TAGGED, false)) {
		cut = *entry;	/* else it may be in registers */
		return duo_entry_cut(at, format, &cut);
	}
	to->op_context = entry->op_context;
	to->flags = entry->flags;
	to->len = entry->len;
	to->buf = entry->buf;
	to->data = entry->data;
	to->tag = entry->tag;
	return to + 1;
}

static inline void duo_sink_put(struct duo_sink *sink,
				enum fi_cq_format format,
				const struct fi_cq_tagged_entry *entry,
				fi_addr_t src)
{
	sink->buf = duo_entry_write(sink->buf, format, entry);
	if (sink->src)
		*sink->src++ = src;
	sink->room--;
	sink->count++;
}

/* Entries that were written there, in the format FI_CQ_FORMAT_TAGGED. */
static inline void duo_sink_advance(struct duo_sink *sink, size_t count)
{
	sink->buf = (struct fi_cq_tagged_entry *) sink->buf + count;
	if (sink->src)
		sink->src += count;
	sink->room -= count;
	sink->count += count;
}

int duo_ring_init(struct duo_ring *ring, size_t size);
void duo_ring_fini(struct duo_ring *ring);
int duo_ring_grow(struct duo_ring *ring);

static inline bool duo_ring_empty(const struct duo_ring *ring)
{
	return ring->head == ring->tail;
}

/*
 * An empty ring starts anew, in the slots that are in the cache, unless the
 * place of an error is counted from where it stands.
 */
static inline void duo_ring_rewind(struct duo_ring *ring)
{
	ring->head = 0;
	ring->tail = 0;
}

/* Full, or gated: duo_ring_push() is to be called, or not even that. */
static inline bool duo_ring_full(const struct duo_ring *ring)
{
	return ring->tail - ring->head >= ring->limit;
}

/* A gated ring looks full: each entry has something done before it. */
static inline void duo_ring_gate(struct duo_ring *ring, bool gated)
{
	ring->limit = gated ? 0 : ring->size;
}

/* There is room, which is taken. */
static inline struct duo_ring_slot *duo_ring_next(struct duo_ring *ring)
{
	return &ring->slot[ring->tail++ & (ring->size - 1)];
}

static inline void duo_ring_put(struct duo_ring *ring,
				const struct fi_cq_tagged_entry *entry,
				fi_addr_t src)
{
	struct duo_ring_slot *slot = duo_ring_next(ring);

	slot->entry = *entry;
	slot->src = src;
}

/* 0, or -FI_ENOMEM: full and it cannot grow. */
static inline int duo_ring_push(struct duo_ring *ring,
				const struct fi_cq_tagged_entry *entry,
				fi_addr_t src)
{
	int ret = ring->tail - ring->head == ring->size ? duo_ring_grow(ring) :
							  0;

	if (!ret)
		duo_ring_put(ring, entry, src);
	return ret;
}

/*
 * Copies up to count entries in the given format to buf and their sources
 * to src, which may be NULL. Returns how many.
 */
size_t duo_ring_read(struct duo_ring *ring, enum fi_cq_format format,
		     void *buf, size_t count, fi_addr_t *src);

/* The same of one, which is there. */
static inline void duo_ring_read_one(struct duo_ring *ring,
				     enum fi_cq_format format, void *buf,
				     fi_addr_t *src)
{
	const struct duo_ring_slot *slot;

	slot = &ring->slot[ring->head++ & (ring->size - 1)];
	duo_entry_write(buf, format, &slot->entry);
	if (src)
		*src = slot->src;
}

void duo_err_init(struct duo_err_list *errs);
void duo_err_fini(struct duo_err_list *errs);
void duo_err_push(struct duo_err_list *errs, const struct duo_ring *ring,
		  const struct fi_cq_err_entry *entry, int path);

static inline void duo_err_overrun(struct duo_err_list *errs)
{
	errs->overrun = true;
	errs->some = true;
}

static inline bool duo_err_none(const struct duo_err_list *errs)
{
	return !errs->some;
}

/* How many entries of the ring come before the first error. */
static inline uint32_t duo_err_after(const struct duo_err_list *errs,
				     const struct duo_ring *ring)
{
	const struct duo_err *err = STAILQ_FIRST(&errs->list);

	return (err ? err->place : ring->tail) - ring->head;
}

/* Is an error the next to be read? */
static inline bool duo_err_due(const struct duo_err_list *errs,
			       const struct duo_ring *ring)
{
	return !duo_err_none(errs) && !duo_err_after(errs, ring);
}
/*
 * Moves the first entry to *entry; its err_data goes to data (at least
 * DUO_ERR_DATA_MAX bytes) or, if entry->err_data_size is not 0 on entry, to
 * the caller's entry->err_data as fi_cq_readerr(3) says. Returns the path
 * whose error it is, -1 for our own, -2 when there is none.
 */
int duo_err_pop(struct duo_err_list *errs, struct fi_cq_err_entry *entry,
		void *data);

#endif /* DUO_RING_H */
