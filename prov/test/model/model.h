/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reference model of one or two endpoints. It records receives in the order of
 * posting, messages in the order of sending, and which of them match. It
 * permits every result of the race between the two paths.
 */
#ifndef MODEL_H
#define MODEL_H

#include "fixture.h"

#define MODEL_MSGS 500
#define MODEL_PRESSES 100	/* messages reserved for model_press() */
#define MODEL_POSTS 600		/* random receives */
#define MODEL_RECVS (MODEL_POSTS + MODEL_PRESSES + 2 * MODEL_MSGS)
#define MODEL_SENDS 600
#define MODEL_BUF 256
#define MODEL_GUARD 16
#define MODEL_GUARD_BYTE 0x77
#define MODEL_MIN_MULTI 16	/* FI_OPT_MIN_MULTI_RECV, bytes */
#define MODEL_ID 7 /* number of first bytes that identify a message */
/* model_msg.seen of a message that was received without a completion */
#define MODEL_NEVER INT32_MAX
#define MODEL_EPS 2
#define MODEL_ADDR 10		/* core address of the first source */

enum model_source {
	MODEL_ANY = -1,
	MODEL_REMOTE,
	MODEL_REMOTE_2,
	MODEL_LOCAL_FAR,	/* on this host, but sends over the core */
	MODEL_LOCAL,
	MODEL_LOCAL_2,
	/* inserted into AVs before it publishes its record */
	MODEL_LATE,
	/* sends before it is inserted into AVs */
	MODEL_UNKNOWN,
	MODEL_SOURCES
};

/* Two endpoints may share their AV, their CQ, both or neither. */
struct model_ep {
	struct fid_ep *ep;
	struct fid_av *av;
	/* CQs of receives and of sends; may be the same CQ */
	struct fid_cq *cq, *tx_cq;
	struct fake_obj *core, *shm;	/* NULL: no shm */
};

struct model_peer {
	/* name of its published record; NULL: none */
	const char *peer_name;
	fi_addr_t addr[MODEL_EPS]; /* fi_addr in the AV of each endpoint */
	bool inserted[MODEL_EPS];
	bool far;		/* sends over the core */
	int life;	/* number of this source's processes that have ended */
};

enum model_op {
	MODEL_SINGLE,		/* receives one message */
	MODEL_MULTI,		/* a buffer with FI_MULTI_RECV */
	MODEL_PEEK,
	MODEL_PEEK_DISCARD,
	MODEL_PEEK_CLAIM,	/* becomes MODEL_CLAIM if it finds a message */
	MODEL_CLAIM,
};

enum model_state {
	MODEL_OPEN,
	MODEL_DONE,
	MODEL_CANCELED,
	MODEL_FAILED,
};

/* A receive; its address is the context of the operation */
struct model_recv {
	char before[MODEL_GUARD];
	char buf[MODEL_BUF];
	char behind[MODEL_GUARD];
	int ep;				/* index of the endpoint */
	enum duo_rx_kind kind;
	enum model_op op;
	enum model_state state;
	int source;			/* enum model_source */
	uint64_t tag, ignore;
	size_t len;			/* posted bytes of buf */
	size_t buffers; /* number of iovecs; 0: the call has none */
	bool wanted;			/* a completion is reported */
	int posted;			/* step of the post */
	bool claiming;			/* MODEL_CLAIM: FI_CLAIM was posted */
	bool discard;			/* MODEL_CLAIM: with FI_DISCARD */
	bool canceling;			/* fi_cancel() was called */
	int canceled;			/* step of the successful fi_cancel */
	struct model_msg *msg;		/* newest message that matched */
};

struct model_msg {
	int ep;				/* index of the receiving endpoint */
	enum duo_rx_kind kind;
	int source;
	uint64_t tag;
	size_t len;
	bool known; /* its source was in the AV when it was sent */
	bool on_shm;
	bool orphan; /* directed receives may miss it: docs/matching.md */
	int life;			/* model_peer.life when it was sent */
	int sent;			/* step of the send */
	int seen;	/* step in which its completion was read */
	/* receive that matched this message; NULL: none */
	struct model_recv *recv;
	bool truncated;
};

