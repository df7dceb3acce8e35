/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A completion queue: the ring that both paths write into, and what decides
 * how often each is polled. cq/ reads and polls; whoever ends an operation
 * pushes. Under the domain's lock. Cost: a push is a copy of 48 bytes.
 */
#ifndef DUO_OBJ_CQ_H
#define DUO_OBJ_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"
#include "base/util.h"
#include "obj/oversub.h"
#include "obj/waiter.h"
#include "queue/ring.h"

#define DUO_CORE_BATCH 16	/* completions of one read of the core */

struct duo_domain;
struct duo_ep;
struct duo_rx;

/* duo_cq.attention: what a read has to do beside looking at near's rings. */
enum {
	DUO_CQ_ENTRIES = 1,	/* the ring has entries, or an error is due */
	DUO_CQ_CHORES = 2,	/* an endpoint has chores: duo_ep_chore() */
	DUO_CQ_OTHERS = 4,	/* another peer than near, or none; or somebody
				 * sleeps for a counter: duo_cq_attend() */
};

/* What a poll touches comes first: four cache lines. */
struct duo_cq {
	struct fid_cq cq_fid;
	struct duo_domain *domain;
	uint32_t attention;	/* DUO_CQ_*; 0: reads look at rings alone, */
	uint32_t left;		/* so many of them, until one that polls all */
	uint32_t given;		/* left, when that was last counted */
	struct fid_cq *path_cq[FI_DUO_PATH_COUNT];
	const struct duo_transport *peer;	/* NULL: the core carries all */
	bool hidden;			/* nobody reads it: ep->own_cq */
	bool several;			/* endpoints are bound to it */
	bool asleep;	/* maybe: what other threads do has to wake it */
	struct duo_ring ring;
	struct duo_sink sink;		/* of the read in progress */
	struct duo_err_list errs;
	enum fi_cq_format format;
	uint32_t local_idle;	/* polls since the last local event */
	uint32_t local_busy;	/* so many: the core is not worth each poll */
	uint32_t local_events;	/* of the current poll */
	uint32_t core_skip;	/* polls since the core's last one */
	uint32_t ring_left;	/* reads of the ring until one that polls, */
	uint32_t ring_every;	/* of so many, and when the last one did: */
	uint64_t ring_ms;
	atomic_uint core_poll_budget; /* polls that the core gets beside those;
				       * a race may lose some */
	LIST_HEAD(, duo_ep) rx_eps;	/* that receive into this CQ */
	struct fid_peer_cq peer_cq;	/* libfabric's shm writes here */
	LIST_HEAD(, duo_ep) tx_eps;	/* that only send */
	uint64_t core_polls;
	uint32_t look_in;	/* polls with lazy receives, until the clock
				 * is looked at again */
	uint32_t look_every;
	uint64_t look_us;	/* when it was, monotonic */
	uint32_t slow;		/* looks in a row that came late */
	atomic_bool signaled;
	fi_addr_t core_src[DUO_CORE_BATCH]; /* where nobody asks for it */
	struct duo_oversub_check oversub;	/* whether idle reads yield */
	struct duo_waiter waiter;	/* see cq/wait.c */
	bool core_signals;
	int core_fd;		/* the core's, in that case */
	int err_path;		/* whose strerror the last error needs */
	uint8_t err_data[DUO_ERR_DATA_MAX];
	atomic_int refs;
};

static inline struct duo_cq *duo_cq_of(struct fid_cq *cq_fid)
{
	return duo_container_of(cq_fid, struct duo_cq, cq_fid);
}

/* asleep: a thread sleeps on it, or is about to: what comes wakes it. */
static inline void duo_cq_set_asleep(struct duo_cq *cq, bool asleep)
{
	cq->asleep = asleep;
	duo_ring_gate(&cq->ring, asleep || cq->hidden);
}

void duo_cq_wake(struct duo_cq *cq);
static inline void duo_cq_rouse(struct duo_cq *cq)
{
	if (__builtin_expect(cq->asleep, false))
		duo_cq_wake(cq);
}

/* The reader sleeps, nobody reads, or the ring is full. */
void duo_cq_push_rare(struct duo_cq *cq, const struct fi_cq_tagged_entry *entry,
		      fi_addr_t src);
void duo_cq_push_sent_rare(struct duo_cq *cq, void *context, uint64_t flags);
static inline void duo_cq_push(struct duo_cq *cq,
			       const struct fi_cq_tagged_entry *entry,
			       fi_addr_t src)
{
	struct fi_cq_tagged_entry rare;

	if (cq->sink.room) {
		duo_sink_put(&cq->sink, cq->format, entry, src);
	} else if (__builtin_expect(duo_ring_full(&cq->ring), false)) {
		rare = *entry;	/* else it is in registers */
		duo_cq_push_rare(cq, &rare, src);
	} else {
		cq->attention |= DUO_CQ_ENTRIES;
		duo_ring_put(&cq->ring, entry, src);
	}
}

/* Outside of a read: does the ring take an entry, if there is any? Is that all? */
DUO_INLINE bool duo_cq_takes(const struct duo_cq *cq)
{
	return !duo_ring_full(&cq->ring);
}

/* The end of a send that reports; the ring takes it. */
DUO_INLINE void duo_cq_put_sent(struct duo_cq *cq, void *context,
				uint64_t flags)
{
	cq->attention |= DUO_CQ_ENTRIES;
	*duo_ring_next(&cq->ring) = (struct duo_ring_slot) {
		.entry = { .op_context = context, .flags = flags },
		.src = FI_ADDR_NOTAVAIL,
	};
}

static inline void duo_cq_push_sent(struct duo_cq *cq, void *context,
				    uint64_t flags)
{
	if (__builtin_expect(cq->sink.room || !duo_cq_takes(cq), false))
		duo_cq_push_sent_rare(cq, context, flags);
	else
		duo_cq_put_sent(cq, context, flags);
}

void duo_cq_push_err(struct duo_cq *cq, const struct fi_cq_err_entry *entry,
		     int path);
/* An error of our own; src: FI_ADDR_UNSPEC stands for none. */
void duo_cq_push_own_err(struct duo_cq *cq, void *context, uint64_t flags,
			 uint64_t tag, fi_addr_t src, int err);
/* Of a receive; it is counted. */
void duo_cq_push_rx_err(struct duo_cq *cq, const struct duo_rx *rx, int err);

/* The core has or may soon have something for this CQ. Any thread. */
#define DUO_CORE_POLL_BUDGET 1024 /* polls */
static inline void duo_cq_core_active(struct duo_cq *cq)
{
	atomic_store_explicit(&cq->core_poll_budget, DUO_CORE_POLL_BUDGET,
			      memory_order_relaxed);
}

#endif /* DUO_OBJ_CQ_H */
