/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The shared memory wire: a ring per QP in a file named by GID and QPN.  Any
 * process may produce, the owner consumes.  A producer takes the slot at
 * head with a compare-and-swap, fills it and publishes it by storing its
 * position + 1 in seq (release); the consumer gives it back by storing
 * position + slots.  The owner holds a lock on the file as long as it lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softefa.h"
#include "wire_shm.h"

#define SE_RING_MAGIC 0x53454652u
#define SE_STUCK_NS 2000000000ull

struct se_shm_slot {
	_Atomic uint64_t seq;
	_Atomic int32_t owner; /* pid of the producer, for a post-mortem */
	uint32_t pad;
	struct se_pkt pkt;
	uint8_t data[SE_SHM_INLINE];
};
_Static_assert(sizeof(struct se_shm_slot) == 256, "whole cache lines");

struct se_ring {
	_Atomic uint32_t magic; /* stored last, when the rest is valid */
	uint32_t slots, block;
	_Atomic uint32_t dead;
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t answered; /* below: acknowledged */
	_Alignas(64) _Atomic uint32_t armed;
	_Alignas(64) struct se_shm_slot slot[];
};

struct se_shm_qp {
	struct se_ring *ring;
	size_t size;
	int fd;
	int32_t pid;
	_Atomic uint64_t tail; /* written with qp->lock held */
	uint64_t stuck_tail, stuck_since;
	char path[288];
	struct se_doorbell bell;
};

struct se_shm_peer {
	struct se_ring *ring;
	size_t size;
	int fd;
	struct se_doorbell_tx bell;
};

static size_t se_ring_size(uint32_t slots, uint32_t block)
{
	return sizeof(struct se_ring) +
	       (size_t)slots * (sizeof(struct se_shm_slot) + block);
}

/* Payloads that do not fit the slot have a block each behind the slots. */
static uint8_t *se_ring_data(struct se_ring *ring, uint64_t pos, uint32_t len)
{
	uint64_t index = pos & (ring->slots - 1);

	if (len <= SE_SHM_INLINE)
		return ring->slot[index].data;
	return (uint8_t *)&ring->slot[ring->slots] + index * ring->block;
}

static void se_shm_path(char *path, size_t size, const union ibv_gid *gid,
			uint32_t qpn)
{
	char hex[33];

	se_gid_hex(gid, hex);
	snprintf(path, size, "%s/q-%s-%u", se_cfg.dir, hex, qpn);
}

