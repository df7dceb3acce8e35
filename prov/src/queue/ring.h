/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A CQ's ring of completions, and its list of errors: docs/completions.md. Each
 * slot is one cache line. Lock: the group's.
 *
 * A *gated* ring appears full, although slots may be free. Each new entry then
 * takes the slow path, duo_cq_push_slow(). The ring is gated while a thread may
 * be asleep on the CQ, because a new entry must wake this thread. The ring of a
 * hidden CQ (ep->own_cq) is always gated, because ofi_duo drops its entries.
 */
#ifndef DUO_RING_H
#define DUO_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "base/util.h"

#define DUO_ERR_DATA_MAX 256	/* maximum bytes of err_data in a duo_err */

struct duo_ring_slot {
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;
} __attribute__((aligned(DUO_LINE)));

struct duo_ring {
	struct duo_ring_slot *slot;
	uint32_t size;		/* number of slots, a power of two */
	/* `size`; 0 while the ring is gated, so that it appears full */
	uint32_t limit;
	uint32_t head;	/* index of the next slot to read, free-running */
	uint32_t tail;	/* index of the next slot to write, free-running */
};

struct duo_err {
	STAILQ_ENTRY(duo_err) link;
	struct fi_cq_err_entry entry;
	/*
	 * path of the provider that has set prov_errno; -1: ofi_duo itself has
	 * set prov_errno
	 */
	int path;
	/*
	 * ring->tail when the error was added. Reads return the entries before
	 * this place, then the error, then the later entries.
	 */
	uint32_t place;
	uint8_t data[DUO_ERR_DATA_MAX];
};

struct duo_err_list {
	STAILQ_HEAD(, duo_err) list;
	bool some;		/* the list is not empty, or overrun is set */
	/* a completion or error was lost because there was no memory */
	bool overrun;
};

/*
 * The unused part of the array that the application has passed to the running
 * fi_cq_read(). Polls write new completions there, not to the ring.
 */
struct duo_sink {
	void *buf;		/* place of the next entry */
	fi_addr_t *src;	/* place of the next source; NULL: not requested */
	/* free entries of the array; 0: it is full, or no read is running */
	size_t space;
	size_t count;		/* number of entries written */
};

/*
 * Does the work of duo_entry_write() for all formats except
 * FI_CQ_FORMAT_TAGGED. The entries of these formats are prefixes of struct
 * fi_cq_tagged_entry.
 */
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
 * Writes an entry to an application's array. Returns the place of the next
 * entry. Copies field by field: the caller may just have stored the fields, and
 * a memcpy() that loads several fields at once would wait for these stores.
 */
static inline void *duo_entry_write(void *at, enum fi_cq_format format,
				    const struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_tagged_entry cut, *to = at;

	if (__builtin_expect(format != FI_CQ_FORMAT_TAGGED, false)) {
		/*
		 * Passes the address of a copy, so that the compiler can keep
		 * the fields of *entry in registers.
		 */
		cut = *entry;
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
	sink->space--;
	sink->count++;
}

/*
 * Marks the next `count` entries of the array as used. The caller has written
 * them itself, in FI_CQ_FORMAT_TAGGED.
 */
static inline void duo_sink_advance(struct duo_sink *sink, size_t count)
{
	sink->buf = (struct fi_cq_tagged_entry *) sink->buf + count;
	if (sink->src)
		sink->src += count;
	sink->space -= count;
	sink->count += count;
}

/*
 * Allocates a ring with at least `size` slots. If `size` is above 2^30,
 * allocates 2^30 slots instead. Returns 0 or -FI_ENOMEM.
 */
int duo_ring_init(struct duo_ring *ring, size_t size);
void duo_ring_fini(struct duo_ring *ring);
/*
 * Adds an entry to the ring, even while the ring is gated. If all slots are in
 * use, first doubles the size of the ring. Returns 0; -FI_ENOMEM: the ring
 * cannot grow, and the entry is not added.
 */
int duo_ring_push(struct duo_ring *ring, const struct fi_cq_tagged_entry *entry,
		  fi_addr_t src);

static inline bool duo_ring_empty(const struct duo_ring *ring)
{
	return ring->head == ring->tail;
}

/*
 * Makes slot 0 the next slot of a ring. If the ring never has many entries, it
 * then uses only its first slots, which stay in the CPU's cache. The ring must
 * be empty. The list of errors must also be empty, because duo_err.place of an
 * error would not be valid any more.
 */
static inline void duo_ring_rewind(struct duo_ring *ring)
{
	ring->head = 0;
	ring->tail = 0;
}

/*
 * True if the ring is full or gated. The caller must then not call
 * duo_ring_put(), but take its slow path.
 */
static inline bool duo_ring_full(const struct duo_ring *ring)
{
	return ring->tail - ring->head >= ring->limit;
}

/*
 * Gates or ungates the ring. While it is gated, duo_ring_full() is true, and
 * the code that adds an entry calls duo_cq_push_slow(). duo_cq_push_slow()
 * wakes the threads that sleep on the CQ. If the CQ is hidden, it also drops
 * the entry.
 */
static inline void duo_ring_gate(struct duo_ring *ring, bool gated)
{
	ring->limit = gated ? 0 : ring->size;
}

/* Returns the slot at the tail, which must be free, and advances the tail. */
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

/*
 * Removes the oldest entry from the ring, and writes it to buf. If src is not
 * NULL, stores the source of the message in *src. The ring must not be empty.
 * Returns the place in buf behind the entry.
 */
static inline void *duo_ring_read_one(struct duo_ring *ring,
				      enum fi_cq_format format, void *buf,
				      fi_addr_t *src)
{
	const struct duo_ring_slot *slot;

	slot = &ring->slot[ring->head++ & (ring->size - 1)];
	if (src)
		*src = slot->src;
	return duo_entry_write(buf, format, &slot->entry);
}

/*
 * Removes the oldest entries from the ring, at most `count`, and writes them to
 * buf. If src is not NULL, stores their sources in src[]. Returns the number of
 * entries.
 */
size_t duo_ring_read(struct duo_ring *ring, enum fi_cq_format format,
		     void *buf, size_t count, fi_addr_t *src);

void duo_err_init(struct duo_err_list *errs);
void duo_err_fini(struct duo_err_list *errs);
/* Adds an error. If there is no memory for the error, sets errs->overrun. */
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

/*
 * Returns the number of ring entries that precede the first error of the list.
 * If the list is empty, returns the number of all ring entries.
 */
static inline uint32_t duo_err_after(const struct duo_err_list *errs,
				     const struct duo_ring *ring)
{
	const struct duo_err *err = STAILQ_FIRST(&errs->list);

	return (err ? err->place : ring->tail) - ring->head;
}

/* True if the next read of the CQ must report an error, not an entry. */
static inline bool duo_err_due(const struct duo_err_list *errs,
			       const struct duo_ring *ring)
{
	return !duo_err_none(errs) && !duo_err_after(errs, ring);
}

/*
 * Moves the first error of the list to *entry, and returns its duo_err.path. If
 * the list is empty, errs->overrun must be set; stores the error FI_EOVERRUN in
 * *entry, and returns -1. If the caller has set an array for err_data in *entry
 * (fi_cq_readerr(3)), copies err_data there. Otherwise copies err_data to
 * `data`, which must have DUO_ERR_DATA_MAX bytes.
 */
int duo_err_pop(struct duo_err_list *errs, struct fi_cq_err_entry *entry,
		void *data);

#endif /* DUO_RING_H */
