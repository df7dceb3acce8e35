/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The shared memory wire: a ring (ring.h) per QP, in a file named by GID and
 * QPN, which the owner locks until it exits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softefa.h"
#include "wire_shm.h"

/* time until the owner checks whether a claimed slot's producer is alive, ns */
#define SE_STUCK_NS 100000000ull
#define SE_SLOTS_PER_BLOCK 8

struct se_shm_qp {
	struct se_ring *ring;
	size_t size;
	int fd;
	uint32_t id;
	_Atomic uint64_t tail; /* written with qp->lock held */
	uint64_t stuck_tail, stuck_since;
	char path[SE_SHM_PATH];
	struct se_doorbell bell;
};

/*
 * Creates and locks the file of a QP number. Returns 0, EEXIST if the number is
 * in use, or another errno.
 */
static int se_shm_create(struct se_shm_qp *sq)
{
	struct stat st;
	int ret;

	sq->fd = se_fork_open(sq->path, O_RDWR | O_CREAT | O_EXCL);
	if (sq->fd < 0)
		return errno;
	ret = se_lock_file(sq->fd);
	if (!ret && fstat(sq->fd, &st))
		ret = errno;
	if (!ret) {
		sq->id = se_shm_id(&st);
		return 0;
	}
	se_fork_close(sq->fd);
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
		se_shm_path(sq->path, &qp->dev->gid, qpn);
		ret = se_shm_create(sq);
		if (!ret) {
			qp->ex.qp_base.qp_num = qpn;
			return 0;
		}
		se_qpn_release(qp->dev, qpn);
	}
	return ret;
}

