/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The reference model of one or two endpoints: their receives and messages in
 * the order of their posting and sending, who takes what, and who has got what.
 * It says what may happen, not what will: that the paths race is the point.
 */
#ifndef MODEL_H
#define MODEL_H

#include "fixture.h"

#define MODEL_MSGS 500
#define MODEL_PRESSES 100	/* of these, for model_press() */
#define MODEL_POSTS 600		/* random receives */
#define MODEL_RECVS (MODEL_POSTS + MODEL_PRESSES + 2 * MODEL_MSGS)
#define MODEL_SENDS 600
#define MODEL_BUF 256
#define MODEL_GUARD 16
#define MODEL_GUARD_BYTE 0x77
#define MODEL_MIN_MULTI 16	/* FI_OPT_MIN_MULTI_RECV, bytes */
#define MODEL_ID 7		/* what a message begins with, bytes */
#define MODEL_NEVER INT32_MAX	/* a step */
#define MODEL_EPS 2
#define MODEL_ADDR 10		/* of the first source; the core's */

enum model_source {
	MODEL_ANY = -1,
	MODEL_REMOTE,
	MODEL_REMOTE_2,
	MODEL_LOCAL_FAR,	/* sends over the core all the same */
	MODEL_LOCAL,
	MODEL_LOCAL_2,
	MODEL_LATE,		/* publishes itself late */
	MODEL_STRANGER,		/* is inserted late */
	MODEL_SOURCES
};

/* What it has with the other one in common may be its AV, its CQ, or both. */
struct model_ep {
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fake_obj *core, *shm;	/* NULL: no shm */
};

struct model_peer {
	const char *peer_name;	/* NULL: not published */
	fi_addr_t addr[MODEL_EPS];	/* in the AV of each */
	bool inserted[MODEL_EPS];
	bool far;		/* it sends over the core */
	int life;		/* processes that have ended */
};

enum model_op {
	MODEL_SINGLE,		/* a receive of one message */
	MODEL_MULTI,		/* FI_MULTI_RECV */
	MODEL_PEEK,
	MODEL_PEEK_DISCARD,
	MODEL_PEEK_CLAIM,	/* becomes MODEL_CLAIM with a message */
	MODEL_CLAIM,
};

enum model_state {
	MODEL_OPEN,
	MODEL_DONE,
	MODEL_CANCELED,
	MODEL_FAILED,
};

/* Its address is the context. */
struct model_recv {
	char before[MODEL_GUARD];
	char buf[MODEL_BUF];
	char behind[MODEL_GUARD];
	int ep;				/* where it was posted */
	enum duo_rx_kind kind;
	enum model_op op;
	enum model_state state;
	int source;			/* enum model_source */
	uint64_t tag, ignore;
	size_t len;			/* of buf that was posted */
	size_t buffers;			/* in so many pieces; 0: by a call
					 * for one */
	bool wanted;			/* a success is reported */
	int posted;			/* step */
	bool claiming;			/* of a claim: it is posted */
	bool discard;			/* of a claim that is */
	bool canceling;			/* fi_cancel was called */
	int canceled;			/* the step in which it succeeded */
	struct model_msg *msg;		/* the last one that it got */
};

struct model_msg {
	int ep;				/* to which it was sent */
	enum duo_rx_kind kind;
	int source;
	uint64_t tag;
	size_t len;
	bool known;			/* its source was in the AV */
	bool on_shm;
	bool orphan;			/* what names its source need not take
					 * it: docs/matching.md, known gaps */
	int life;			/* of its source */
	int sent;			/* step */
	int seen;			/* likewise; of its completion */
	struct model_recv *recv;	/* that got it; NULL: none */
	bool truncated;
};

/* Its address is the context. */
struct model_send {
	int ep;
	bool on_core;
	bool fails;
	bool done;
};

