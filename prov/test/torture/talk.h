/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Two processes communicate over near. The active process sends messages, and
 * executes RMA and atomics on memory of the passive one, which receives. Both
 * note their progress in common memory, by which the test checks the survivor.
 */
#ifndef TORTURE_TALK_H
#define TORTURE_TALK_H

#include "near/rma/ops.h"
#include "unit.h"

#define TALK_OPS 160		/* limit of talk_plan.ops */
#define TALK_LARGE 400000	/* longest operation, bytes */
#define TALK_AHEAD 6		/* limit of pending operations */
#define TALK_BASE 0x2000u	/* address of a region's first byte */
#define TALK_LENT_KEY 0x6c656e74u	/* region of talk_common.device */

enum { TALK_ACTIVE, TALK_PASSIVE, TALK_ROLES };

/* Kinds of operations: bits of talk_plan.kinds */
enum talk_kind {
	TALK_MSG = 1,
	TALK_WRITE = 2,
	TALK_READ = 4,
	TALK_FETCH = 8,		/* adds 1 to a counter of the passive process */
};

struct talk_plan {
	const char *name;
	uint32_t kinds;
	uint32_t ops;
	/* shortest and longest operation, bytes */
	uint32_t least, most;
	/* no single copies: send fragments, and let the target execute RMA */
	bool no_cma;
	bool direct;		/* do not delegate operations */
	bool sleeps; /* the passive process sleeps while no message arrives */
	bool far;		/* the peers use the fd exchange */
	size_t memory;		/* ring budget, bytes; 0: the default */
	/*
	 * path of the active process's operations on device memory;
	 * NEAR_DEVICE_NONE: host memory
	 */
	enum near_device_path device;
};

/* Notes in memory that both processes map */
struct talk_common {
	struct near_addr addr[TALK_ROLES];
	uint32_t open[TALK_ROLES];	/* addr is valid */
	uint32_t over[TALK_ROLES];	/* the process has no more operations */
	/*
	 * flags for each operation. The active process sets begun when it
	 * posts the operation, and ended when the operation has succeeded. The
	 * passive process sets heard when the whole message has arrived.
	 */
	uint8_t begun[TALK_OPS];
	uint8_t ended[TALK_OPS];
	uint8_t heard[TALK_OPS];
	uint64_t number __attribute__((aligned(64)));
	uint8_t memory[TALK_LARGE * 4] __attribute__((aligned(64)));
	uint8_t device[TALK_LARGE * 4];	/* the active process's device memory */
};

struct talk {
	const struct talk_plan *plan;
	struct talk_common *common;
	int role;
	unsigned int seed;
	struct rig *rig;
	struct near_table *table;
	/* the passive process, as a peer of the active one; or NULL */
	struct near_peer *to;
	uint32_t next;		/* number of the next operation */
	uint32_t under_way;
	uint32_t last; /* number of the last message that arrived, plus 1 */
	uint32_t failed;	/* number of failed operations */
	uint32_t gone;		/* number of reported failures of the peer */
	bool dead;		/* the peer has failed: post no more */
	struct talk_op {
		struct talk *talk;
		enum talk_kind kind;
		uint32_t len, at;	/* "at": offset in common->memory */
		uint64_t was;
		uint8_t *buf;
	} op[TALK_OPS];
};

/* Maps the common memory. Call before the fork. */
struct talk_common *talk_common(void);
/* Opens the port of a role. Both processes pass the same plan and seed. */
void talk_open(struct talk *talk, const struct talk_plan *plan, int role,
	       unsigned int seed, struct talk_common *common);
/*
 * Posts operations, polls, and checks each event. Returns true if an operation
 * was posted, or if there was an event.
 */
bool talk_step(struct talk *talk);
/* True if neither process has further operations. */
bool talk_over(const struct talk *talk);
/* Sleeps for at most ms, until a message arrives or a peer fails. */
void talk_sleep(struct talk *talk, int ms);
/* True if the port has no resource of a peer and no pending operation. */
bool talk_alone(const struct talk *talk);
/* Compares the notes of both processes. "all": no process was killed. */
void talk_check(const struct talk *talk, bool all);
void talk_close(struct talk *talk);

/* talk_device.c */
extern const struct near_device talk_near_device;
/* handle of all device memory */
extern void *const talk_device_handle;
/* Stores talk for the callbacks of talk_near_device. Call this first. */
void talk_device_open(const struct talk *talk);
/* Adds a region of device memory, which the peer can map. */
void talk_device_region(struct talk *talk, uint64_t key, void *memory,
			size_t len, uint32_t access);

#endif /* TORTURE_TALK_H */
