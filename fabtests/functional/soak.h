/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The state of an endpoint in soak.c; one thread uses it. */
#ifndef FT_SOAK_H
#define FT_SOAK_H

#include <pthread.h>

#include "common/ft.h"

#define FT_MAX_LEN 150000	/* divisible by 8 */
#define FT_DEPTH 16		/* number of pending sends */
#define FT_KEEP 24 /* largest number of posted receives of each kind */
#define FT_KINDS 2		/* untagged and tagged */
#define FT_TAGS 0xfffffu
#define FT_MULTI_BUFS 2

struct ft_load;

struct ft_hdr {
	uint32_t from;
	uint32_t seq;
};

struct ft_slot {
	struct ft_op op;
	struct ft_buf *buf;
	int from;		/* source; -1: not matched yet, -2: canceled */
	uint32_t seq;
};

struct ft_kind {
	struct ft_slot *slots;	/* in the order of posting */
	struct ft_buf bufs[FT_KEEP];
	struct ft_buf *idle[FT_KEEP];
	int nidle, posted, oldest, got, want, capacity;
};

/* An FI_MULTI_RECV buffer for untagged messages. */
struct ft_multi {
	struct ft_op op;	/* first member: the context of the receive */
	struct ft_load *load;
	struct ft_buf buf;
	bool posted;
};

/* Memory of a rank into which one other rank writes. */
struct ft_cell {
	uint64_t count;
	uint8_t data[FT_MAX_LEN];
};

/* RMA and atomics: one operation at a time. */
struct ft_verbs {
	struct ft_cell *cells;	/* this rank's cells, one for each rank */
	struct fid_mr *mr;
	struct {
		uint64_t base, key;
	} at[FT_MAX_RANKS];
	/* number of additions by this endpoint to its cell at each rank */
	uint64_t added[FT_MAX_RANKS];
	struct ft_buf buf;
	struct ft_op op;
	int what, to;
	unsigned int seed;
	size_t len;
	bool busy;
};

struct ft_load {
	struct ft_ep e;
	pthread_t thread;
	unsigned int id;	/* number of this endpoint in its rank */
	unsigned int round;
	struct ft_kind kinds[FT_KINDS];
	bool multi;		/* untagged receives are FI_MULTI_RECV */
	struct ft_multi multis[FT_MULTI_BUFS];
	uint32_t multi_next[FT_MAX_RANKS];
	int sent, to_send;
	struct ft_buf txbuf[FT_DEPTH];
	struct ft_op txop[FT_DEPTH];
	uint32_t next_seq[FT_MAX_RANKS][FT_KINDS];
	struct ft_verbs verbs;
	/* totals */
	uint64_t all_sent, claims, cancels, in_multi, writes, reads, additions;
};

extern int ft_per_pair;	/* messages of a kind to each rank in a round */
extern bool ft_all;	/* with multi-receive buffers, RMA and atomics */

/* soak.c */
/*
 * True if the rank uses multi-receive buffers, RMA and atomics. Ranks without
 * ofi_duo do not: efa's own fetching atomics crash, and util_srx may write
 * outside of a multi-receive buffer.
 */
bool ft_takes_part(const struct ft_load *l, int rank);
size_t ft_len(const struct ft_load *l, uint32_t from, int kind, uint32_t seq);
unsigned int ft_seed(const struct ft_load *l, uint32_t from, int kind,
		     uint32_t seq);

/* soak_recv.c */
void ft_recv_open(struct ft_load *l);
void ft_recv_begin(struct ft_load *l);
bool ft_recv_missing(const struct ft_load *l);
void ft_post(struct ft_load *l, int k);
void ft_sweep(struct ft_load *l, struct ft_kind *kind);
void ft_cancel_one(struct ft_load *l, struct ft_kind *kind);
void ft_probe(struct ft_load *l, struct ft_kind *kind);
/* Cancels the receives, and checks the order of the messages. */
void ft_recv_end(struct ft_load *l);
void ft_recv_close(struct ft_load *l);

/* soak_verbs.c */
void ft_verbs_open(struct ft_load *l);
void ft_verbs_step(struct ft_load *l);
void ft_verbs_end(struct ft_load *l);	/* waits for the operation */
void ft_verbs_check(struct ft_load *l);	/* all ranks call it */
void ft_verbs_close(struct ft_load *l);

#endif /* FT_SOAK_H */
