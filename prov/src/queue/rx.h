/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Receive entries: "Objects and lifetimes" in docs/objects.md. An entry stands
 * for a receive, a local message that waits for its receive, or a peek. Some
 * receives have further entries: owner entries, sub-receives and second entries
 * (enum duo_rx_state). Only memory limits the number of entries: with a lower
 * limit, correct MPI programs could hang. The core writes the first of the four
 * cache lines of an entry. A match with a local message uses the last two.
 * Lock: the group's.
 *
 * An *unresolved* message is a local message with a sender that has no fi_addr
 * yet, or a local message that arrived while such a message waited. Before
 * ofi_duo matches it, ofi_duo looks up the addresses of the AV again. A
 * *deferred* receive is in ofi_duo's posted queue, but not yet posted to the
 * core. The other terms: docs/glossary.md, "Receiving".
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
#include "near/near.h"
#include "queue/ranges.h"

#define DUO_IOV_LIMIT 4 /* maximum number of buffers of a receive */
/* number of entries in the first range of a pool */
#define DUO_RX_FIRST (1U << 14)
/* maximum number of ranges of a pool: about 2^30 entries in all of them */
#define DUO_RX_RANGES 16

/* State of an entry. Diagram of the changes: docs/matching.md. */
enum duo_rx_state {
	DUO_RX_FREE,
	DUO_RX_POSTED,		/* receive in the posted queue */
	DUO_RX_LOCAL, /* receive that the local transport fills and completes */
	/* receive that the core has matched, or that the core cannot cancel */
	DUO_RX_CORE,
	/* receive for which ofi_duo has called the core's fi_cancel() */
	DUO_RX_CANCELING,
	DUO_RX_CANCELED, /* receive that the core has reported as canceled */
	DUO_RX_PEEK,	/* FI_PEEK that the core has not completed */
	DUO_RX_ARRIVING,	/* local message that is in no queue yet */
	DUO_RX_UNEXP,		/* local message in the unexpected queue */
	/* unresolved message, or local message that arrived in fi_close() */
	DUO_RX_UNRESOLVED,
	DUO_RX_CLAIMED,	/* local message claimed by FI_PEEK | FI_CLAIM */
	DUO_RX_CORE_CLAIMED,	/* core message claimed by FI_PEEK | FI_CLAIM */
	/*
	 * receive that has ended; its entry must not be used again yet, because
	 * the core may report the receive once more
	 */
	DUO_RX_RETIRED,
	DUO_RX_OWNER,	/* owner entry of a multi-receive buffer */
	/* remainder of a multi-receive buffer that is not posted yet */
	DUO_RX_READY,
	/* additional entry of a receive with several buffers: lists them */
	DUO_RX_MORE,
	DUO_RX_STATES
};

/* duo_rx_next[state] has the bit 1 << next for each state that may follow. */
extern const uint32_t duo_rx_next[DUO_RX_STATES];

static inline bool duo_rx_may(enum duo_rx_state from, enum duo_rx_state to)
{
	return duo_rx_next[from] & 1U << to;
}

enum duo_rx_kind {
	DUO_MSG,
	DUO_TAGGED,
	DUO_KIND_COUNT
};

enum duo_rx_wanted {
	DUO_RX_UNWANTED,	/* no completion */
	DUO_RX_WANTED,		/* a completion */
	DUO_RX_WANTED_DEVICE,	/* a completion; buffers may be device memory */
};

/* Time until which ofi_duo delays the post of a receive to the core. */
enum duo_rx_lazy {
	DUO_LAZY_NONE,		/* no delay: neither deferred nor blocked */
	DUO_LAZY_DUE,		/* until the next poll */
	/*
	 * until the local transport is idle; during local traffic, until
	 * duo_cq_age() finds that the receive has waited too long (aging)
	 */
	DUO_LAZY_WAITS,
	/* until an earlier multi-receive buffer is used up or canceled */
	DUO_LAZY_BLOCKED,
};

struct duo_ep;

/* A message over near that is unexpected, or that near is receiving. */
struct duo_near_msg {
	struct near_peer *peer;	/* sender; this struct holds a reference */
	struct near_rndv rndv;
	void *payload;	/* message data; NULL: still in the sender's memory */
	/*
	 * The receive of this message is a sub-receive, and has ended. But
	 * ofi_duo must first report an earlier sub-receive, which also gets a
	 * message of this peer and has not ended yet.
	 */
	bool ended;
	bool device; /* NEAR_DEVICE: the message is in device memory */
	int err; /* valid if `ended`: 0, or the error (a positive FI_E*) */
};

/* Source and tag of the messages that a receive can match. */
struct duo_want {
	fi_addr_t addr;		/* FI_ADDR_UNSPEC: any source */
	uint64_t tag;
	uint64_t ignore; /* tag bits that are not compared; untagged: all */
};

/* All buffers of a receive that has more than one buffer. */
struct duo_rx_buffers {
	struct iovec iov[DUO_IOV_LIMIT];
	void *desc[DUO_IOV_LIMIT];
	size_t size;		/* sum of the lengths, bytes */
};