/* Creates and locks the file of one number; EEXIST: try another number. */
static int se_shm_create(struct se_shm_qp *sq)
{
	int ret;

	sq->fd = open(sq->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (sq->fd < 0)
		return errno;
	ret = se_lock_file(sq->fd);
	if (!ret)
		return 0;
	close(sq->fd);
	return ret == ESTALE ? EEXIST : ret;
}

static int se_shm_number(struct se_qp *qp, struct se_shm_qp *sq)
{
	static _Atomic uint32_t counter;
	uint32_t i, qpn;
	int ret = EEXIST;

	for (i = 0; i < 100000 && ret == EEXIST; i++) {
		qpn = (uint32_t)se_fault_hash(SE_FAULT_COUNT,
					      (uint32_t)getpid(), counter++,
					      (uint32_t)se_now());
		qpn = 1 + qpn % 0xfffe;
		if (!se_qpn_take(qp->dev, qpn))
			continue;
		se_shm_path(sq->path, sizeof(sq->path), &qp->dev->gid, qpn);
		ret = se_shm_create(sq);
		if (!ret) {
			qp->ex.qp_base.qp_num = qpn;
			return 0;
		}
		qp->dev->qpn_taken[qpn & qp->dev->qpn_mask] = 0;
	}
	return ret;
}

static int se_ring_map(struct se_shm_qp *sq)
{
	uint32_t i, slots = se_roundup_pow2(se_cfg.slots);
	uint32_t block = (se_cfg.mtu + 63) & ~63u;
	struct se_ring *ring;
	int fd, ret;

	sq->size = se_ring_size(slots, block);
	/* Takes the memory now: later there is SIGBUS instead of ENOSPC. */
	ret = posix_fallocate(sq->fd, 0, (off_t)sq->size);
	if (ret) {
		fprintf(stderr, "softefa: %s: %zu bytes for a ring: %s; "
			"make room there, or set SOFTEFA_SLOTS lower or "
			"SOFTEFA_DIR elsewhere\n",
			se_cfg.dir, sq->size, strerror(ret));
		return ENOMEM;
	}
	/*
	 * Not through sq->fd: a forked child inherits the mapping, and with it
	 * would hold the lock of the file that is mapped.
	 */
	fd = open(sq->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	ring = mmap(NULL, sq->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ret = errno;
	close(fd);
	if (ring == MAP_FAILED)
		return ret;
	ring->slots = slots;
	ring->block = block;
	for (i = 0; i < slots; i++)
		ring->slot[i].seq = i;
	sq->ring = ring;
	return 0;
}

static int se_shm_open(struct se_qp *qp)
{
	struct se_shm_qp *sq = calloc(1, sizeof(*sq));
	int ret;

	if (!sq)
		return ENOMEM;
	ret = se_shm_number(qp, sq);
	if (ret)
		goto err_free;
	ret = se_ring_map(sq);
	if (ret)
		goto err_remove;
	ret = se_doorbell_open(&sq->bell, sq->path,
			       qp->rcq->ex.channel || qp->scq->ex.channel);
	if (ret)
		goto err_unmap;
	se_fork_add(sq->fd);
	sq->pid = (int32_t)getpid();
	qp->wire_qp = sq;
	/* Pairs with the acquire in se_shm_peer_map(). */
	atomic_store_explicit(&sq->ring->magic, SE_RING_MAGIC,
			      memory_order_release);
	return 0;

err_unmap:
	munmap(sq->ring, sq->size);
err_remove:
	unlink(sq->path);
	close(sq->fd);
	qp->dev->qpn_taken[qp->ex.qp_base.qp_num & qp->dev->qpn_mask] = 0;
err_free:
	free(sq);
	return ret;
}

/* At exit: other threads may still be polling, so the mappings stay. */
static void se_shm_leave(struct se_qp *qp)
{
	struct se_shm_qp *sq = qp->wire_qp;

	atomic_store(&sq->ring->dead, 1);
	unlink(sq->path);
	se_doorbell_unlink(&sq->bell);
}

static void se_shm_close(struct se_qp *qp)
{
	struct se_shm_qp *sq = qp->wire_qp;

	se_shm_leave(qp);
	qp->wire_qp = NULL;
	se_doorbell_close(&sq->bell);
	munmap(sq->ring, sq->size);
	se_fork_close(sq->fd);
	free(sq);
}

static void se_shm_flow_close(struct se_qp *qp, struct se_flow *flow)
{
	struct se_shm_peer *peer = flow->wire_flow;

	if (!peer)
		return;
	flow->wire_flow = NULL;
	se_doorbell_tx_close(&peer->bell);
	munmap(peer->ring, peer->size);
	close(peer->fd);
	free(peer);
}

/* 0, EAGAIN (the owner is still setting it up) or another errno */
static int se_shm_peer_map(struct se_shm_peer *peer, const char *path)
{
	struct se_ring *ring;
	struct stat st;
	int ret = EAGAIN;

	peer->fd = open(path, O_RDWR | O_CLOEXEC);
	if (peer->fd < 0)
		return errno;
	if (fstat(peer->fd, &st) || (size_t)st.st_size < sizeof(*ring))
		goto err_close;
	peer->size = (size_t)st.st_size;
	ring = mmap(NULL, peer->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		    peer->fd, 0);
	if (ring == MAP_FAILED) {
		ret = errno;
		goto err_close;
	}
	if (atomic_load_explicit(&ring->magic, memory_order_acquire) !=
		    SE_RING_MAGIC ||
	    se_ring_size(ring->slots, ring->block) > peer->size)
		goto err_unmap;
	peer->ring = ring;
	return 0;

err_unmap:
	munmap(ring, peer->size);
err_close:
	close(peer->fd);
	return ret;
}

/* 0, -EAGAIN or the status of a peer that cannot be reached */
static int se_shm_connect(struct se_qp *qp, struct se_flow *flow)
{
	struct se_shm_peer *peer = calloc(1, sizeof(*peer));
	char path[288];
	int ret;

	if (!peer)
		return -EAGAIN;
	se_shm_path(path, sizeof(path), &flow->gid, flow->qpn);
	ret = se_shm_peer_map(peer, path);
	if (!ret) {
		se_doorbell_tx_init(&peer->bell, path);
		flow->wire_flow = peer;
		return 0;
	}
	free(peer);
	if (ret == EAGAIN)
		return -EAGAIN;
	if (ret == ENOENT && !se_gid_known(&flow->gid) &&
	    !se_gid_equal(&flow->gid, &qp->dev->gid))
		return SE_UNREACH_REMOTE;
	return SE_REMOTE_BAD_DEST_QPN;
}

static int se_shm_tx(struct se_qp *qp, struct se_flow *flow,
		     const struct se_pkt *pkt, const struct iovec *iov,
		     int iov_count, uint64_t *cookie)
{
	struct se_shm_peer *peer = flow->wire_flow;
	struct se_shm_slot *slot;
	struct se_ring *ring;
	uint8_t *data;
	uint64_t pos;
	int64_t diff;
	int i, ret;

	if (!peer) {
		ret = se_shm_connect(qp, flow);
		if (ret)
			return ret;
		peer = flow->wire_flow;
	}
	ring = peer->ring;
	if (atomic_load_explicit(&ring->dead, memory_order_relaxed))
		return SE_REMOTE_BAD_DEST_QPN;
	if (pkt->len > SE_SHM_INLINE && pkt->len > ring->block)
		return SE_REMOTE_BAD_LENGTH; /* peers with different MTUs */
	pos = atomic_load_explicit(&ring->head, memory_order_relaxed);
	for (;;) {
		slot = &ring->slot[pos & (ring->slots - 1)];
		diff = (int64_t)(atomic_load_explicit(&slot->seq,
						      memory_order_acquire) -
				 pos);
		if (diff < 0)
			return -EAGAIN;
		if (diff > 0)
			pos = atomic_load_explicit(&ring->head,
						   memory_order_relaxed);
		else if (atomic_compare_exchange_weak(&ring->head, &pos,
						      pos + 1))
			break;
	}
	atomic_store_explicit(&slot->owner,
			      ((struct se_shm_qp *)qp->wire_qp)->pid,
			      memory_order_relaxed);
	slot->pkt = *pkt;
	data = se_ring_data(ring, pos, pkt->len);
	for (i = 0; i < iov_count; i++) {
		memcpy(data, iov[i].iov_base, iov[i].iov_len);
		data += iov[i].iov_len;
	}
	*cookie = pos;
	atomic_store_explicit(&slot->seq, pos + 1, memory_order_release);
	/* Pairs with the fence in se_shm_arm(): one sees the other. */
	if (se_doorbell_used(&peer->bell)) {
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load_explicit(&ring->armed, memory_order_relaxed) &&
		    atomic_exchange(&ring->armed, 0))
			se_doorbell_ring(&peer->bell);
	}
	return 0;
}

static bool se_shm_rx_pending(struct se_qp *qp)
{
	struct se_shm_qp *sq = qp->wire_qp;
	struct se_ring *ring = sq->ring;
	/* Without the lock it may be stale: whoever changed it is at work. */
	uint64_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);

	return atomic_load_explicit(&ring->slot[tail & (ring->slots - 1)].seq,
				    memory_order_relaxed) == tail + 1 ||
	       atomic_load_explicit(&ring->answered, memory_order_relaxed) !=
		       tail;
}

/*
 * A producer that is killed between taking a slot and publishing it would stop
 * the ring for ever.  True when that has happened: the slot is to be skipped.
 */
static bool se_shm_stuck(struct se_shm_qp *sq, struct se_shm_slot *slot,
			 uint64_t tail)
{
	uint64_t now;
	int32_t pid;

	if (atomic_load_explicit(&sq->ring->head, memory_order_relaxed) ==
	    tail)
		return false;
	now = se_now();
	if (sq->stuck_tail != tail || !sq->stuck_since) {
		sq->stuck_tail = tail;
		sq->stuck_since = now;
		return false;
	}
	if (now - sq->stuck_since < SE_STUCK_NS)
		return false;
	sq->stuck_since = now;
	pid = atomic_load_explicit(&slot->owner, memory_order_relaxed);
	return pid && kill(pid, 0) && errno == ESRCH;
}

static int se_shm_rx(struct se_qp *qp, int budget)
{
	struct se_shm_qp *sq = qp->wire_qp;
	uint64_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	struct se_ring *ring = sq->ring;
	struct se_shm_slot *slot;
	int count;

	/* What earlier calls have taken has been answered since. */
	if (atomic_load_explicit(&ring->answered, memory_order_relaxed) != tail)
		atomic_store_explicit(&ring->answered, tail,
				      memory_order_release);
	for (count = 0; count < budget; count++) {
		slot = &ring->slot[tail & (ring->slots - 1)];
		if (atomic_load_explicit(&slot->seq, memory_order_acquire) !=
		    tail + 1) {
			if (!se_shm_stuck(sq, slot, tail))
				break;
		} else if (slot->pkt.len <= ring->block) {
			se_srd_rx(qp, &slot->pkt,
				  se_ring_data(ring, tail, slot->pkt.len));
		}
		atomic_store_explicit(&slot->seq, tail + ring->slots,
				      memory_order_release);
		atomic_store_explicit(&sq->tail, ++tail, memory_order_relaxed);
	}
	return count;
}

static bool se_shm_unread(struct se_qp *qp, struct se_flow *flow,
			  uint64_t cookie)
{
	struct se_shm_peer *peer = flow->wire_flow;
	struct se_shm_qp *sq = qp->wire_qp;

	if (!peer)
		return false;
	/* In this order: what was answered is in our ring, if not read yet. */
	return atomic_load_explicit(&peer->ring->answered,
				    memory_order_acquire) <= cookie ||
	       atomic_load_explicit(&sq->ring->head, memory_order_relaxed) !=
		       sq->tail;
}

/* A QP that was destroyed says so; a process that was killed holds no lock. */
static enum se_status se_shm_alive(struct se_qp *qp, struct se_flow *flow)
{
	struct se_shm_peer *peer = flow->wire_flow;

	if (!peer)
		return SE_OK;
	if (atomic_load(&peer->ring->dead) || se_file_orphaned(peer->fd))
		return SE_REMOTE_BAD_DEST_QPN;
	return SE_OK;
}

static int se_shm_event_fd(struct se_qp *qp)
{
	return ((struct se_shm_qp *)qp->wire_qp)->bell.fd;
}

static void se_shm_arm(struct se_qp *qp)
{
	struct se_shm_qp *sq = qp->wire_qp;

	se_doorbell_clear(&sq->bell);
	atomic_store(&sq->ring->armed, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (se_shm_rx_pending(qp) && atomic_exchange(&sq->ring->armed, 0))
		se_doorbell_self(&sq->bell);
}

const struct se_wire se_wire_shm = {
	.name = "shm",
	.rto_us = 1000,
	.window = SE_WINDOW,
	.reports_death = true,
	.open = se_shm_open,
	.close = se_shm_close,
	.leave = se_shm_leave,
	.tx = se_shm_tx,
	.rx = se_shm_rx,
	.rx_pending = se_shm_rx_pending,
	.unread = se_shm_unread,
	.alive = se_shm_alive,
	.flow_close = se_shm_flow_close,
	.event_fd = se_shm_event_fd,
	.arm = se_shm_arm,
};