extern struct model {
	int seed;
	int step;
	uint64_t random;
	struct fixture_attr attr;
	bool util_srx;
	bool selective;
	bool lazy_reader;	/* seldom reads the CQ */
	bool eager_reader;	/* after every step */
	size_t window;		/* so many receives of a kind are open */
	size_t single_in;	/* of so many untagged receives one is for a
				 * single message */
	int post_errs;		/* refusals that were not seen yet */
	int eps;
	struct model_ep ep[MODEL_EPS];
	struct fid_cq *reading;	/* what comes is read from there */
	struct model_peer peer[MODEL_SOURCES];
	struct model_recv recv[MODEL_RECVS];
	struct model_msg msg[MODEL_MSGS];
	struct model_send send[MODEL_SENDS];
	int recv_count, msg_count, send_count;
} model;

/* ck_assert_msg() writes into a pipe each time: too slow for these loops. */
#define model_assert(expr, format, ...) do {				\
	if (!(expr))							\
		ck_abort_msg("seed %d, step %d: " format, model.seed,	\
			     model.step, ##__VA_ARGS__);		\
} while (0)

/* model.c */
void model_trace_on(void);
__attribute__((format(printf, 1, 2)))
void model_trace(const char *format, ...);
size_t model_random(size_t below);
bool model_one_in(size_t count);

/* One of them. */
int model_random_ep(void);
bool model_same_av(int ep, int other);
/* Sources below this one exist. */
int model_sources(void);
fi_addr_t model_src(const struct model_recv *recv);
bool model_takes(const struct model_recv *recv, const struct model_msg *msg);
/* Is it one that nothing can take back from the core? */
bool model_final(const struct model_recv *recv);
/* The message gets its receive, for good. */
void model_take(struct model_recv *recv, struct model_msg *msg);
int model_recv_index(const struct model_recv *recv);
int model_msg_index(const struct model_msg *msg);
struct model_msg *model_msg_at(uint64_t index);
/* What it says; text has room for MODEL_BUF. */
void model_text(const struct model_msg *msg, char *text);
/* The message that starts here, NULL: none does. */
struct model_msg *model_msg_in(const char *buf, size_t len);

/* model_post.c: random receives */
void model_post(void);
/* One that takes any message of the kind, whole. */
void model_post_wildcard(int ep, enum duo_rx_kind kind);
void model_peek(void);
/* Some of the messages that were claimed are received, or all. */
void model_claim(void);
void model_claim_all(void);

/* model_peer.c: the sources come and go */
void model_open_peers(void);
void model_act_insert(void);
void model_act_publish(void);
/* A process ends, and another one has its address. */
void model_act_restart(void);
/* An address is taken out of the AV, when nothing of it is on its way. */
void model_remove(void);

/* model_open.c */
void model_open(int seed);
/* For unit_case(). */
void model_close(void);

/* model_act.c */
/* One random step. */
void model_act(void);
void model_act_send(void);
void model_act_post(void);
void model_arrive(int ep, enum model_source source, enum duo_rx_kind kind);
void model_arrive_some(int ep, enum model_source source);
/* Everything that waits is received, each by a receive that takes all. */
void model_drain(void);
/* Ends all mishaps. */
void model_calm(void);
void model_cancel(struct model_recv *recv);
void model_cancel_all(void);

/* model_press.c */
/* Local messages take receives of busy as fast as they are posted. */
void model_press(int ep, int busy, enum duo_rx_kind kind);

/* model_read.c */
/* Reads a CQ once, at random; false: there was nothing. */
bool model_read(void);
bool model_read_cq(struct fid_cq *cq);
/* Until nothing comes any more. */
void model_read_all(void);

/* model_done.c */
/* A completion, and from whom. */
struct model_entry {
	struct fi_cq_tagged_entry cq;	/* as much as the format has */
	fi_addr_t src;
	bool has_src;
};

void model_done(const struct model_entry *entry);
void model_failed(const struct fi_cq_err_entry *err);
/* What has ended without being reported; when the endpoints are quiet. */
void model_find_silent(void);

/* model_check.c */
/* Nothing waits that has a receive. */
void model_check_waiting(void);
/* All receives have ended. */
void model_check_ended(void);
/* All of the above, and that nothing is left. */
void model_check_all(void);

#endif /* MODEL_H */
