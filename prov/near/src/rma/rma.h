/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * One-sided operations of a port: reads, writes and atomics of the memory of
 * its peers, and its peers' of its own. It knows no libfabric. A layer above
 * link and proto, which call it through struct near_onesided. docs/near.md
 * has the protocol. Calls are serialised with the port's.
 */
#ifndef NEAR_RMA_RMA_H
#define NEAR_RMA_RMA_H

#include "proto/hot.h"
#include "rma/table.h"

enum near_verb {
	NEAR_WRITE,
	NEAR_READ,
	NEAR_ATOMIC,		/* without a result */
	NEAR_FETCH,
	NEAR_COMPARE,
	NEAR_VERBS,
	NEAR_EVENT = NEAR_VERBS, /* it was done by the peer itself */
};

#define NEAR_RMA_DATA 1u	/* near_rma_args.data is for the peer */
#define NEAR_RMA_FENCE 2u	/* after all before it have ended */
#define NEAR_RMA_COPY 4u	/* local buffers may be used again at once */
#define NEAR_RMA_BEHIND 8u	/* after the messages before it were taken */
#define NEAR_RMA_HOLD 16u	/* messages after it wait until it has ended */

#define NEAR_RMA_DONE 1		/* near_rma(): it has ended well */

/* Buffers on this side: where from for all but reads, where to for those. */
struct near_rma_bufs {
	const struct iovec *iov;
	size_t count;		/* NEAR_IOV_MAX at most */
};

struct near_rma_args {
	enum near_verb verb;
	uint32_t flags;
	uint64_t addr;		/* the peer's name for the first byte */
	uint64_t key;
	struct near_rma_bufs local;
	struct near_rma_bufs result;	/* of NEAR_FETCH and NEAR_COMPARE */
	struct near_rma_bufs compare;	/* of NEAR_COMPARE */
	size_t len;			/* bytes; of local, unless it has none */
	uint8_t op;			/* atomics: enum near_op, near_type */
	uint8_t type;
	uint64_t data;
	/* the owner's, for done(); about is 0 where that is not called */
	uint32_t about;
	void *cookie;
};

/* What a peer has done to our memory. */
struct near_rma_event {
	struct near_peer *peer;
	bool write;		/* or an atomic that fetches nothing */
	bool has_data;
	uint64_t data;
	uint64_t len;
};

struct near_rma_sink {
	/* An operation of ours that near_rma() left under way has ended. */
	void (*done)(void *ctx, struct near_peer *peer, void *cookie,
		     uint32_t about, int err);
	/* Told of what has data, and of all with near_rma_tell(). */
	void (*event)(void *ctx, const struct near_rma_event *event);
};

/*
 * Once per port, before its address is asked for, which says that it is. The
 * table is the caller's; it may serve several ports and lives longer than they
 * do. near_close() ends it.
 */
int near_rma_open(struct near_port *port, const struct near_rma_sink *sink,
		  struct near_table *table);
/* Peers tell of every read, or write, or both, from now on. */
void near_rma_tell(struct near_port *port, bool reads, bool writes);

/*
 * 0: done() will tell; NEAR_RMA_DONE: it has ended, done() is not called;
 * -EAGAIN: poll and try again. -EKEYREJECTED: the peer has no such region;
 * -EACCES: not this part of it, or not in this way: nothing was touched. Or
 * what near_send() returns. Operations to one peer take effect in order, and
 * messages that are sent after it arrive after it; what else is to keep to the
 * order of calls says so (NEAR_RMA_BEHIND, NEAR_RMA_HOLD, NEAR_RMA_FENCE).
 */
int near_rma(struct near_port *port, struct near_peer *peer,
	     const struct near_rma_args *args);
/*
 * What near_rma() would say of key and range, as far as it is known here.
 * -ENOENT: the peer's table cannot be looked into.
 */
int near_rma_check(struct near_port *port, struct near_peer *peer,
		   const struct near_rma_args *args);

/* Has it operations of ours that have not ended? */
bool near_rma_busy(const struct near_peer *peer);
/* Or messages. Then what is to be fenced waits. */
bool near_rma_fenced(const struct near_peer *peer);
/*
 * 0: the peer has taken and done all that was sent to it; -EAGAIN: poll, and
 * try again.
 */
int near_rma_quiet(struct near_port *port, struct near_peer *peer);

#endif /* NEAR_RMA_RMA_H */
