/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Parts of the shared memory wire: files and peers, doorbells. */
#ifndef SOFTEFA_WIRE_SHM_H
#define SOFTEFA_WIRE_SHM_H

#include <stdbool.h>
#include <sys/stat.h>

#include <infiniband/verbs.h>

#include "ring.h"

#define SE_SHM_PATH 288

/*
 * Doorbell: a FIFO beside the ring, if a CQ of the QP has a completion channel.
 * Peers write to the FIFO if the ring is armed.
 */
struct se_doorbell {
	int fd; /* -1: no doorbell */
	char path[SE_SHM_PATH];
};

struct se_doorbell_tx {
	int fd; /* -1: the peer has no doorbell */
};

int se_doorbell_open(struct se_doorbell *bell, const char *ring_path,
		     bool wanted);
void se_doorbell_unlink(struct se_doorbell *bell);
void se_doorbell_close(struct se_doorbell *bell);
void se_doorbell_clear(struct se_doorbell *bell);
void se_doorbell_self(struct se_doorbell *bell);
/* Opens the peer's doorbell, if there is one. Returns 0 or an errno. */
int se_doorbell_tx_init(struct se_doorbell_tx *bell, const char *ring_path);
void se_doorbell_tx_close(struct se_doorbell_tx *bell);
void se_doorbell_ring(struct se_doorbell_tx *bell);

static inline bool se_doorbell_used(const struct se_doorbell_tx *bell)
{
	return bell->fd >= 0;
}

/* shm_peer.c: the rings of peers */
struct se_shm_peer {
	struct se_ring *ring;
	size_t size;
	uint32_t id, block_hint;
	struct se_doorbell_tx bell;
};

struct se_qp;
struct se_flow;

void se_shm_path(char path[SE_SHM_PATH], const union ibv_gid *gid,
		 uint32_t qpn);

/* Returns the id of a ring and its owner: the file's inode number, never 0. */
uint32_t se_shm_id(const struct stat *st);

/* True if the owner of the ring with this id is alive, or might be. */
bool se_shm_id_alive(uint32_t id);

/*
 * Maps the peer's ring. Returns 0, -EAGAIN (try later), or the se_status of the
 * failure.
 */
int se_shm_connect(struct se_qp *qp, struct se_flow *flow);
enum se_status se_shm_alive(struct se_qp *qp, struct se_flow *flow);
void se_shm_flow_close(struct se_qp *qp, struct se_flow *flow);

/* True if the directory of run-time files has a ring of a QP with this GID. */
bool se_gid_known(const union ibv_gid *gid);

#endif
