/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Two ports with one-sided operations: a does what b has a region for. */
#ifndef NEAR_RMA_SIDE_H
#define NEAR_RMA_SIDE_H

#include "near/rma/ops.h"
#include "unit.h"

#define SIDE_LARGE (5 * NEAR_STEP + 777)
#define SIDE_KEY 0x1234567890abcdefu
#define SIDE_START 0x1000u	/* what the region's first byte is called */

/* A rig with a table, and what its one-sided operations have come to. */
struct side {
	struct rig *rig;
	struct near_table *table;
	uint32_t done;
	int err;		/* of the last one that was done */
	void *cookie;
	uint32_t events;
	uint32_t events_at;	/* of the rig's when the last one came */
	struct near_rma_event event;
};

extern struct side a, b;
extern struct near_peer *to_b;
extern struct near_device side_device;	/* of both: a test fills it in */
extern uint8_t *memory, *local;	/* b's region, a's buffer: SIDE_LARGE each */

/* Reads and writes are done by a; by b. */
void side_setup_direct(void);
void side_setup_asked(void);
void side_teardown(void);
/* As direct, and from here on small ones are offered. */
void side_setup_delegs(void);
/* Starts an operation of one buffer; near_rma()'s result. */
int side_start(enum near_verb verb, uint64_t key, size_t offset, size_t len,
	       uint32_t flags);
/* Polls a and then b, times over. */
void side_poll(int times);
/* Polls a, and b if both, until done have ended, the last one well. */
void side_until(uint32_t done, bool both);
/* b is gone: done have ended, the last one for that, and none is left. */
void side_lost(uint32_t done);
/* An offer, whatever was withdrawn before. */
int side_deleg(enum near_verb verb, uint64_t key, size_t offset, size_t len);
/* A write of 8 bytes. */
void side_put(size_t offset);
/* What b says of a's offers. */
struct near_ctl *side_ctl(void);
/* Another one of b's, over the same memory. */
void side_region(uint64_t key, uint32_t access, size_t len);
/* A test has closed b's port: another one, for side_teardown(). */
void side_reopen(void);
/* The memory is all zero still. */
void side_untouched(void);

#endif /* NEAR_RMA_SIDE_H */
