/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Doorbells of the shared memory wire: a FIFO beside the ring, made only for
 * QPs whose receive CQ has a completion channel, written to only when armed.
 */
#ifndef SOFTEFA_WIRE_SHM_H
#define SOFTEFA_WIRE_SHM_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#define SE_SHM_INLINE 144 /* payload bytes in a slot of four cache lines */

struct se_doorbell {
	int fd; /* -1: none */
	char path[300];
};

struct se_doorbell_tx {
	int fd; /* -1: the peer has none */
};

int se_doorbell_open(struct se_doorbell *bell, const char *ring_path,
		     bool wanted);
void se_doorbell_unlink(struct se_doorbell *bell);
void se_doorbell_close(struct se_doorbell *bell);
void se_doorbell_clear(struct se_doorbell *bell);
void se_doorbell_self(struct se_doorbell *bell);
void se_doorbell_tx_init(struct se_doorbell_tx *bell, const char *ring_path);
void se_doorbell_tx_close(struct se_doorbell_tx *bell);
void se_doorbell_ring(struct se_doorbell_tx *bell);

static inline bool se_doorbell_used(const struct se_doorbell_tx *bell)
{
	return bell->fd >= 0;
}

/* Whether any QP of this GID has a ring here. */
bool se_gid_known(const union ibv_gid *gid);

#endif
