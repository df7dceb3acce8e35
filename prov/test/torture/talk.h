/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A conversation of two processes over near: the active one sends messages and has
 * one-sided operations on memory of the other one, the passive one receives. Each notes
 * its progress in common memory, with which the survivor is checked.
 */
#ifndef TORTURE_TALK_H
#define TORTURE_TALK_H

#include "near/rma/ops.h"
#include "unit.h"

#define TALK_OPS 160		/* of a conversation, at most */
#define TALK_LARGE 400000	/* bytes of an operation, at most */
#define TALK_AHEAD 6		/* operations under way at a time */

enum { TALK_ACTIVE, TALK_PASSIVE, TALK_ROLES };

/* Kinds of operations, as bits of talk_plan.kinds. */
enum talk_kind {
	TALK_MSG = 1,
	TALK_WRITE = 2,
	TALK_READ = 4,
	TALK_FETCH = 8,		/* adds 1 to a counter in the passive process */
};

struct talk_plan {
	const char *name;
	uint32_t kinds;
	uint32_t ops;
	uint32_t least, most;	/* bytes of an operation */
	bool no_cma;		/* fragments, and operations that the target executes */
	bool direct;		/* no delegated operations */
	bool sleeps;		/* the passive one sleeps while nothing comes */
	bool far;		/* the peers exchange descriptors over a socket */
	size_t memory;		/* ring budget, bytes; 0: the usual one */
};

/* In memory that both processes have. */
struct talk_common {
	struct near_addr addr[TALK_ROLES];
	uint32_t open[TALK_ROLES];	/* addr is valid */
	uint32_t over[TALK_ROLES];	/* nothing more to do */
	uint8_t begun[TALK_OPS];	/* the active one: posted */
	uint8_t ended[TALK_OPS];	/* the active one: reported as a success */
	uint8_t heard[TALK_OPS];	/* the passive one: whole message delivered */
	uint64_t number __attribute__((aligned(64)));
	uint8_t memory[TALK_LARGE * 4] __attribute__((aligned(64)));
};

struct talk {
	const struct talk_plan *plan;
	struct talk_common *common;
	int role;
	unsigned int seed;
	struct rig *rig;
	struct near_table *table;
	struct near_peer *to;	/* the active one's */
	uint32_t next;		/* operation to post */
	uint32_t under_way;
	uint32_t last;		/* message heard, + 1 */
	uint32_t failed;	/* operations that ended in an error */
	uint32_t gone;		/* ends of the peer that were reported */
	bool dead;		/* nothing more can be posted */
	struct talk_op {
		struct talk *talk;
		enum talk_kind kind;
		uint32_t len, at;	/* at: in common->memory */
		uint64_t was;
		uint8_t *buf;
	} op[TALK_OPS];
};

/* Maps the memory in common, before the fork. */
struct talk_common *talk_common(void);
/* Opens the port of a role; both have the same plan and seed. */
void talk_open(struct talk *talk, const struct talk_plan *plan, int role,
	       unsigned int seed, struct talk_common *common);
/* Posts, polls, checks each event. Returns true if there was one. */
bool talk_step(struct talk *talk);
/* True if this role has nothing more to do, and the other one is at its end. */
bool talk_over(const struct talk *talk);
/* Sleeps for ms at most, until a message or the end of a peer. */
void talk_sleep(struct talk *talk, int ms);
/* True if nothing of any peer is left in the port, nor of any operation. */
bool talk_alone(const struct talk *talk);
/* Checks the notes of both against each other; all: no process was killed. */
void talk_check(const struct talk *talk, bool all);
void talk_close(struct talk *talk);

#endif /* TORTURE_TALK_H */
