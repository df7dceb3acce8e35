/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A completion queue (CQ) for both paths: the core, which is the provider that
 * ofi_duo wraps, and the local transport (docs/completions.md). A *poll* of the
 * CQ is a read that polls the local transport, and in some cases the core. A
 * *local event* is a message or completion that a poll of the local transport
 * has found. Lock: that of the CQ's group (obj/group.h).
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
#include "obj/group.h"
#include "obj/waiter.h"
#include "queue/ring.h"

#define DUO_CORE_BATCH 16	/* maximum entries per read of the core's CQ */

struct duo_domain;
struct duo_ep;
struct duo_rx;

/* bits of duo_cq.attention; if one is set, reads must take the slow path */
enum {
	DUO_CQ_ENTRIES = 1, /* `ring` has entries, or `errs` has errors */
	/* the group has work for polls: duo_group.pending or duo_group.lazy */
	DUO_CQ_DEFERRED = 2,
	/*
	 * the CQ has no local transport or uses shm; or fi_close() of an
	 * endpoint of the CQ is running
	 */
	DUO_CQ_OTHERS = 4,
};

/*
 * Field order: a send uses the first cache line. A read on the fast path uses
 * two cache lines.
 */
struct duo_cq {
	struct fid_cq cq_fid;
	struct duo_ring ring;
	uint32_t attention; /* DUO_CQ_* bits; 0: reads poll only near's rings */
	/* number of fast-path reads until a read must call duo_cq_progress() */
	uint32_t left;
	struct duo_group *group;
	LIST_HEAD(, duo_ep) rx_eps; /* endpoints that receive with this CQ */
	enum fi_cq_format format;
	uint32_t local_idle;	/* polls since the last local event */
	/*
	 * core poll budget: number of next polls of the CQ that must also poll
	 * the core. Senders set it without the lock, and a concurrent poll may
	 * overwrite their value.
	 */
	atomic_uint core_poll_budget;
	bool hidden;	/* hidden CQ (ep->own_cq): drops all entries */
	bool several;	/* more than one endpoint is bound to the CQ */
	bool asleep;	/* a thread may be asleep; a new entry must wake it */
	/* array of the running fi_cq_read(), which gets new entries */
	struct duo_sink sink;
	struct duo_domain *domain;
	struct fid_cq *path_cq[FI_DUO_PATH_COUNT];
	/* local transport; NULL: none */
	const struct duo_transport *peer;
	struct duo_err_list errs;
	/* number of fast-path reads that duo_cq_grant() has permitted */
	uint32_t granted;
	/*
	 * value of local_idle above which each poll also polls the core;
	 * DUO_CORE_UNUSED: the core is unused
	 */
	uint32_t local_busy;
	uint32_t local_events;	/* local events in the current poll */
	uint32_t core_skip;	/* polls since the last poll of the core */
	/*
	 * number of reads that may still return entries of `ring` without a
	 * poll, before a read must call duo_cq_ring_poll()
	 */
	uint32_t ring_left;
	/* n: every n-th of the reads that return `ring` entries polls first */
	uint32_t ring_every;
	uint64_t ring_ms;	/* time of the last duo_cq_ring_poll(), ms */
	/* libfabric's shm writes completions to this CQ: fi_peer(3) */
	struct fid_peer_cq peer_cq;
	LIST_HEAD(, duo_ep) tx_eps; /* endpoints that only send with this CQ */
	uint64_t core_polls;
	/*
	 * Aging posts deferred receives to the core at intervals (core/post.c).
	 * To measure the time, some polls read the clock, but only while there
	 * are deferred receives that are not due:
	 */
	uint32_t clock_in;	/* polls until the next read of the clock */
	uint32_t clock_every;	/* polls between two reads of the clock */
	uint64_t clock_us;	/* time of the last read of the clock, us */
	/* fi_cq_signal() was called: a blocking read must return */
	atomic_bool signaled;
	/*
	 * buffer for the sources of the core's completions while sink.src is
	 * NULL: the application's read has no array for sources, but ofi_duo
	 * always reads them from the core's CQ
	 */
	fi_addr_t core_src[DUO_CORE_BATCH];
	/* time of the next check for oversubscribed CPUs: duo_cq_yield(), ms */
	uint64_t oversub_ms;
	bool oversubscribed;	/* result of the last such check */
	struct duo_waiter waiter;	/* wait object, see cq/wait.c */
	bool core_signals;	/* the core's CQ can wake a thread */
	int err_path; /* path of the last error read, for fi_cq_strerror() */
	uint8_t err_data[DUO_ERR_DATA_MAX];
	atomic_int refs;
	LIST_ENTRY(duo_cq) link; /* in domain->cqs, while `group` is &own */
	struct duo_group own __attribute__((aligned(DUO_LINE)));
};

