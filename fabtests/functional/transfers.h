/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The rails of transfers.c. */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include <pthread.h>

#include "common/ft.h"

#define FT_RAILS 2
#define FT_RECVS 8		/* number of receives on each rail */
#define FT_NOTE 256		/* bytes of a message */
#define FT_BLOCK ((size_t)64 << 10)
#define FT_BLOCKS 32		/* number of blocks in each half of a region */
#define FT_HALF (FT_BLOCK * FT_BLOCKS)

struct ft_rail {
	struct ft_ep e;
	struct fid_mr *mr, *note_mr;
	uint64_t key[2], base[2]; /* keys and addresses of the ranks' regions */
	/* buffers for receives; the last one is for sends */
	uint8_t note[FT_RECVS + 1][FT_NOTE];
	struct ft_op recv[FT_RECVS];
	/* held for each post and, if ft_threaded, for each read of the CQ */
	pthread_mutex_t lock;
	atomic_int notes, written; /* messages and writes that arrived */
	uint64_t rma; /* number of RMA operations of this rank */
};

extern struct ft_rail rails[FT_RAILS];
/* first half: local buffer; second half: target */
extern uint8_t *memory;
/* a progress thread reads the CQs, not the main thread */
extern bool ft_threaded;

void ft_hints_nixl(struct fi_info *hints);
void ft_hints_mooncake(struct fi_info *hints);
void ft_rails_open(const struct ft_cfg *cfg);
/* Checks the paths of all operations. */
void ft_rails_close(void);
void ft_thread_start(void);
void ft_thread_stop(void);
/* Makes progress, or yields to the progress thread. */
void ft_pause(void);
void ft_meet(void);

#endif /* TRANSFERS_H */