static int se_ring_map(struct se_shm_qp *sq)
{
	uint32_t slots = se_roundup_pow2(se_cfg.slots);
	uint32_t blocks = slots / SE_SLOTS_PER_BLOCK;
	struct se_ring *ring;
	int fd, ret;

	sq->size = se_ring_size(slots, blocks, se_cfg.mtu);
	/* allocate all pages now: a failure later would be SIGBUS */
	ret = posix_fallocate(sq->fd, 0, (off_t)sq->size);
	if (ret) {
		fprintf(stderr, "softefa: %s: %zu bytes for a ring: %s; "
			"free space there, set SOFTEFA_SLOTS lower, or "
			"set SOFTEFA_DIR to another file system\n",
			se_cfg.dir, sq->size, strerror(ret));
		return ENOMEM;
	}
	/*
	 * Map another descriptor than sq->fd: a forked child inherits the
	 * mapping, and would keep sq->fd's lock after this process has exited.
	 */
	fd = open(sq->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	ring = mmap(NULL, sq->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ret = errno;
	close(fd);
	if (ring == MAP_FAILED)
		return ret;
	se_ring_init(ring, slots, blocks, se_cfg.mtu);
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
	qp->wire_qp = sq;
	/* pairs with the acquire in se_ring_valid() */
	atomic_store_explicit(&sq->ring->magic, SE_RING_MAGIC,
			      memory_order_release);
	return 0;

err_unmap:
	munmap(sq->ring, sq->size);
err_remove:
	unlink(sq->path);
	se_fork_close(sq->fd);
	se_qpn_release(qp->dev, qp->ex.qp_base.qp_num);
err_free:
	free(sq);
	return ret;
}

/*
 * Removes the QP's files. The mappings stay, because other threads may still
 * poll while the process exits.
 */
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

static int se_shm_tx(struct se_qp *qp, struct se_flow *flow,
		     const struct se_pkt *pkt, const struct iovec *iov,
		     int iov_count, uint64_t *cookie)
{
	struct se_shm_peer *peer = flow->wire_flow;
	struct se_shm_qp *sq = qp->wire_qp;
	struct se_ring_slot *slot;
	struct se_ring *ring;
	uint8_t *data;
	uint64_t pos;
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
	if (pkt->len > se_ring_payload(ring))
		return SE_REMOTE_BAD_LENGTH; /* the peer has a smaller MTU */
	slot = se_ring_claim(ring, sq->id, pkt->len, &peer->block_hint, &pos);
	if (!slot)
		return -EAGAIN;
	slot->pkt = *pkt;
	data = se_ring_data(ring, slot, pkt->len);
	for (i = 0; i < iov_count; i++) {
		memcpy(data, iov[i].iov_base, iov[i].iov_len);
		data += iov[i].iov_len;
	}
	*cookie = pos;
	se_ring_publish(slot, pos);
	/*
	 * Store buffering with se_shm_arm(): this thread has stored the slot,
	 * then loads armed. se_shm_arm() stores armed, then loads the slot.
	 * Both have a full fence in between, so at least one of them rings the
	 * doorbell.
	 */
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
	/*
	 * The tail may be old if the caller lacks qp->lock. The slot of an old
	 * tail was consumed. Its state is not SE_RING_FREE: returns true.
	 */
	uint64_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);

	return se_ring_state(ring, tail) != SE_RING_FREE ||
	       atomic_load_explicit(&ring->answered, memory_order_relaxed) !=
		       tail;
}

/*
 * True if the slot's producer was killed after its claim. The caller must then
 * skip the slot, or the ring would stop forever. False: the caller must wait,
 * because the producer may still write the slot.
 */
static bool se_shm_stuck(struct se_shm_qp *sq, uint64_t tail)
{
	uint64_t now = se_now();
	uint32_t id;

	if (sq->stuck_tail != tail || !sq->stuck_since) {
		sq->stuck_tail = tail;
		sq->stuck_since = now;
		return false;
	}
	if (now - sq->stuck_since < SE_STUCK_NS)
		return false;
	sq->stuck_since = now;
	id = se_ring_claimant(sq->ring, tail);
	return id && !se_shm_id_alive(id);
}

static int se_shm_rx(struct se_qp *qp, int budget)
{
	struct se_shm_qp *sq = qp->wire_qp;
	uint64_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	struct se_ring *ring = sq->ring;
	struct se_ring_slot *slot;
	enum se_ring_state state;
	uint8_t *data;
	uint32_t len;
	int count;

	/* the ACKs for packets of earlier calls have been sent */
	if (atomic_load_explicit(&ring->answered, memory_order_relaxed) != tail)
		atomic_store_explicit(&ring->answered, tail,
				      memory_order_release);
	for (count = 0; count < budget; count++) {
		state = se_ring_state(ring, tail);
		if (state == SE_RING_FREE ||
		    (state == SE_RING_CLAIMED && !se_shm_stuck(sq, tail)))
			break;
		slot = se_ring_slot(ring, tail);
		len = state == SE_RING_READY ? slot->pkt.len : 0;
		data = se_ring_data(ring, slot, len);
		if (state == SE_RING_READY && data)
			se_srd_rx(qp, &slot->pkt, data);
		se_ring_release(ring, tail, len > SE_RING_INLINE);
		atomic_store_explicit(&sq->tail, ++tail, memory_order_relaxed);
	}
	return count;
}

/*
 * Frees blocks whose producer was killed before it published a slot. Does so
 * only if the ring is empty: then no slot refers to a block, so each claimed
 * block belongs to a killed producer, or to a live one that is about to claim a
 * slot. Blocks of live producers are kept.
 */
static void se_shm_tidy(struct se_qp *qp)
{
	struct se_shm_qp *sq = qp->wire_qp;
	uint32_t index = 0, owner;

	for (;; index++) {
		index = se_ring_owned_block(sq->ring, index, &owner);
		if (index == SE_RING_NO_BLOCK)
			return;
		if (se_shm_id_alive(owner))
			continue;
		/* check after the producer's exit: it publishes nothing more */
		if (se_ring_state(sq->ring, sq->tail) != SE_RING_FREE)
			return;
		se_ring_free_block(sq->ring, index);
	}
}

static bool se_shm_unread(struct se_qp *qp, struct se_flow *flow,
			  uint64_t cookie)
{
	struct se_shm_peer *peer = flow->wire_flow;
	struct se_shm_qp *sq = qp->wire_qp;

	if (!peer)
		return false;
	/*
	 * Load peer->ring->answered before this QP's ring: the peer stores
	 * "answered" after it has sent the ACKs. So the ACK of a packet below
	 * "answered" is in this ring, or was read.
	 */
	return atomic_load_explicit(&peer->ring->answered,
				    memory_order_acquire) <= cookie ||
	       se_ring_state(sq->ring, sq->tail) != SE_RING_FREE;
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
	.tidy = se_shm_tidy,
	.unread = se_shm_unread,
	.alive = se_shm_alive,
	.flow_close = se_shm_flow_close,
	.event_fd = se_shm_event_fd,
	.arm = se_shm_arm,
};