struct duo_rx {
	union {
		/*
		 * Receive on the core: the context that the core gets. Must be
		 * the first member, because duo_cq_rx() uses the address of
		 * this context as the address of the entry.
		 */
		struct fi_context2 core_ctx;
		/* local message; libfabric's shm accesses this member */
		struct fi_peer_rx_entry peer;
		/*
		 * Message over near. The members of `peer` before peer.context
		 * are valid; `arrival` replaces peer.context and all behind it.
		 */
		struct {
			char described[offsetof(struct fi_peer_rx_entry,
						context)];
			struct duo_near_msg arrival;
		};
		/* second entry (rx->more): the buffers of the receive */
		struct duo_rx_buffers buffers;
	};
	union {
		/* deferred or blocked receive: link in a list of ep->lazy */
		TAILQ_ENTRY(duo_rx) lazy_link;
		/* unexpected message: link in the index by_tag (match.h) */
		TAILQ_ENTRY(duo_rx) tag_link;
		/* bounce buffer for libfabric's shm: `bounce`, and its size */
		struct iovec bounce_iov;
		struct {	/* owner entry */
			uint32_t refs;		/* number of sub-receives */
			bool open; /* further messages can match the buffer */
			bool canceled;	/* by fi_cancel() or fi_close() */
			/* the sub-receives are never posted to the core */
			bool local_only;
		};
	};
	union {
		/* link in the queue or list that belongs to the state */
		TAILQ_ENTRY(duo_rx) link;
		SLIST_ENTRY(duo_rx) free_link;
	};
	void *context;			/* the application's context */
	uint64_t flags;			/* flags of the operation */
	union {
		/* receive: its addr, tag and ignore (below) as one struct */
		struct duo_want want;
		struct {
			/* receive: source that it names; message: its source */
			fi_addr_t addr;
			uint64_t tag;	/* tag of the receive or message */
			union {
				uint64_t ignore;
				/* matched receive: valid if `bounced` */
				void *bounce;
				/* message: its fetch, transport/near/fetch.c */
				struct near_rx_op *fetch;
			};
		};
	};
	union {
		struct {
			uint8_t state;	/* enum duo_rx_state */
			uint8_t kind;	/* enum duo_rx_kind */
			bool on_core;	/* posted to the core */
			uint8_t lazy;	/* enum duo_rx_lazy */
			uint8_t wanted;	/* enum duo_rx_wanted */
			/*
			 * new local message: duo_arrival_queue() must make it
			 * unresolved, because its sender has no fi_addr yet, or
			 * because such a message waits
			 */
			bool unresolved : 1;
			bool bounced : 1;	/* `bounce` is valid */
			/* number of buffers; above 1: `more` lists them */
			uint8_t count;
			bool multi; /* sub-receive of a multi-receive buffer */
		};
		uint64_t what;	/* all fields of the struct above as one word */
	};
	struct iovec iov;		/* the first or only buffer */
	void *desc;	/* the core's descriptor of the first buffer */
	uint64_t seq;	/* order number in the posted or unexpected queue */
	TAILQ_ENTRY(duo_rx) key_link;	/* link in an index (match.h) */
	struct duo_ep *ep;
	union {
		/* local message: sender's peer index; FI_ADDR_NOTAVAIL: none */
		fi_addr_t src_index;
		struct duo_rx *owner;	/* sub-receive: owner entry */
		struct duo_rx *more;	/* count > 1: second entry */
	};
} __attribute__((aligned(64)));

static_assert(sizeof(struct duo_rx) <= 256, "four cache lines");
static_assert(offsetof(struct duo_rx, arrival) +
	      sizeof(struct duo_near_msg) <= sizeof(struct fi_peer_rx_entry),
	      "a message of near is in memory that only libfabric's shm uses");

TAILQ_HEAD(duo_rx_list, duo_rx);

/*
 * Inserts rx into a list that is linked by `field`, in the order of seq: before
 * the first entry of the same kind with a higher seq. If there is no such
 * entry, inserts rx at the end.
 */
#define DUO_RX_INSERT(list, rx, field) do { \
	struct duo_rx *later_; \
	\
	TAILQ_FOREACH(later_, list, field) \
		if (later_->kind == (rx)->kind && later_->seq > (rx)->seq) \
			break; \
	if (later_) \
		TAILQ_INSERT_BEFORE(later_, rx, field); \
	else \
		TAILQ_INSERT_TAIL(list, rx, field); \
} while (0)

struct duo_rx_pool {
	SLIST_HEAD(, duo_rx) free;
	uint32_t live;		/* number of entries in use */
	uint32_t capacity;	/* number of entries in all ranges */
	/* first never used entry, in the last range; `end`: none */
	struct duo_rx *next;
	struct duo_rx *end;	/* end of the last range */
	struct duo_ep *ep;	/* endpoint that all entries belong to */
	/* &group->rx_ranges, which has the addresses of the pool's ranges */
	struct duo_ranges *known;
	struct duo_rx *range[DUO_RX_RANGES];
	uint32_t ranges;
	bool failed;		/* the last attempt to map a range has failed */
};

