/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A receive entry: a receive that the application posted, or a local message
 * that has come before its receive. Entries lie in ranges of addresses that
 * the domain knows (ranges.h), so a context that comes back from the core is
 * recognised by its address alone, and entries never move. An endpoint's next
 * range is twice as long as its last one; only memory limits them, since a
 * limit would hang programs that MPI permits.
 *
 * A receive of several buffers takes a second entry, in which they are.
 *
 * Cost: 256 bytes an entry, touched from the first use on; the first range is
 * 4 MiB of addresses; growing is advancing an index, and a system call a range.
 * The first cache line is the core's; a receive that a local message takes
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

/* Whether a success is reported, and if the buffers can be written directly. */
enum duo_rx_wanted {
	DUO_RX_UNWANTED,
	DUO_RX_WANTED,
	DUO_RX_STAGED,		/* wanted; some may be device memory */
};

/* In which list a posted receive waits for being given to the core. */
enum duo_rx_lazy {
	DUO_LAZY_NONE,
	DUO_LAZY_DUE,		/* for the next poll */
	DUO_LAZY_WAITS,		/* for idle polls */
	DUO_LAZY_BLOCKED,	/* for a multi-receive buffer before it */
};

struct duo_ep;

/* A message of near that waits, or is on its way in. */
struct duo_near_msg {
	struct near_peer *peer;	/* held */
	struct near_rndv rndv;
	void *payload;		/* NULL: its sender has it yet */
	bool ended;		/* but others have to precede it */
	int err;		/* of such a one */
};

/* All buffers of a receive that has more than one. */
struct duo_rx_buffers {
	struct iovec iov[DUO_IOV_LIMIT];
	void *desc[DUO_IOV_LIMIT];
	size_t size;		/* bytes, of all */
};