/* A send; its address is the context of the operation */
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
	bool lazy_reader;	/* reads the CQ seldom */
	bool eager_reader;	/* reads the CQ after every step */
	/*
	 * true in a first phase that may leave the core unused: it has few
	 * steps, the first addresses are local, and most receives name a source
	 */
	bool local_first;
	size_t window; /* largest number of open receives of each kind */
	/*
	 * 1 of this number of untagged receives is a MODEL_SINGLE, on average
	 */
	size_t single_in;
	/* number of injected errors that ofi_duo has not reported yet */
	int post_errs;
	int eps;
	struct model_ep ep[MODEL_EPS];
	struct fid_cq *reading;	/* CQ that is being read */
	struct model_peer peer[MODEL_SOURCES];
	struct model_recv recv[MODEL_RECVS];
	struct model_msg msg[MODEL_MSGS];
	struct model_send send[MODEL_SENDS];
	int recv_count, msg_count, send_count;
} model;

/* ck_assert_msg() writes to a pipe at each call, which is too slow here. */
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

int model_random_ep(void);
bool model_same_av(int ep, int other);
int model_sources(void);
fi_addr_t model_src(const struct model_recv *recv);
bool model_takes(const struct model_recv *recv, const struct model_msg *msg);
/* True if the receive cannot be recalled from the core. */
bool model_final(const struct model_recv *recv);
/* Records that the message matched the receive. */
void model_take(struct model_recv *recv, struct model_msg *msg);
int model_recv_index(const struct model_recv *recv);
int model_msg_index(const struct model_msg *msg);
struct model_msg *model_msg_at(uint64_t index);
/* Writes the message's content to text, of MODEL_BUF bytes. */
void model_text(const struct model_msg *msg, char *text);
/* Returns the message that starts at buf; NULL: none. */
struct model_msg *model_msg_in(const char *buf, size_t len);

/* model_post.c: random receives */
void model_post(void);
/* Posts a receive that matches any message of the kind and can hold it. */
void model_post_wildcard(int ep, enum duo_rx_kind kind);
void model_peek(void);
/* Posts FI_CLAIM for some of the claimed messages, or for all. */
void model_claim(void);
void model_claim_all(void);

/* model_peer.c: sources start and end */
void model_open_peers(void);
void model_act_insert(void);
void model_act_publish(void);
/* Ends a source's process and starts another with the same address. */
void model_act_restart(void);
/*
 * Removes a source from an AV, if none of its messages waits and no open
 * receive names it.
 */
void model_remove(void);

/* model_open.c */
void model_open(int seed);
void model_close(void);

/* model_act.c */
void model_act(void);
void model_act_send(void);
void model_act_post(void);
void model_arrive(int ep, enum model_source source, enum duo_rx_kind kind);
void model_arrive_some(int ep, enum model_source source);
/* Posts wildcard receives until all waiting messages are received. */
void model_drain(void);
void model_end_faults(void);
void model_cancel_all(void);

/* model_press.c */
/*
 * Checks that ep gets a message of the core while "busy" gets local messages.
 * Both are indexes of endpoints, and may be equal.
 */
void model_press(int ep, int busy, enum duo_rx_kind kind);

/* model_read.c */
/* Reads a random CQ once; false: -FI_EAGAIN. */
bool model_read(void);
bool model_read_cq(struct fid_cq *cq);
/* Reads until many reads in a row return -FI_EAGAIN. */
void model_read_all(void);

/* model_done.c */
/* A completion and its source */
struct model_entry {
	/* members that the CQ's format has */
	struct fi_cq_tagged_entry cq;
	fi_addr_t src;
	bool has_src;
};

void model_done(const struct model_entry *entry);
void model_failed(const struct fi_cq_err_entry *err);
/*
 * Finds receives without a completion whose buffers have messages, and marks
 * these receives as ended. Call this when no message is pending.
 */
void model_find_silent(void);

/* model_check.c */
/* Checks that no message waits that an open receive should match. */
void model_check_waiting(void);
void model_check_ended(void);
/* Checks the results of the whole run, and that all queues are empty. */
void model_check_all(void);

#endif /* MODEL_H */
