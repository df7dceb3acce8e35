/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A receive entry: a receive that the application posted, or a local message
 * that arrived before its receive. Entries never move. They lie in address
 * ranges that the domain lists (ranges.h), so the address of a context from the
 * core shows whether it is an entry. Each range of an endpoint has twice the
 * entries of the previous one. Only memory limits entries: another limit would
 * hang programs that MPI permits.
 *
 * A receive of several buffers has a second entry, which contains them.
 *
 * Cost: 256 bytes an entry, touched from the first use on; the first range is
 * 4 MiB of addresses; growing advances an index, and is one mmap() a range. The
 * core writes the first cache line. A receive that a local message matches
 * touches the last two. Protected by the domain's lock.
 */
#ifndef DUO_RX_H
#define DUO_RX_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <rdma/fabric.h>

#include "base/compat.h"
#include "base/util.h"
#include "queue/state.h"
#include "near/near.h"
#include "queue/ranges.h"

#define DUO_IOV_LIMIT 4			/* buffers of a receive */
#define DUO_RX_FIRST (1U << 14)		/* entries in a pool's first range */
#define DUO_RX_RANGES 16		/* 2^30 entries */

enum duo_rx_kind {
	DUO_MSG,
	DUO_TAGGED,
	DUO_KIND_COUNT
};

/* Whether a successful receive has a completion, and its kind of memory. */
enum duo_rx_wanted {
	DUO_RX_UNWANTED,	/* no completion */
	DUO_RX_WANTED,
	DUO_RX_STAGED,		/* wanted; buffers may be device memory */
};

/* The event after which a posted receive goes to the core. */
enum duo_rx_lazy {
	DUO_LAZY_NONE,
	DUO_LAZY_DUE,		/* the next poll */
	DUO_LAZY_WAITS,		/* idle polls, or aging */
	DUO_LAZY_BLOCKED,	/* the end of an earlier multi-receive buffer */
};

struct duo_ep;

/* A message of near that is unexpected or being received. */
struct duo_near_msg {
	struct near_peer *peer;	/* sender, referenced */
	struct near_rndv rndv;
	void *payload;		/* NULL: still at its sender */
	bool ended;		/* received, waits for earlier ones' reports */
	int err;		/* result, if ended */
};

/* All buffers of a receive that has more than one. */
struct duo_rx_buffers {
	struct iovec iov[DUO_IOV_LIMIT];
	void *desc[DUO_IOV_LIMIT];
	size_t size;		/* sum of their lengths, bytes */
};

struct duo_rx {
	/*
	 * Must come first. A local message matches the receive, and uses the
	 * union, only after the core has returned core_ctx.
	 */
	union {
		struct fi_context2 core_ctx;
		struct fi_peer_rx_entry peer;	/* a local message; libfabric's
						 * shm reads and writes it */
		struct {			/* near's; keeps the fields
						 * of peer up to "context" */
			char described[offsetof(struct fi_peer_rx_entry,
						context)];
			struct duo_near_msg arrival;
		};
		struct duo_rx_buffers buffers;	/* if this is an rx->more */
	};
	union {
		TAILQ_ENTRY(duo_rx) lazy_link;	/* rx->lazy: not on the core */
		TAILQ_ENTRY(duo_rx) tag_link;	/* unexpected, in an index */
		struct iovec bounce_iov;	/* for libfabric's shm */
		struct {			/* of a multi-receive buffer */
			uint32_t refs;		/* number of sub-receives */
			bool open;		/* more messages fit */
			bool canceled;		/* by fi_cancel */
			bool local_only;	/* never on the core */
		};
	};
	union {
		TAILQ_ENTRY(duo_rx) link; /* posted, unexpected or held */
		SLIST_ENTRY(duo_rx) free_link;
	};
	void *context;			/* the application's */
	uint64_t flags;			/* of the operation */
	fi_addr_t addr;			/* source that the receive names, or of
					 * the local message */
	uint64_t tag;			/* of the receive or local message */
	union {
		uint64_t ignore;
		void *bounce;		/* rx->bounced: buffer for the message;
					 * the receive is no longer posted */
	};
	union {
		struct {
			uint8_t state;	/* enum duo_rx_state */
			uint8_t kind;	/* enum duo_rx_kind */
			bool on_core;	/* the core has a copy */
			uint8_t lazy;	/* enum duo_rx_lazy */
			uint8_t wanted;	/* enum duo_rx_wanted */
			bool hold : 1;	/* arriving: becomes unresolved */
			bool bounced : 1;
			uint8_t count;	/* of buffers; > 1: rx->more */
			bool multi;	/* a sub-receive, see multi.h */
		};
		uint64_t what;		/* all of these at once */
	};
	struct iovec iov;		/* the first buffer */
	void *desc;			/* the core's descriptor of it */
	uint64_t seq;			/* order in the queue */
	TAILQ_ENTRY(duo_rx) key_link;	/* in an index, see match.h */
	struct duo_ep *ep;
	union {
		fi_addr_t src_number;	/* unexpected: index of the source, or
					 * FI_ADDR_NOTAVAIL */
		struct duo_rx *owner;	/* sub-receive: its buffer's entry */
		struct duo_rx *more;	/* count > 1: entry of the buffers */
	};
} __attribute__((aligned(64)));

