/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A completion queue: the ring that both paths write to, and the counts that
 * decide how often each path is polled. cq/ reads and polls; all layers push
 * completions. Lock: the domain's. Cost: a push copies 48 bytes.
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

/* duo_cq.attention: what a read must do besides polling near's rings. */
enum {
	DUO_CQ_ENTRIES = 1,	/* the ring has entries, or an error is due */
	DUO_CQ_CHORES = 2,	/* an endpoint has chores: duo_ep_chore() */
	DUO_CQ_OTHERS = 4,	/* the transport is not near, or a thread sleeps
				 * on a counter: duo_cq_attend() */
};

/* The fields that a poll accesses come first: four cache lines. */
struct duo_cq {
	struct fid_cq cq_fid;
	struct duo_domain *domain;
	uint32_t attention;	/* DUO_CQ_*; 0: a read polls only rings */
	uint32_t left;		/* fast-path reads until a full poll */
	uint32_t given;		/* left + fast reads not yet counted as polls */
	struct fid_cq *path_cq[FI_DUO_PATH_COUNT];
	const struct duo_transport *peer;	/* NULL: no local transport */
	bool hidden;			/* entries are dropped: ep->own_cq */
	bool several;			/* more than one endpoint is bound */
	bool asleep;	/* a thread may sleep on it; new entries wake it */
	struct duo_ring ring;
	struct duo_sink sink;		/* array of the read in progress */
	struct duo_err_list errs;
	enum fi_cq_format format;
	uint32_t local_idle;	/* polls since the last local event */
	uint32_t local_busy;	/* above this local_idle: always poll core */
	uint32_t local_events;	/* events of the current poll */
	uint32_t core_skip;	/* polls since the last poll of the core */
	uint32_t ring_left;	/* reads of the ring until one that polls */
	uint32_t ring_every;	/* reads of the ring per poll */
	uint64_t ring_ms;	/* time of the last poll by such a read, ms */
	atomic_uint core_poll_budget;	/* polls left that poll the core; a
					 * race may lose some */
	LIST_HEAD(, duo_ep) rx_eps;	/* endpoints that receive */
	struct fid_peer_cq peer_cq;	/* libfabric's shm writes to it */
	LIST_HEAD(, duo_ep) tx_eps;	/* endpoints that only send */
	uint64_t core_polls;
	/* reads of the clock while there are deferred receives: */
	uint32_t look_in;	/* polls until the next one */
	uint32_t look_every;	/* polls per read */
	uint64_t look_us;	/* time of the last one, us, monotonic */
	uint32_t slow;		/* late reads in a row */
	atomic_bool signaled;
	fi_addr_t core_src[DUO_CORE_BATCH]; /* replaces a src of NULL */
	struct duo_oversub_check oversub;	/* whether idle reads yield */
	struct duo_waiter waiter;	/* see cq/wait.c */
	bool core_signals;	/* the core's CQ can wake a thread */
	int core_fd;		/* the core CQ's descriptor; -1: none */
	int err_path;		/* path of the last error, for strerror */
	uint8_t err_data[DUO_ERR_DATA_MAX];
	atomic_int refs;
};

static inline struct duo_cq *duo_cq_of(struct fid_cq *cq_fid)
{
	return duo_container_of(cq_fid, struct duo_cq, cq_fid);
}

/* asleep: a thread sleeps on the CQ, or is about to; new entries wake it. */
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

/* Slow path of a push: a thread sleeps, the CQ is hidden, or the ring full. */
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
		rare = *entry;	/* *entry itself stays in registers */
		duo_cq_push_rare(cq, &rare, src);
	} else {
		cq->attention |= DUO_CQ_ENTRIES;
		duo_ring_put(&cq->ring, entry, src);
	}
}

/* True if a push outside of a read only writes an entry to the ring. */
DUO_INLINE bool duo_cq_takes(const struct duo_cq *cq)
{
	return !duo_ring_full(&cq->ring);
}

/* Writes the completion of a send; the caller has checked duo_cq_takes(). */
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
/* Pushes an error of ofi_duo. FI_ADDR_UNSPEC in src means no source. */
void duo_cq_push_own_err(struct duo_cq *cq, void *context, uint64_t flags,
			 uint64_t tag, fi_addr_t src, int err);
/* Pushes an error of a receive, and counts the receive as failed. */
void duo_cq_push_rx_err(struct duo_cq *cq, const struct duo_rx *rx, int err);

/* Renews the core poll budget: the core may soon have entries. Any thread. */
#define DUO_CORE_POLL_BUDGET 1024 /* polls */
static inline void duo_cq_core_active(struct duo_cq *cq)
{
	atomic_store_explicit(&cq->core_poll_budget, DUO_CORE_POLL_BUDGET,
			      memory_order_relaxed);
}

#endif /* DUO_OBJ_CQ_H */