static inline struct duo_cq *duo_cq_of(struct fid_cq *cq_fid)
{
	return duo_container_of(cq_fid, struct duo_cq, cq_fid);
}

/*
 * Sets cq->asleep. While this flag is true, new entries take the slow path,
 * which wakes the sleeping thread.
 */
static inline void duo_cq_set_asleep(struct duo_cq *cq, bool asleep)
{
	cq->asleep = asleep;
	duo_ring_gate(&cq->ring, asleep || cq->hidden);
}

void duo_cq_wake(struct duo_cq *cq);
static inline void duo_cq_wake_sleeper(struct duo_cq *cq)
{
	if (__builtin_expect(cq->asleep, false))
		duo_cq_wake(cq);
}

/* Slow path of duo_cq_push(): cq->ring is full or gated (queue/ring.h). */
void duo_cq_push_slow(struct duo_cq *cq, const struct fi_cq_tagged_entry *entry,
		      fi_addr_t src);
/*
 * Slow path of duo_cq_push_sent(): cq->ring is full or gated, or a running read
 * has space for the entry (cq->sink).
 */
void duo_cq_push_sent_slow(struct duo_cq *cq, void *context, uint64_t flags);
static inline void duo_cq_push(struct duo_cq *cq,
			       const struct fi_cq_tagged_entry *entry,
			       fi_addr_t src)
{
	struct fi_cq_tagged_entry slow;

	if (cq->sink.space) {
		duo_sink_put(&cq->sink, cq->format, entry, src);
	} else if (__builtin_expect(duo_ring_full(&cq->ring), false)) {
		/* passes a copy, so that *entry can stay in registers */
		slow = *entry;
		duo_cq_push_slow(cq, &slow, src);
	} else {
		cq->attention |= DUO_CQ_ENTRIES;
		duo_ring_put(&cq->ring, entry, src);
	}
}

/*
 * True if cq->ring has space. The caller must ensure that cq->sink.space is 0:
 * otherwise a read is running, whose array must get the entry.
 */
DUO_INLINE bool duo_cq_accepts(const struct duo_cq *cq)
{
	return !duo_ring_full(&cq->ring);
}

/* Writes a send's completion to cq->ring, which must have space. */
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
	if (__builtin_expect(cq->sink.space || !duo_cq_accepts(cq), false))
		duo_cq_push_sent_slow(cq, context, flags);
	else
		duo_cq_put_sent(cq, context, flags);
}

void duo_cq_push_err(struct duo_cq *cq, const struct fi_cq_err_entry *entry,
		     int path);
/* Pushes an error of ofi_duo itself. src: the sender, or FI_ADDR_UNSPEC. */
void duo_cq_push_own_err(struct duo_cq *cq, void *context, uint64_t flags,
			 uint64_t tag, fi_addr_t src, int err);
/* Pushes an error of the receive rx, and adds 1 to duo_ep_rx.failed. */
void duo_cq_push_rx_err(struct duo_cq *cq, const struct duo_rx *rx, int err);

/*
 * Sets the core poll budget to its maximum, because the core may soon have
 * entries. Lock: none.
 */
#define DUO_CORE_POLL_BUDGET 1024 /* polls */
static inline void duo_cq_core_active(struct duo_cq *cq)
{
	atomic_store_explicit(&cq->core_poll_budget, DUO_CORE_POLL_BUDGET,
			      memory_order_relaxed);
}

/*
 * True if the core is unused: ofi_duo expects no message over the core, and
 * polls it only while the AV of an endpoint of the CQ is empty
 * (docs/matching.md, "An unused core").
 */
#define DUO_CORE_UNUSED UINT32_MAX
static inline bool duo_cq_core_unused(const struct duo_cq *cq)
{
	return cq->local_busy == DUO_CORE_UNUSED;
}

#endif /* DUO_OBJ_CQ_H */