static_assert(sizeof(struct duo_rx) <= 256, "four cache lines");
static_assert(offsetof(struct duo_rx, arrival) +
	      sizeof(struct duo_near_msg) <= sizeof(struct fi_peer_rx_entry),
	      "near's lies in what only libfabric's shm needs");

TAILQ_HEAD(duo_rx_list, duo_rx);

struct duo_rx_pool {
	SLIST_HEAD(, duo_rx) free;
	uint32_t live;		/* entries in use */
	uint32_t capacity;	/* entries in all ranges */
	struct duo_rx *next;	/* first entry never used, in the last range */
	struct duo_rx *end;	/* end of the last range */
	struct duo_ep *ep;	/* endpoint of all entries */
	struct duo_ranges *known;	/* domain->rx_ranges */
	struct duo_rx *range[DUO_RX_RANGES];
	uint32_t ranges;
	bool refused;		/* the last attempt to grow failed */
};

/* Changes the state. No other function does. */
DUO_INLINE void duo_rx_become(struct duo_rx *rx, enum duo_rx_state state)
{
	assert(duo_rx_may(rx->state, state));
	rx->state = state;
}

/* Allocates no memory; the first use of an entry does. */
void duo_rx_pool_init(struct duo_rx_pool *pool, struct duo_ep *ep,
		      struct duo_ranges *known);
void duo_rx_pool_fini(struct duo_rx_pool *pool);
/* True if the pool has "count" free entries, perhaps after growing. */
bool duo_rx_pool_reserve(struct duo_rx_pool *pool, uint32_t count);
/* Returns an entry never used before; NULL: no memory, after a warning. */
struct duo_rx *duo_rx_first_use(struct duo_rx_pool *pool);
/*
 * Allocates space for count > 1 buffers of rx, which the caller writes. The
 * caller has called duo_rx_pool_reserve().
 */
struct duo_rx_buffers *duo_rx_extend(struct duo_rx_pool *pool,
				     struct duo_rx *rx, size_t count);
/* Frees the space of the buffers of rx, and the bounce buffer. */
void duo_rx_strip(struct duo_rx_pool *pool, struct duo_rx *rx);

#define DUO_RX_BYTE(what, field) \
	((uint8_t *) &(what))[offsetof(struct duo_rx, field) - \
			      offsetof(struct duo_rx, what)]

/* Initializes a free entry that the caller has unlinked. */
static inline struct duo_rx *duo_rx_begin(struct duo_rx_pool *pool,
					  struct duo_rx *rx)
{
	uint64_t what = 0;