/* Changes the state of rx; asserts that duo_rx_next[] permits the change. */
DUO_INLINE void duo_rx_become(struct duo_rx *rx, enum duo_rx_state state)
{
	assert(duo_rx_may(rx->state, state));
	rx->state = state;
}

void duo_rx_pool_init(struct duo_rx_pool *pool, struct duo_ep *ep);
void duo_rx_pool_fini(struct duo_rx_pool *pool);
/*
 * Makes sure that `count` entries are free, so that the next `count`
 * allocations of entries succeed. False: there is no memory.
 */
bool duo_rx_pool_reserve(struct duo_rx_pool *pool, uint32_t count);
/* Adds an entry to an empty free list. False: no memory; logs the failure. */
bool duo_rx_pool_refill(struct duo_rx_pool *pool);
/*
 * Adds a second entry, rx->more, to the receive rx, which has `count` buffers
 * (at least 2). The caller must have reserved the entry by
 * duo_rx_pool_reserve(). Returns the list of buffers in the second entry, which
 * the caller must write.
 */
struct duo_rx_buffers *duo_rx_extend(struct duo_rx_pool *pool,
				     struct duo_rx *rx, size_t count);
/* Frees the second entry and the bounce buffer of rx, if rx has them. */
void duo_rx_strip(struct duo_rx_pool *pool, struct duo_rx *rx);

#define DUO_RX_BYTE(what, field) \
	((uint8_t *) &(what))[offsetof(struct duo_rx, field) - \
			      offsetof(struct duo_rx, what)]

/*
 * Returns the value of rx->what for a posted receive in the common case: one
 * buffer in host memory, a completion, neither deferred nor on the core.
 */
static inline uint64_t duo_rx_plain(enum duo_rx_kind kind)
{
	uint64_t what = 0;

	DUO_RX_BYTE(what, state) = DUO_RX_POSTED;
	DUO_RX_BYTE(what, kind) = kind;
	DUO_RX_BYTE(what, wanted) = DUO_RX_WANTED;
	DUO_RX_BYTE(what, count) = 1;
	return what;
}

/* True if rx->what equals duo_rx_plain(). Ignores rx->lazy. */
static inline bool duo_rx_is_plain(const struct duo_rx *rx,
				   enum duo_rx_kind kind)
{
	uint64_t what = 0;

	DUO_RX_BYTE(what, lazy) = UINT8_MAX;
	return !((rx->what ^ duo_rx_plain(kind)) & ~what);
}

/* Allocates an entry and sets rx->what. The free list must not be empty. */
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

/* Allocates an entry; duo_rx_release() frees it. NULL: no memory. */
static inline struct duo_rx *duo_rx_alloc(struct duo_rx_pool *pool)
{
	uint64_t what = 0;

	if (SLIST_EMPTY(&pool->free) && !duo_rx_pool_refill(pool))
		return NULL;
	DUO_RX_BYTE(what, wanted) = DUO_RX_WANTED;
	return duo_rx_alloc_plain(pool, what);
}

/* Frees an entry that has neither a bounce buffer nor a second entry. */
DUO_INLINE void duo_rx_release_plain(struct duo_rx_pool *pool,
				     struct duo_rx *rx)
{
	assert(!rx->bounced && rx->count <= 1 && !rx->lazy);
	duo_rx_become(rx, DUO_RX_FREE);
	pool->live--;
	SLIST_INSERT_HEAD(&pool->free, rx, free_link);
}

/* Frees an entry, with its bounce buffer and second entry if it has them. */
static inline void duo_rx_release(struct duo_rx_pool *pool, struct duo_rx *rx)
{
	assert(rx->state != DUO_RX_FREE);
	if (__builtin_expect(rx->bounced || rx->count > 1, 0))
		duo_rx_strip(pool, rx);
	duo_rx_release_plain(pool, rx);
}

static inline struct duo_rx *duo_rx_of_peer(struct fi_peer_rx_entry *entry)
{
	return duo_container_of(entry, struct duo_rx, peer);
}

static inline const struct iovec *duo_rx_iov(const struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.iov : &rx->iov;
}

static inline void **duo_rx_desc(struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.desc : &rx->desc;
}

/* Returns the sum of the lengths of all buffers, bytes. */
static inline size_t duo_rx_size(const struct duo_rx *rx)
{
	return rx->count > 1 ? rx->more->buffers.size : rx->iov.iov_len;
}

/*
 * Sets the bounce buffer of rx, which malloc() must have returned.
 * duo_rx_release() frees the bounce buffer.
 */
static inline void duo_rx_set_bounce(struct duo_rx *rx, void *bounce)
{
	assert(rx->state == DUO_RX_LOCAL && !rx->bounced);
	rx->bounce = bounce;
	rx->bounced = true;
}

/* Returns the flags for a completion of rx, see fi_cq(3). */
static inline uint64_t duo_rx_cq_flags(const struct duo_rx *rx)
{
	return FI_RECV | (rx->kind == DUO_TAGGED ? FI_TAGGED : FI_MSG);
}

#endif /* DUO_RX_H */