struct duo_rx {
	/*
	 * Must come first. The core has its context back before a local
	 * message takes the receive.
	 */
	union {
		struct fi_context2 core_ctx;
		struct fi_peer_rx_entry peer;	/* a local message; libfabric's
						 * shm reads and writes it */
		struct {			/* near's: what is in front of
						 * "context" there, and this */
			char described[offsetof(struct fi_peer_rx_entry,
						context)];
			struct duo_near_msg arrival;
		};
		struct duo_rx_buffers buffers;	/* of another entry */
	};
	union {
		TAILQ_ENTRY(duo_rx) lazy_link;	/* rx->lazy: not on the core */
		TAILQ_ENTRY(duo_rx) tag_link;	/* unexpected, in an index */
		struct iovec bounce_iov;	/* libfabric's shm has it */
		struct {			/* of the owner of pieces */
			uint32_t refs;		/* how many there are */
			bool open;		/* more messages fit */
			bool canceled;		/* by fi_cancel */
			bool local_only;	/* the core never has any */
		};
	};
	union {
		TAILQ_ENTRY(duo_rx) link; /* posted, unexpected or held */
		SLIST_ENTRY(duo_rx) free_link;
	};
	void *context;			/* the application's */
	uint64_t flags;			/* of the operation */
	fi_addr_t addr;			/* the source that is asked for; of a
					 * local message: its own */
	uint64_t tag;			/* likewise */
	union {
		uint64_t ignore;
		void *bounce;		/* rx->bounced: the message lands here,
					 * the receive is no longer posted */
	};
	union {
		struct {
			uint8_t state;	/* enum duo_rx_state */
			uint8_t kind;	/* enum duo_rx_kind */
			bool on_core;	/* the core has a copy */
			uint8_t lazy;	/* enum duo_rx_lazy */
			uint8_t wanted;	/* enum duo_rx_wanted */
			bool hold : 1;	/* arriving: to be held */
			bool bounced : 1;
			uint8_t count;	/* of buffers; > 1: rx->more */
			bool multi;	/* a piece of a buffer, see multi.h */
		};
		uint64_t what;		/* all of these at once */
	};
	struct iovec iov;		/* the first buffer */
	void *desc;			/* the core's, of it */
	uint64_t seq;			/* order in its queue */
	TAILQ_ENTRY(duo_rx) key_link;	/* in an index, see match.h */
	struct duo_ep *ep;
	union {
		fi_addr_t src_number;	/* unexpected: the peer's number for
					 * it, or FI_ADDR_NOTAVAIL */
		struct duo_rx *owner;	/* of a piece */
		struct duo_rx *more;	/* of several buffers: has them */
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
	struct duo_rx *next;	/* the last range's first that was never used */
	struct duo_rx *end;	/* of the last range */
	struct duo_ep *ep;	/* of all entries */
	struct duo_ranges *known;	/* the domain's */
	struct duo_rx *range[DUO_RX_RANGES];
	uint32_t ranges;
	bool refused;		/* the last attempt to grow has failed */
};

/* The only way to another state. */
DUO_INLINE void duo_rx_become(struct duo_rx *rx, enum duo_rx_state state)
{
	assert(duo_rx_may(rx->state, state));
	rx->state = state;
}

/* Takes no memory before the first entry. */
void duo_rx_pool_init(struct duo_rx_pool *pool, struct duo_ep *ep,
		      struct duo_ranges *known);
void duo_rx_pool_fini(struct duo_rx_pool *pool);
/* True if the next "count" entries need no further memory from then on. */
bool duo_rx_pool_reserve(struct duo_rx_pool *pool, uint32_t count);
/* An entry that was never used; NULL: no memory, after a warning. */
struct duo_rx *duo_rx_first_use(struct duo_rx_pool *pool);
/*
 * Gives rx room for several buffers, which the caller writes. The pool must have
 * an entry for them, see duo_rx_pool_reserve().
 */
struct duo_rx_buffers *duo_rx_extend(struct duo_rx_pool *pool,
				     struct duo_rx *rx, size_t count);
/* Takes that back, and the bounce buffer. */
void duo_rx_strip(struct duo_rx_pool *pool, struct duo_rx *rx);

#define DUO_RX_BYTE(what, field) \
	((uint8_t *) &(what))[offsetof(struct duo_rx, field) - \
			      offsetof(struct duo_rx, what)]

/* Off the list now. */
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

/* The what of a posted receive of one buffer, which reports and is ours alone. */
static inline uint64_t duo_rx_plain(enum duo_rx_kind kind)
{
	uint64_t what = 0;

	DUO_RX_BYTE(what, state) = DUO_RX_POSTED;
	DUO_RX_BYTE(what, kind) = kind;
	DUO_RX_BYTE(what, wanted) = DUO_RX_WANTED;
	DUO_RX_BYTE(what, count) = 1;
	return what;
}

/* Such a one; it may be in a list of those that the core gets later. */
static inline bool duo_rx_is_plain(const struct duo_rx *rx,
				   enum duo_rx_kind kind)
{
	uint64_t what = 0;

	DUO_RX_BYTE(what, lazy) = UINT8_MAX;
	return !((rx->what ^ duo_rx_plain(kind)) & ~what);
}

/* One that was used before, there is one; the caller says what it is. */
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

/* NULL: no memory. Released by duo_rx_release(). */
static inline struct duo_rx *duo_rx_alloc(struct duo_rx_pool *pool)
{
	struct duo_rx *rx = SLIST_FIRST(&pool->free);

	if (rx)
		SLIST_REMOVE_HEAD(&pool->free, free_link);
	else
		rx = duo_rx_first_use(pool);
	return rx ? duo_rx_begin(pool, rx) : NULL;
}

/* One of one buffer, which has no bounce buffer. */
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

/* The core's descriptors. */
static inline void **duo_rx_desc(struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.desc : &rx->desc;
}

/* Room in all buffers, bytes. */
static inline size_t duo_rx_size(const struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.size : rx->iov.iov_len;
}

/* A buffer of its own for the message, which ends with the entry. */
static inline void duo_rx_set_bounce(struct duo_rx *rx, void *bounce)
{
	assert(rx->state == DUO_RX_LOCAL && !rx->bounced);
	rx->bounce = bounce;
	rx->bounced = true;
}

/* What a completion of rx says that it is, fi_cq(3). */
static inline uint64_t duo_rx_cq_flags(const struct duo_rx *rx)
{
	return FI_RECV | (rx->kind == DUO_TAGGED ? FI_TAGGED : FI_MSG);
}

#endif /* DUO_RX_H */