	assert(rx->state == DUO_RX_FREE && !rx->bounced && !rx->lazy);
	DUO_RX_BYTE(what, wanted) = DUO_RX_WANTED;
	pool->live++;
	rx->what = what;
	return rx;
}

/* Returns "what" of a posted receive: one buffer, reported, not on the core. */
static inline uint64_t duo_rx_plain(enum duo_rx_kind kind)
{
	uint64_t what = 0;

	DUO_RX_BYTE(what, state) = DUO_RX_POSTED;
	DUO_RX_BYTE(what, kind) = kind;
	DUO_RX_BYTE(what, wanted) = DUO_RX_WANTED;
	DUO_RX_BYTE(what, count) = 1;
	return what;
}

/* True if rx has the properties in duo_rx_plain(), deferred or not. */
static inline bool duo_rx_is_plain(const struct duo_rx *rx,
				   enum duo_rx_kind kind)
{
	uint64_t what = 0;

	DUO_RX_BYTE(what, lazy) = UINT8_MAX;
	return !((rx->what ^ duo_rx_plain(kind)) & ~what);
}

/* Allocates from the free list, which must not be empty, and sets "what". */
DUO_INLINE struct duo_rx *duo_rx_alloc_plain(struct duo_rx_pool *pool,
					     uint64_t what)
{
	struct duo_rx *rx = SLIST_FIRST(&pool->free);

	assert(rx->state == DUO_RX_FREE && !rx->bounced && !rx->lazy);
	SLIST_REMOVE_HEAD(&pool->free, free_link);
	pool->live++;
	rx->what = what;
	return rx;
}

/* Returns an entry for duo_rx_release() to release; NULL: no memory. */
static inline struct duo_rx *duo_rx_alloc(struct duo_rx_pool *pool)
{
	struct duo_rx *rx = SLIST_FIRST(&pool->free);

	if (rx)
		SLIST_REMOVE_HEAD(&pool->free, free_link);
	else
		rx = duo_rx_first_use(pool);
	return rx ? duo_rx_begin(pool, rx) : NULL;
}

/* Releases an entry with at most one buffer and no bounce buffer. */
DUO_INLINE void duo_rx_release_plain(struct duo_rx_pool *pool,
				     struct duo_rx *rx)
{
	assert(!rx->bounced && rx->count <= 1 && !rx->lazy);
	duo_rx_become(rx, DUO_RX_FREE);
	pool->live--;
	SLIST_INSERT_HEAD(&pool->free, rx, free_link);
}

static inline void duo_rx_release(struct duo_rx_pool *pool, struct duo_rx *rx)
{
	assert(rx->state != DUO_RX_FREE);
	if (__builtin_expect(rx->bounced || rx->count > 1, 0))
		duo_rx_strip(pool, rx);
	duo_rx_release_plain(pool, rx);
}

static inline struct duo_rx *duo_rx_of_peer(struct fi_peer_rx_entry *entry)
{
	return (struct duo_rx *) ((char *) entry -
				  offsetof(struct duo_rx, peer));
}

static inline const struct iovec *duo_rx_iov(const struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.iov : &rx->iov;
}

/* Returns the core's descriptors of the buffers. */
static inline void **duo_rx_desc(struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.desc : &rx->desc;
}

/* Returns the size of all buffers, bytes. */
static inline size_t duo_rx_size(const struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.size : rx->iov.iov_len;
}

/* Sets a malloc'ed bounce buffer, which is freed with the entry. */
static inline void duo_rx_set_bounce(struct duo_rx *rx, void *bounce)
{
	assert(rx->state == DUO_RX_LOCAL && !rx->bounced);
	rx->bounce = bounce;
	rx->bounced = true;
}

/* Returns the flags of a completion of rx, fi_cq(3). */
static inline uint64_t duo_rx_cq_flags(const struct duo_rx *rx)
{
	return FI_RECV | (rx->kind == DUO_TAGGED ? FI_TAGGED : FI_MSG);
}

#endif /* DUO_RX_H */
